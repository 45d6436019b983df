"""The results of `gate` and `compare` as a pull request's comment: at most 25 lines, and nobody's name in them.

Callers, tenants, requests and fingerprints don't occur in the models. The strings of ledgers that
do (names of models, files in the command) stand in code spans, in which nothing acts.
"""

import re

from quietburn.report import words
from quietburn.report.printable import printable
from quietburn.report.verdict import ComparisonReport, DifferenceReport, GateReport, ModelsReport, Standing, Verdict
from quietburn.report.words import percent

MARKERS = {"gate": "<!-- quietburn gate -->", "compare": "<!-- quietburn compare -->"}
_MOST_SHOWN = 5  # checks, or models of a side
_LONGEST = 1000
_BACKTICKS = re.compile(r"`+")
_ACTING = re.compile(r"([\\`*_{}\[\]!|~$^])")
_ISSUE = re.compile(r"#(?=[0-9])")
_WWW = re.compile(r"\b(www)\.", re.IGNORECASE)


def gate_markdown(report: GateReport) -> str:
    """Return a gate's comment: the two rates, why not usable, the verdict, how to repeat it, details folded."""
    rates, found = report.ledger.rates, report.usable_interval
    around = f" {words.interval(found.low, found.high, found.level)}" if found else ""
    reasons = words.reasons(report.not_usable)
    wanting = [check for check in report.checks if check.counts_as is not Verdict.PASS or check.notice]
    more = len(wanting) - _MOST_SHOWN
    lines = [
        MARKERS["gate"],
        f"### quietburn gate: {words.verdict(report)}",
        "",
        "| rate | | n |",
        "| --- | --- | --- |",
        f"| success | {percent(rates.success_rate)} | {escape(words.success(rates))} |",
        f"| usable | {percent(rates.usable_rate)}{around} | {escape(words.usable(rates))} |",
        "",
        *([f"Not usable: {escape(reasons)}.  "] if reasons else []),
        f"Deadline: {escape(report.ledger.deadline)}; {escape(words.criteria(rates))}.",
        "",
        *(f"- **{check.counts_as}** {code(check.name)}: {escape(check.says)}" for check in wanting[:_MOST_SHOWN]),
        *([f"- and {more} more, in the details"] if more > 0 else []),
        *(f"- **{escape(advice)}**" for advice in report.advice),
        *([] if wanting or report.advice else [f"All {len(report.checks)} checks passed."]),
        "",
        f"Repeat: {code(report.command)}",
        "",
        folded(_gate_details(report)),
    ]
    return inert(lines)


def compare_markdown(report: ComparisonReport) -> str:
    """Return a comparison's comment: a line a difference, refused ones in words, details folded."""
    details = [f"Deadline before: {report.before.deadline}; after: {report.after.deadline}."]
    details += report.notices
    details += [f"{d.label}: {more}" for d in report.differences if (more := words.per_sample(d))]
    lines = [
        MARKERS["compare"],
        "### quietburn compare" + (f": {report.pairs:,} pairs" if report.pairs else ""),
        "",
        "| | before | after | difference (95 %) |",
        "| --- | --- | --- | --- |",
        *(_row(difference) for difference in report.differences),
        "",
        f"After: {escape(words.criteria(report.after.rates))}.{_models(report.models)}",
        "",
        f"Repeat: {code(report.command)}",
        "",
        folded(details),
    ]
    return inert(lines)


def _row(difference: DifferenceReport) -> str:
    values = (words.level(difference.before, difference.unit), words.level(difference.after, difference.unit))
    says = f"**{escape(difference.says)}**" if difference.verdict is Standing.DIFFERENCE else escape(difference.says)
    return f"| {escape(difference.label)} | {values[0]} | {values[1]} | {says} |"


def _gate_details(report: GateReport) -> list[str]:
    outcomes = ("fired", "errored", "not_evaluated", "quiet")
    counted = {outcome: [rule.rule for rule in report.rules if rule.outcome == outcome] for outcome in outcomes}
    told = ", ".join(f"{len(names)} {outcome.replace('_', ' ')}" for outcome, names in counted.items() if names)
    fired = f" (fired: {', '.join(counted['fired'])})" if counted["fired"] else ""
    return [
        *(f"{check.counts_as}: {check.name}: {check.says}" for check in report.checks),
        *(f"{d.label}: {d.says}" for d in report.differences),
        *(f"{label}: {', '.join(names)}" for label, names in (words.changed(report.models) if report.models else [])),
        *(f"threshold {t.name}: {t.value} ({t.origin})" for t in report.thresholds),
        *([f"rules: {told}{fired}"] if told else []),
        *report.notices,
    ]


def _models(models: ModelsReport) -> str:
    parts = []
    for label, names in words.changed(models):
        more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
        parts.append(f" {label}: {', '.join(code(name) for name in names[:_MOST_SHOWN])}{more}.")
    return "".join(parts)


def folded(details: list[str]) -> str:
    """Return details that are there when asked for, on one line of the source, where Markdown is not read."""
    return f"<details><summary>Details</summary><br>{'<br>'.join(_html(detail) for detail in details)}</details>"


def code(text: str) -> str:
    """Return text as a code span in which nothing of it acts."""
    shown = _short(printable(text)) or " "
    longest = max((len(run) for run in _BACKTICKS.findall(shown)), default=0)
    fence = "`" * (longest + 1)
    padded = f" {shown} " if shown.startswith("`") or shown.endswith("`") else shown
    return f"{fence}{padded}{fence}"


def escape(text: str) -> str:
    """Return text that Markdown and HTML read as itself, and that links to nothing and nobody."""
    return _html(_ACTING.sub(r"\\\1", printable(text)))


def _html(text: str) -> str:
    # GitHub links mentions, issues and addresses in any text, escaped or not: a look-alike stands in for what starts them.
    shown = _short(printable(text)).replace("@", "\uff20").replace("://", ":\u2044\u2044")
    shown = _WWW.sub("\\1\u2024", _ISSUE.sub("\uff03", shown))
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\u2026"


def inert(lines: list[str]) -> str:
    """Return lines as a comment in which no character acts that a terminal or a CI log would obey."""
    return "".join(f"{printable(line)}\n" for line in lines)
