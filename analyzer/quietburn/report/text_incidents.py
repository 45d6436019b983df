"""Incidents as lines for a terminal: the list, and each with its cause and what followed from it."""

from rich.text import Text

from quietburn.report import incident_words
from quietburn.report.model import FindingReport, Report
from quietburn.report.text_findings import SEVERITY_STYLE, Lines, field_head, finding_lines, plain
from quietburn.report.words import counted

_MOST_CONSEQUENCES = 8


def incident_list(report: Report) -> Lines:
    """Yield a line an incident, the worst first; or that nothing was found, or nothing could be."""
    if not report.incidents:
        yield Text(f"  {_nothing_found(report)}", style="bold")
        return
    yield Text(f"  Incidents ({len(report.incidents)}; times are UTC)", style="bold")
    for incident in report.incidents:
        severity = Text(f"{incident.severity.upper():<8}", style=SEVERITY_STYLE[incident.severity])
        # Never wrapped: whoever greps the list wants the whole of an incident.
        yield Text(f"  {incident_words.when(incident, report)}  ") + severity + plain(incident_words.line(incident))


def _nothing_found(report: Report) -> str:
    if not report.rates.attempts:
        return "Nothing to judge: no call in this ledger generates an answer."
    return f"No contradiction found by {counted(len(report.quiet), 'rule')}." if report.quiet else "No rule could be evaluated."


def incident_details(report: Report, width: int) -> Lines:
    """Yield each incident's cause with all that it says, and what followed from it in a line each."""
    for place, incident in enumerate(report.incidents):
        if place:
            yield Text("")
        cause, *others = (report.findings[number] for number in incident.findings)
        yield from finding_lines(cause, width)
        for index, other in enumerate(others[:_MOST_CONSEQUENCES]):
            yield field_head("" if index else "also") + plain(_in_a_line(other, cause))  # one line, however long
        if len(others) > _MOST_CONSEQUENCES:
            yield plain(f"{' ' * 21}and {len(others) - _MOST_CONSEQUENCES} more; --full prints every finding", "dim")


def _in_a_line(finding: FindingReport, cause: FindingReport) -> str:
    """Return another finding of an incident in a line; where it is, only if that is elsewhere than its cause."""
    subject = ", ".join(f"{key} {value}" for key, value in finding.subject.items() if cause.subject.get(key) != value)
    return f"{finding.severity} {finding.rule}: {finding.title}{f' ({subject})' if subject else ''}"
