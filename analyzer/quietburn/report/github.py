"""The results of `analyze`, `gate` and `compare` as GitHub workflow commands: annotations of the run.

The commands' escapes are those of GitHub's toolkit (`%`, CR and LF everywhere; `:` and `,` in
properties too).
"""

from collections.abc import Iterator

from quietburn.report import incident_words, words
from quietburn.report.model import Report
from quietburn.report.printable import printable
from quietburn.report.verdict import ComparisonReport, GateReport, Standing, Verdict

_LEVELS = {Verdict.FAIL: "error", Verdict.UNDECIDED: "error", Verdict.PASS: "notice"}
_FINDING_LEVELS = {"page": "warning", "ticket": "warning"}


def report_github(report: Report) -> str:
    """Return an annotation for each incident and each rule that failed, and how many incidents there are; no caller is named."""
    lines = [
        command(
            _FINDING_LEVELS.get(incident.severity, "notice"), f"quietburn: {incident.severity} {incident.rule}",
            f"{incident_words.when(incident, report)} {incident_words.what(incident)}",
        )
        for incident in report.incidents
    ]  # fmt: skip
    lines += [command("warning", f"quietburn: {e.rule} could not be judged", e.problem) for e in report.errored]
    rates = f"success {words.percent(report.rates.success_rate)}, usable {words.percent(report.rates.usable_rate)}"
    return "".join(f"{line}\n" for line in (*lines, f"quietburn analyze: {incident_words.how_many(report)}; {rates}"))


def gate_github(report: GateReport) -> str:
    """Return an annotation for each check that didn't simply pass, each rule that fired or failed, and the verdict."""
    return "".join(f"{line}\n" for line in (*_checks(report), *_rules(report), f"quietburn gate: {words.verdict(report)}"))


def compare_github(report: ComparisonReport) -> str:
    """Return a notice for each difference that is one, and how many were refused."""
    lines = [
        command("notice", f"quietburn compare: {difference.label}", difference.says)
        for difference in report.differences
        if difference.verdict is Standing.DIFFERENCE
    ]
    left = len(report.differences) - len(lines)
    summary = f"quietburn compare: {len(lines)} differences, {left} not measurable or not compared"
    return "".join(f"{line}\n" for line in (*lines, summary))


def _checks(report: GateReport) -> Iterator[str]:
    for check in report.checks:
        if check.counts_as is not Verdict.PASS or check.notice:
            yield command(_LEVELS[check.counts_as], f"quietburn gate: {check.name} ({check.counts_as})", check.says)
    for advice in report.advice:
        yield command("error", "quietburn gate: advice", advice)


def _rules(report: GateReport) -> Iterator[str]:
    for rule in report.rules:
        if rule.outcome == "fired":
            yield command(_FINDING_LEVELS.get(rule.severity or "", "notice"), f"quietburn: {rule.rule}", rule.says)
        elif rule.outcome == "errored":
            yield command("warning", f"quietburn: {rule.rule} could not be judged", rule.says)


def command(level: str, title: str, message: str) -> str:
    """Return one workflow command; nothing in the title or message can end it or start another."""
    shown = _data(printable(title)).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={shown}::{_data(printable(message))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
