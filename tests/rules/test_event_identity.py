"""An event is itself wherever it lies: event rules find the same in packed lines and in files of one name as one a line.

What they find one a line is promised by hand in each rule's expected.json.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.rules.helpers import RULE_IDS, RULES, ledger_lines, ledger_path, only, report_on, rule, write_lines

from quietburn.analysis.run import Request, analyze
from quietburn.dialects.mapping import Events, Mapping, shipped_mappings
from quietburn.report.model import FindingReport, Report
from quietburn.ruleset.files import load_rule

EVENT_RULES = [rule_id for rule_id in RULE_IDS if rule(rule_id).classify]
A_LINE = 5  # events


def packed_gateway() -> Mapping:
    """Return the gateway's dialect with several events a line."""
    gateway = next(m for m in shipped_mappings() if m.dialect.name == "gateway")
    return gateway.model_copy(update={"recognise": type(gateway.recognise)(), "events": Events(path="/batch/*")})


def packed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"batch": events[first : first + A_LINE]} for first in range(0, len(events), A_LINE)]


def found(report: Report, numbers: dict[tuple[int, int | None], int] | None = None) -> list[dict[str, Any]]:
    """Return findings with the number of each event in the place of its line and item."""
    assert report.errored == []
    return [
        finding.model_dump(exclude={"evidence"}) | {"evidence": evidence_of(finding, numbers)} for finding in report.findings
    ]


def evidence_of(finding: FindingReport, numbers: dict[tuple[int, int | None], int] | None) -> list[int]:
    return [numbers[e.line, e.item] if numbers else e.line for e in finding.evidence]


def places(events: int) -> dict[tuple[int, int | None], int]:
    """Return each event's number, from 1, by the line and item where `packed` puts it."""
    return {(i // A_LINE + 1, i % A_LINE + 1): i + 1 for i in range(events)}


@pytest.mark.parametrize("rule_id", EVENT_RULES)
def test_packed_lines_give_what_the_same_events_give_one_a_line(rule_id: str, tmp_path: Path) -> None:
    events = ledger_lines(rule_id, "fires")
    ledger = write_lines(tmp_path / "fires.jsonl", packed(events))

    report = analyze([str(ledger)], only(rule_id, mapping=packed_gateway()))

    assert report.findings
    assert found(report, places(len(events))) == found(report_on(rule_id, "fires"))


@pytest.mark.parametrize("rule_id", EVENT_RULES)
@pytest.mark.parametrize("form", ["one-a-line", "packed"])
def test_a_store_with_a_rewritten_file_gives_what_one_file_gives(rule_id: str, form: str, tmp_path: Path) -> None:
    events = ledger_lines(rule_id, "fires")
    middle = len(events) // 2
    pack = form == "packed"
    request = replace(only(rule_id, mapping=packed_gateway() if pack else None), store=tmp_path / "nights.duckdb")
    ledger = tmp_path / "fires.jsonl"
    for part in (events[:middle], events[middle:]):  # the second takes the first one's place, under its name
        write_lines(ledger, packed(part) if pack else part)
        analyze([str(ledger)], request)

    report = analyze([], request)

    assert [file.path for file in report.ledger.files] == [str(ledger)] * 2
    whole = report_on(rule_id, "fires")
    assert [unplaced(finding) for finding in report.findings] == [unplaced(finding) for finding in whole.findings]


def unplaced(finding: FindingReport) -> dict[str, Any]:
    """Return a finding with the number of its evidence alone: which file of the name a line is of isn't said."""
    return finding.model_dump(exclude={"evidence"}) | {"evidence": len(finding.evidence)}


def test_a_file_that_is_shipped_again_with_one_line_more_counts_each_of_its_events_once(tmp_path: Path) -> None:
    """Whole seconds and no id: the lines of both may be two events each, and count as such, but never as four."""
    lines = [{"ts": 1_767_225_600 + i * 5, "decision": "allow", "inflight": 9, "status": 200} for i in range(40)]
    request = Request(only=("over-envelope",), settings=("over-envelope.inflight_cap=8",), store=tmp_path / "nights.duckdb")
    ledger = tmp_path / "night.jsonl"
    for first in ([], [{"ts": 1_767_225_500, "decision": "allow", "inflight": 1, "status": 200}]):
        write_lines(ledger, first + lines)
        analyze([str(ledger)], request)

    report = analyze([], request)

    assert [finding.count for finding in report.findings] == [80]


def test_an_event_rule_that_returns_an_event_twice_is_errored(tmp_path: Path) -> None:
    text = (RULES / "over-envelope.toml").read_text(encoding="utf-8").replace('id = "over-envelope"', 'id = "twice"')
    once = "SELECT event_id, inflight, $inflight_cap AS inflight_cap\nFROM events\n"
    assert once in text
    twice = text.replace(once, once.replace("FROM events", "FROM (SELECT * FROM events UNION ALL SELECT * FROM events)"))
    (tmp_path / "twice.toml").write_text(twice, encoding="utf-8")
    request = Request(rules=(load_rule(tmp_path / "twice.toml"),), settings=("twice.inflight_cap=8",))

    report = analyze([str(ledger_path("over-envelope", "fires"))], request)

    assert [(error.rule, error.problem.split(":")[0]) for error in report.errored] == [("twice", "classify.sql")]
    assert "events more than once" in json.dumps(report.model_dump(mode="json")["errored"])
