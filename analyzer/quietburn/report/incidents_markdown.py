"""The report of `analyze` as Markdown: the two rates, the list of incidents, details folded, and no caller's name in it.

What rules say of a finding is ours; the strings of ledgers that do occur (routes, backends) are escaped.
"""

from quietburn.report import incident_words, words
from quietburn.report.markdown import escape, folded, inert
from quietburn.report.model import IncidentReport, Report
from quietburn.report.words import percent

_MOST_LISTED = 15


def report_markdown(report: Report) -> str:
    """Return the report as a comment or a page."""
    rates, left = report.rates, len(report.incidents) - _MOST_LISTED
    lines = [
        "<!-- quietburn analyze -->",
        f"### quietburn: {incident_words.how_many(report)}",
        "",
        "| rate | | n |",
        "| --- | --- | --- |",
        f"| success | {percent(rates.success_rate)} | {escape(words.success(rates))} |",
        f"| usable | {percent(rates.usable_rate)} | {escape(words.usable(rates))} |",
        "",
        *(_item(incident, report) for incident in report.incidents[:_MOST_LISTED]),
        *([f"- and {left} more, in the details"] if left > 0 else []),
        *(f"- **failed rule** {escape(errored.rule)}: {escape(errored.problem)}" for errored in report.errored),
        "",
        folded(_details(report)),
    ]
    return inert(lines)


def _item(incident: IncidentReport, report: Report) -> str:
    when = escape(incident_words.when(incident, report))
    return f"- {when} **{incident.severity}** {escape(incident_words.what(incident))}"


def _details(report: Report) -> list[str]:
    """Return for each incident its cause, with what followed from it, and what could not be judged."""
    details = []
    for incident in report.incidents:
        cause, *others = (report.findings[place] for place in incident.findings)
        details.append(f"{incident_words.when(incident, report)} {cause.rule} ({cause.confidence}): {words.observed(cause)}")
        also = [f"also {other.severity} {other.rule}: {other.title}" for other in others]
        details += [cause.inference, cause.action, *also, ""]
    details += [f"not evaluated: {', '.join(left.rule for left in report.not_evaluated)}"] if report.not_evaluated else []
    return details + report.notices
