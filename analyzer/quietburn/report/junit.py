"""The results of `gate` and `compare` as JUnit XML (the dialect of Jenkins' xunit plugin, junit-10).

A case is a failure where a threshold of the command's own failed, an error when it could not be
judged, and skipped when what it needs is not there. What the rules found besides makes nothing
red: it stands in the suite's properties and in its output.
"""

import xml.etree.ElementTree as ET  # only written here, never parsed
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quietburn.report import words
from quietburn.report.printable import printable
from quietburn.report.verdict import (
    CheckReport,
    ComparisonReport,
    DifferenceReport,
    GateReport,
    RuleReport,
    Standing,
    Verdict,
)

_TOLD = ("fired", "errored")  # what a reader of the output wants to know of the rules


@dataclass(frozen=True)
class _Case:
    name: str
    says: str
    kind: str = ""  # failure, error, skipped, or nothing for a pass
    type: str = ""


def gate_junit(report: GateReport) -> str:
    """Return a suite of the gate's checks, with the rules' outcomes beside them."""
    return _document("quietburn gate", "gate", [_check(check) for check in report.checks], report.rules)


def compare_junit(report: ComparisonReport) -> str:
    """Return a suite with one case a difference; a comparison judges nothing, so none of them fails."""
    return _document("quietburn compare", "compare", [_compared(difference) for difference in report.differences])


def _check(check: CheckReport) -> _Case:
    kinds = {Verdict.PASS: "", Verdict.FAIL: "failure", Verdict.UNDECIDED: "error"}
    return _Case(check.name, check.says, kinds[check.counts_as], check.outcome)


def _compared(difference: DifferenceReport) -> _Case:
    values = f"{words.level(difference.before, difference.unit)} to {words.level(difference.after, difference.unit)}"
    says = f"{difference.label}: {values}; {difference.says}"
    return _Case(difference.name, says, "skipped" if difference.verdict is Standing.REFUSED else "", difference.verdict)


def _document(name: str, suite: str, cases: list[_Case], rules: Sequence[RuleReport] = ()) -> str:
    root = ET.Element("testsuites", {"name": name, **_numbers(cases)})
    skipped = str(sum(case.kind == "skipped" for case in cases))
    element = ET.SubElement(root, "testsuite", {"name": suite, **_numbers(cases), "skipped": skipped})
    if rules:
        _add_properties(element, rules)
    for case in cases:
        _add(element, f"{name}.{suite}".replace(" ", "."), case)
    told = [f"{rule.rule} ({rule.severity or rule.outcome}): {rule.says}" for rule in rules if rule.outcome in _TOLD]
    if told:
        ET.SubElement(element, "system-out").text = "\n".join(printable(line) for line in told)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add_properties(suite: ET.Element, rules: Sequence[RuleReport]) -> None:
    """Add one property a rule: its outcome, or the severity of what it found."""
    properties = ET.SubElement(suite, "properties")
    for rule in rules:
        ET.SubElement(properties, "property", name=f"rule.{rule.rule}", value=rule.severity or rule.outcome)


def _numbers(cases: Iterable[_Case]) -> dict[str, str]:
    kinds = [case.kind for case in cases]
    return {"tests": str(len(kinds)), "failures": str(kinds.count("failure")), "errors": str(kinds.count("error"))}


def _add(suite: ET.Element, classname: str, case: _Case) -> None:
    element = ET.SubElement(suite, "testcase", name=printable(case.name), classname=classname)
    if case.kind:
        # What XML 1.0 can't hold (controls, surrogates) is shown as its escape by then.
        ET.SubElement(element, case.kind, type=printable(case.type), message=printable(case.says))
    else:
        ET.SubElement(element, "system-out").text = printable(case.says)
