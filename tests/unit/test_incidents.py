"""Findings become incidents: what overlaps and shares a cause is one, and is charged once."""

from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, report_of

from quietburn.analysis.run import Request
from quietburn.common.limits import MINUTE_US
from quietburn.evaluate.findings import Confidence, Finding
from quietburn.evaluate.incidents import group
from quietburn.report.model import Report
from quietburn.ruleset.severity import Severity

EXPLAINED = {"hang": frozenset({"late", "outage"}), "late": frozenset({"outage"}), "broken": frozenset({"outage"})}


def finding(
    rule: str, minutes: tuple[int, int], severity: Severity = Severity.PAGE, *, count: int = 10, **subject: str
) -> Finding:
    return Finding(
        rule=rule, run=0, severity=severity, confidence=Confidence.LIKELY, subject=subject, observed={},
        start_us=minutes[0] * MINUTE_US, end_us=minutes[1] * MINUTE_US, first_flagged_us=0, last_flagged_us=0,
        inference="", action="", count=count, evidence=(),
    )  # fmt: skip


def test_what_a_finding_explains_is_of_its_incident_directly_or_through_another() -> None:
    outage, late, hang = (finding(rule, (0, 5)) for rule in ("outage", "late", "hang"))
    # The hang explains two of the others, the late answers one.
    assert group([outage, late, hang], EXPLAINED, {}) == [(2, 0, 1)]


def test_what_explains_most_is_no_cause_where_something_explains_it_in_turn() -> None:
    # The late answers explain three outages; the hang, a ticket, explains only the late answers.
    late = finding("late", (0, 9), route="complete")
    outages = [finding("outage", (start, start + 2), route="complete") for start in (1, 4, 7)]
    hang = finding("hang", (0, 2), Severity.TICKET, route="complete", backend="gpu-1")
    assert group([late, *outages, hang], {**EXPLAINED, "hang": frozenset({"late"})}, {}) == [(4, 0, 1, 2, 3)]


def test_findings_more_than_ten_minutes_apart_are_two_incidents() -> None:
    late = finding("late", (0, 5))
    assert group([late, finding("outage", (15, 20))], EXPLAINED, {}) == [(0, 1)]
    assert group([late, finding("outage", (16, 20))], EXPLAINED, {}) == [(0,), (1,)]
    assert group([finding("outage", (16, 20)), late], EXPLAINED, {}) == [(0,), (1,)]


def test_what_is_over_does_not_follow_from_what_begins_later() -> None:
    outage = finding("outage", (0, 5))
    assert group([outage, finding("late", (5, 9))], EXPLAINED, {}) == [(1, 0)]
    assert group([outage, finding("late", (6, 9))], EXPLAINED, {}) == [(0,), (1,)]


def test_a_finding_explains_another_only_where_both_are_of_the_same_route_and_backend() -> None:
    hang = finding("hang", (0, 5), route="complete", backend="gpu-1")
    here, there = finding("late", (0, 5), route="complete"), finding("late", (0, 5), route="embed")
    elsewhere = finding("outage", (0, 5), route="complete", backend="gpu-2")
    assert group([hang, here], EXPLAINED, {}) == [(0, 1)]
    assert group([hang, there], EXPLAINED, {}) == [(0,), (1,)]
    assert group([hang, elsewhere], EXPLAINED, {}) == [(0,), (1,)]


def test_what_is_wrong_with_a_backend_explains_all_that_it_is_asked_for() -> None:
    # The hang was seen where readiness is asked, the late answers where answers are.
    hang = finding("hang", (0, 5), route="ready", backend="gpu-1")
    assert group([hang, finding("late", (0, 5), route="complete", backend="gpu-1")], EXPLAINED, {}) == [(0, 1)]


@pytest.mark.parametrize(("shared", "expected"), [(4, [(0,), (1,)]), (5, [(0, 1)])])
def test_half_of_the_smaller_ones_attempts_in_common_is_a_shared_cause(shared: int, expected: list[tuple[int, ...]]) -> None:
    several = [finding("a", (0, 5), count=100), finding("b", (0, 5), count=10)]
    assert group(several, {}, {(0, 1): shared}) == expected


def test_one_rule_on_backends_that_failed_together_is_one_incident() -> None:
    both = [finding("hang", (minute, minute + 5), backend=name) for minute, name in ((3, "gpu-0"), (0, "gpu-1"))]
    # Nothing explains either, so that the one that started first leads.
    assert group(both, EXPLAINED, {}) == [(1, 0)]


