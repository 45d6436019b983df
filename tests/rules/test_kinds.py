"""Windowed rules and event rules: what a file may not mix, and what both give."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.rules.helpers import RULES, report_on, write_lines

from quietburn.analysis.run import Request, analyze
from quietburn.ruleset.rule import Rule


def content(rule_id: str) -> dict[str, Any]:
    return tomllib.loads((RULES / f"{rule_id}.toml").read_text(encoding="utf-8"))


def refusal(changed: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as refused:
        Rule.model_validate(changed)
    return str(refused.value)


def test_a_rule_is_of_one_kind() -> None:
    window = content("saturation")["window"]

    assert "either `window` with `minutes`, or `classify`" in refusal(content("over-envelope") | {"window": window})
    neither = {key: value for key, value in content("over-envelope").items() if key != "classify"}
    assert "either `window` with `minutes`, or `classify`" in refusal(neither)


def test_the_select_of_an_event_rule_is_all_that_counts() -> None:
    mixed = content("over-envelope") | {"events": {"requests": "is_attempt"}}

    assert "its SELECT says what counts" in refusal(mixed)


def test_only_an_event_rule_may_take_the_most_of_a_minute() -> None:
    most = {"most": "max(inflight)"}

    assert "minutes.most must be one sum(...)" in refusal(content("saturation") | {"minutes": most})
    assert Rule.model_validate(content("over-envelope") | {"minutes": most}).reduced_columns == most


def test_a_median_of_a_minute_is_refused_with_the_reason_and_where_to_read_how_else() -> None:
    refused = refusal(content("saturation") | {"minutes": {"usual": "median(latency_ms)"}})

    assert "minutes.usual must be one sum(...)" in refused
    assert "medians of minutes don't add up to a window's (CONTRIBUTING.md, Medians)" in refused


def test_a_windowed_rule_says_what_counts_against_its_subject() -> None:
    silent = content("saturation")
    del silent["finding"]["evidence"]

    assert "needs minutes (or events) and finding.evidence" in refusal(silent)


def test_a_grade_of_an_event_rule_looks_back_an_hour_at_most() -> None:
    long = content("over-envelope")
    long["classify"]["grades"][0]["window"] = "2h"

    assert "a grade over more than an hour" in refusal(long)


def test_only_what_is_observed_is_summed() -> None:
    summed = content("over-envelope")
    summed["classify"]["summed"] = ["queue_depth"]

    assert "sums a column that it doesn't observe" in refusal(summed)


def test_evidence_of_an_event_rule_is_bounded_and_its_count_is_true() -> None:
    finding = max(report_on("unlabelled-probe", "fires").findings, key=lambda f: f.count)

    assert (finding.count, len(finding.evidence)) == (36, 20)


def test_an_event_rule_below_its_least_grade_finds_nothing(tmp_path: Path) -> None:
    text = (RULES / "over-envelope.toml").read_text(encoding="utf-8").replace("events_5m >= 1", "events_5m >= 3")
    judged = Rule.model_validate(tomllib.loads(text))
    line = {"status": 200, "decision": "allow", "inflight": 9}
    twice = write_lines(tmp_path / "twice.jsonl", [line | {"ts": 1_767_225_601 + i} for i in range(2)])
    thrice = write_lines(tmp_path / "thrice.jsonl", [line | {"ts": 1_767_225_601 + i} for i in range(3)])
    request = Request(rules=(judged,), settings=("over-envelope.inflight_cap=8",))

    assert analyze([str(twice)], request).quiet == ["over-envelope"]
    assert [finding.count for finding in analyze([str(thrice)], request).findings] == [3]


@pytest.mark.parametrize(("gap_s", "found"), [(3600, 1), (3601, 2)])
def test_more_than_an_hour_without_an_event_starts_another_finding(gap_s: int, found: int, tmp_path: Path) -> None:
    line = {"status": 200, "decision": "allow", "inflight": 9}
    ledger = write_lines(tmp_path / "gap.jsonl", [line | {"ts": 1_767_225_601}, line | {"ts": 1_767_225_601 + gap_s}])

    report = analyze([str(ledger)], Request(only=("over-envelope",), settings=("over-envelope.inflight_cap=8",)))

    assert len(report.findings) == found
