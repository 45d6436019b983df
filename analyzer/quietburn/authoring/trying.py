"""Try a rule on its fixtures: compare what it finds with what its case expects.

Also each flip and edge of the case, and in a checkout the fault that is planted into the healthy day.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from quietburn.analysis.run import Analysis, Request, analyze, analyzing
from quietburn.authoring.checkout import Checkout
from quietburn.evaluate.rules import Outcome, classify
from quietburn.report.model import FindingReport
from quietburn.ruleset.files import parse_settings
from quietburn.ruleset.rule import Rule

_QUIET = "quiet"
_DAY_TEST = "tests/days/test_planted_faults.py::test_a_planted_fault_is_found_by_its_rule_and_by_no_other"


def differences(rule: Rule, folder: Path) -> Iterator[str]:
    """Yield what a rule does on the ledgers of its fixtures' folder that its expected.json doesn't say."""
    made = folder / "expected.json"
    if not made.is_file():
        yield f"{made} is missing; run `python fixtures/rules/make.py {rule.id}`."
        return
    expected = json.loads(made.read_text(encoding="utf-8"))
    for ledger in expected["findings"]:
        with analyzing([str(folder / f"{ledger}.jsonl")], _request(rule, expected["settings"])) as analysis:
            yield from (f"{ledger}.jsonl: {words}" for words in _on_ledger(analysis, expected, ledger))
            yield from (f"{ledger}.jsonl: {words}" for words in _edges(analysis, expected, ledger))
    for flip in expected["flips"]:
        yield from _flip(rule, folder, expected, flip)


def on_the_day(place: Checkout, rule_id: str) -> str:
    """Return what pytest says of the rule's planted fault; nothing where the rule finds it and no other does."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", f"{_DAY_TEST}[{rule_id}]"]
    done = subprocess.run(command, cwd=place.root, capture_output=True, text=True, check=False)  # noqa: S603
    return (done.stdout + done.stderr).strip() if done.returncode else ""


def _request(rule: Rule, settings: Mapping[str, float]) -> Request:
    return Request(rules=(rule,), settings=tuple(f"{rule.id}.{name}={number!r}" for name, number in settings.items()))


def _on_ledger(analysis: Analysis, expected: dict[str, Any], ledger: str) -> Iterator[str]:
    """Yield how the findings of one ledger differ from the expected ones."""
    report = analysis.report
    yield from (f"the rule failed: {fault.problem}" for fault in report.errored)
    yield from (f"the rule was not evaluated; missing: {', '.join(lack.missing)}" for lack in report.not_evaluated)
    found = list(report.findings)
    for want in expected["findings"][ledger]:
        lines = expected["scenarios"][ledger][want["scenario"]]
        near = [one for one in found if one.subject == want["subject"] and _names(one, lines)]
        if not near:
            yield f"{want['scenario']}: expected a {want['severity']} on {want['subject']}, found nothing"
            continue
        one = min(near, key=lambda each: abs(each.count - want["count"]))
        found.remove(one)
        yield from (f"{want['scenario']}: {words}" for words in _unlike(one, want))
    for one in found:
        names = [name for name, lines in expected["scenarios"][ledger].items() if _names(one, lines)]
        yield f"{' and '.join(names)}: found a {one.severity} on {one.subject} that was not expected"


def _names(finding: FindingReport, lines: list[int]) -> bool:
    """Whether a finding's evidence names lines from the first to the last of a scenario."""
    return any(lines[0] <= place.line <= lines[1] for place in finding.evidence)


def _unlike(one: FindingReport, want: dict[str, Any]) -> Iterator[str]:
    found = {
        "severity": one.severity, "count": one.count, "flagged": [one.alert_window.start, one.alert_window.end],
        "window": [one.window.start, one.window.end], "evidence": [place.line for place in one.evidence],
    }  # fmt: skip
    yield from (f"{key} is {value}, expected {want[key]}" for key, value in found.items() if value != want[key])
    for name, value in want["observed"].items():
        if not _same(one.observed.get(name), value):
            yield f"observed {name} is {_shown(one.observed.get(name))}, expected {_shown(value)}"


def _shown(value: float | None) -> str:
    return str(value) if value is None or isinstance(value, bool) else f"{value:g}"


def _same(found: float | None, wanted: float | None) -> bool:
    if found is None or wanted is None or isinstance(wanted, bool):
        return found == wanted
    return abs(found - wanted) <= max(1e-9 * abs(wanted), 1e-12)


def _flip(rule: Rule, folder: Path, expected: dict[str, Any], flip: dict[str, Any]) -> Iterator[str]:
    """Yield how a ledger's verdicts differ from those that a flip expects of moved parameters."""
    ledger = flip["ledger"]
    moved = ", ".join(f"{name} = {number:g}" for name, number in flip["set"].items())
    report = analyze([str(folder / f"{ledger}.jsonl")], _request(rule, expected["settings"] | flip["set"]))
    places = expected["scenarios"][ledger]
    found = {name: one.severity for one in report.findings for name, lines in places.items() if _names(one, lines)}
    for name in sorted({*found, *flip["findings"]}):
        is_, wanted = found.get(name, _QUIET), flip["findings"].get(name, _QUIET)
        if is_ != wanted:
            yield f"{ledger}.jsonl with {moved}: {name} is {is_}, expected {wanted}"


def _edges(analysis: Analysis, expected: dict[str, Any], ledger: str) -> Iterator[str]:
    """Yield the edges at which a verdict doesn't turn as the case says."""
    ((rule, usual),) = analysis.rules
    for edge in expected.get("edges", ()):
        if edge["ledger"] != ledger:
            continue
        for number, wanted in _around(edge, rule).items():
            moved = {**edge["settings"], edge["parameter"]: number}
            settings = parse_settings((f"{rule.id}.{name}={value!r}" for name, value in moved.items()), (rule,))
            (result,) = classify(analysis.engine, [(rule, usual | settings[rule.id])])
            first, last = expected["scenarios"][ledger][edge["scenario"]]
            here = (f for f in result.findings if any(first <= place.line <= last for place in f.evidence))
            found = next((finding.severity.value for finding in here), _QUIET)
            if result.outcome is Outcome.ERRORED or found != wanted:
                yield f"edge of {edge['parameter']}: at {number!r} {edge['scenario']} is {found}, expected {wanted}"


def _around(edge: dict[str, Any], rule: Rule) -> dict[float, str]:
    """Return what is expected just below, at and just above the edge's number, where the parameter may go there."""
    number = float(Fraction(edge["number"]))
    step = number / 1_000_000 if edge["step"] is None else edge["step"]
    least, most = rule.parameters[edge["parameter"]].range
    around = {number - step: edge["below"], number: edge["at"], number + step: edge["above"]}
    return {value: verdict for value, verdict in around.items() if least <= value <= most}