def test_two_faults_are_not_joined_by_consequences_that_look_alike() -> None:
    late, hides = finding("late", (0, 5)), finding("outage", (0, 5))
    broken, hides_too = finding("broken", (14, 20)), finding("outage", (16, 20))
    assert group([late, hides, broken, hides_too], EXPLAINED, {}) == [(0, 1), (2, 3)]


def test_where_nothing_explains_more_the_more_severe_is_the_cause_and_then_the_earlier() -> None:
    shared = {(0, 1): 10, (0, 2): 10, (1, 2): 10}
    ticket, page, later = finding("a", (0, 5), Severity.TICKET), finding("b", (2, 5)), finding("c", (3, 5))
    assert group([ticket, later, page], {}, shared) == [(2, 0, 1)]


# From a ledger


def late(second: float, **fields: Any) -> dict[str, Any]:
    usual = {
        "route": "complete", "status": 200, "client": "app-1", "latency_ms": 3000, "deadline_ms": 1000, "stream": True,
        "terminal_seen": True, "prompt_tokens": 10, "completion_tokens": 5,
    }
    return {"ts": T0 + second} | usual | fields


def broken(second: float, number: int) -> dict[str, Any]:
    return late(second, request_id=f"b{number}", latency_ms=500, terminal_seen=False, client="app-2")


def analyzed(folder: Path, lines: list[dict[str, Any]], *rules: str) -> Report:
    return report_of(folder, lines, request=Request(only=rules))


RULES = ("late-but-200", "success-hides-outage", "truncated-as-success")


def test_two_faults_of_a_night_are_two_incidents_that_count_each_request_once(tmp_path: Path) -> None:
    lines = [late(i, request_id=f"r{i}") for i in range(20)]
    lines.append(late(20, request_id="r19", attempt=2))  # one request, late twice
    lines += [broken(36 * 60 + i, i) for i in range(30)]
    report = analyzed(tmp_path, lines, *RULES)

    told = [
        ([report.findings[place].rule for place in one.findings], one.window.start[11:16], one.window.end[11:16],
         one.requests_not_served, one.tokens, [entry["client"] for entry in one.who])
        for one in report.incidents
    ]  # fmt: skip
    assert told == [
        (["truncated-as-success", "success-hides-outage"], "02:50", "02:51", 30, 30 * 15, ["app-2"]),
        (["late-but-200", "success-hides-outage"], "02:14", "02:15", 20, 21 * 15, ["app-1"]),
    ]
    assert all(one.title == report.findings[one.findings[0]].title for one in report.incidents)
    assert sorted(place for one in report.incidents for place in one.findings) == list(range(len(report.findings)))


def test_cost_counts_all_events_and_not_only_the_evidence_that_is_shown(tmp_path: Path) -> None:
    report = analyzed(tmp_path, [late(i, request_id=f"r{i}") for i in range(50)], *RULES)
    (incident,) = report.incidents
    assert (incident.requests_not_served, incident.tokens) == (50, 50 * 15)
    assert len(report.findings[0].evidence) == 20


def test_a_page_starts_with_its_first_minute_as_a_page(tmp_path: Path) -> None:
    """One answer broke off at 02:14, which is worth an info; the fault comes at 02:54."""
    lines = [broken(0, 0)] + [broken(40 * 60 + i, i) for i in range(1, 7)]
    report = analyzed(tmp_path, lines, "truncated-as-success")
    (found,) = report.findings
    assert (found.severity, found.count) == ("page", 6)
    # The minute that ends at 02:55 is the first in which three broke off.
    assert found.alert_window.start == "2026-09-08T02:55:00Z"
    assert found.window.start == "2026-09-08T02:54:00Z"
    assert [evidence.line for evidence in found.evidence] == [2, 3, 4, 5, 6, 7]


def quiet_node(second: float, **fields: Any) -> dict[str, Any]:
    idle = {"queue_age_ms": 15, "cpu_pct": 12, "prompt_tokens": 1500, "completion_tokens": 40, "latency_ms": 500}
    return late(second, backend="gpu-1", request_id=f"q{second}", **idle | fields)


@pytest.mark.parametrize(("noisy", "confidence"), [({}, "possible"), ({"prefix_noisy": True}, "likely")])
def test_a_finding_without_its_corroborating_signal_is_only_possible(
    noisy: dict[str, Any], confidence: str, tmp_path: Path
) -> None:
    lines = [quiet_node(5 * i, **noisy) for i in range(12)]
    (found,) = analyzed(tmp_path, lines, "cache-busting-prefix").findings
    assert found.confidence == confidence
