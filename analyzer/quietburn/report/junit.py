"""The results of `gate` and `compare` as JUnit XML (the dialect of Jenkins' xunit plugin, junit-10).

A case is a failure when the ledger is at fault, an error when it could not be judged, and skipped
when what it needs is not there.
"""

import xml.etree.ElementTree as ET  # only written here, never parsed
from collections.abc import Iterable
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

_FAILING = ("page", "ticket")  # an info is told, and fails nothing


@dataclass(frozen=True)
class _Case:
    name: str
    says: str
    kind: str = ""  # failure, error, skipped, or nothing for a pass
    type: str = ""


def gate_junit(report: GateReport) -> str:
    """Return a suite of the gate's checks and one of the rules."""
    checks = [_check(check) for check in report.checks]
    return _document("quietburn gate", {"gate": checks, "rules": [_rule(rule) for rule in report.rules]})


def compare_junit(report: ComparisonReport) -> str:
    """Return a suite with one case a difference; a comparison judges nothing, so none of them fails."""
    return _document("quietburn compare", {"compare": [_compared(difference) for difference in report.differences]})


def _check(check: CheckReport) -> _Case:
    kinds = {Verdict.PASS: "", Verdict.FAIL: "failure", Verdict.UNDECIDED: "error"}
    return _Case(check.name, check.says, kinds[check.counts_as], check.outcome)


def _rule(rule: RuleReport) -> _Case:
    kinds = {"fired": "failure" if rule.severity in _FAILING else "", "errored": "error", "not_evaluated": "skipped"}
    return _Case(rule.rule, rule.says, kinds.get(rule.outcome, ""), rule.severity or rule.outcome)


def _compared(difference: DifferenceReport) -> _Case:
    values = f"{words.level(difference.before, difference.unit)} to {words.level(difference.after, difference.unit)}"
    says = f"{difference.label}: {values}; {difference.says}"
    return _Case(difference.name, says, "skipped" if difference.verdict is Standing.REFUSED else "", difference.verdict)


def _document(name: str, suites: dict[str, list[_Case]]) -> str:
    every = [case for cases in suites.values() for case in cases]
    root = ET.Element("testsuites", {"name": name, **_numbers(every)})
    for suite, cases in suites.items():
        skipped = str(sum(case.kind == "skipped" for case in cases))
        element = ET.SubElement(root, "testsuite", {"name": suite, **_numbers(cases), "skipped": skipped})
        for case in cases:
            _add(element, f"{name}.{suite}".replace(" ", "."), case)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


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
