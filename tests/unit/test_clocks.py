"""Clocks of two writers that disagree are said, corrected, and blamed on nobody."""

from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, report_of

from quietburn.report.model import Report

Events = list[dict[str, Any]]


def handed_over(number: int, lead_s: float, *, wait_s: float = 0.1, writers: tuple[str | None, str | None]) -> Events:
    """Return a call that the first writer saw fail at once, and the second, whose clock is ahead, answered in 2 s of 30."""
    start = T0 + 20 * number
    call = {"route": "/v1/chat/completions", "request_id": f"q{number}", "deadline_ms": 30000}
    first = call | {"ts": start + 0.5, "attempt": 1, "backend": "a", "status": 503, "latency_ms": 500}
    answer = call | {"ts": start + 2.5 + wait_s + lead_s, "attempt": 2, "backend": "b", "status": 200, "latency_ms": 2000,
                     "finish_reason": "stop", "answer_chars": 9, "stream": False}  # fmt: skip
    named = [{} if writer is None else {"gateway": writer} for writer in writers]
    return [first | named[0], answer | named[1]]


def compared(report: Report) -> set[str]:
    """Return the rules above info that spoke."""
    return {finding.rule for finding in report.findings if finding.severity != "info"}


@pytest.mark.parametrize("lead_s", [90, 31, -5, -90])
def test_a_gateway_with_a_wrong_clock_is_named_and_its_calls_judged_by_the_right_time(lead_s: float, tmp_path: Path) -> None:
    events = [event for n in range(20) for event in handed_over(n, lead_s, writers=("gw-1", "gw-2"))]
    # Without calls the other way or within one gateway the wait of 0.1 s can't be told from the clock's lead.
    said = f"{abs(lead_s + 0.1):.1f} s {'ahead of' if lead_s > 0 else 'behind'} the others"

    report = report_of(tmp_path, events)

    assert compared(report) == {"clock-skew"}
    assert report.rates.usable_rate == 1.0
    assert [said in notice and "gw-" in notice for notice in report.notices if "Clock skew" in notice] == [True]


def test_calls_that_pass_both_ways_tell_the_skew_without_the_wait(tmp_path: Path) -> None:
    """Each way twenty calls; ten within the first gateway tell the wait of half a second."""
    events = [event for n in range(20) for event in handed_over(n, -40, wait_s=0.5, writers=("gw-1", "gw-2"))]
    events += [event for n in range(20, 40) for event in handed_over(n, 40, wait_s=0.5, writers=("gw-2", "gw-1"))]
    events += [event for n in range(40, 50) for event in handed_over(n, 0, wait_s=0.5, writers=("gw-1", "gw-1"))]

    report = report_of(tmp_path, events)

    (notice,) = [notice for notice in report.notices if "Clock skew" in notice]
    assert "40.0 s" in notice
    assert compared(report) == {"clock-skew"}


def test_where_nobody_tells_who_wrote_a_line_early_retries_are_not_blamed_on_callers(tmp_path: Path) -> None:
    """Refused for 4 s, came 5 s later; every other line is by a host whose clock is 20 s behind, and no field tells which."""
    events: Events = []
    for number in range(40):
        lead = -20 if number % 2 else 0
        first, again = handed_over(number, lead, wait_s=5, writers=(None, None))
        events += [first | {"backend": "a", "status": 429, "retry_after_s": 4, "decision": "reject"}, again | {"backend": "a"}]

    report = report_of(tmp_path, events)

    assert compared(report) == {"clock-skew"}
    assert any("no field names the writer of a line" in notice for notice in report.notices)


@pytest.mark.parametrize("writer", ["gw-1", None])
def test_a_failover_after_the_deadline_within_one_clock_is_too_late(writer: str | None, tmp_path: Path) -> None:
    events = [event for n in range(20) for event in handed_over(n, 0, wait_s=31, writers=(writer, writer))]

    report = report_of(tmp_path, events)

    assert "failover-too-late" in compared(report)
    assert "clock-skew" not in compared(report)


def test_attempts_are_ordered_by_their_numbers_and_not_by_their_clocks(tmp_path: Path) -> None:
    """One call alone proves no skew; its second attempt is still the one that answered."""
    report = report_of(tmp_path, handed_over(0, -30, writers=("gw-1", "gw-2")))

    assert (report.rates.requests, report.rates.usable) == (1, 1)
