"""On a healthy day nobody is paged and nobody gets a ticket, whatever the dice."""

from pathlib import Path
from typing import Any

import pytest
from fixtures.days.healthy import Event, healthy_day, write_day

from quietburn.analysis.run import Request, analyze
from quietburn.common.config import Config
from quietburn.report.model import Report

# Every number that a rule wants configured, so that no rule is quiet for lack of one.
CONFIG = Config.model_validate({
    "max_retries": 2, "inflight_cap": 64, "hourly_token_cap": 60_000_000,
    "rules": {"hopeless-admission": {"min_slack_ms": 1500}, "oversized-prompt": {"max_prompt_tokens": 16_000}},
})  # fmt: skip


def analyzed(events: list[Event], folder: Path) -> Report:
    path = folder / "day.jsonl"
    write_day(events, path)
    return analyze([str(path)], Request(config=CONFIG))


def raised(report: Report) -> list[dict[str, Any]]:
    """Return what would wake somebody or lie on their desk."""
    return [
        {"rule": finding.rule, "severity": finding.severity, "window": finding.window, "observed": finding.observed}
        for finding in report.findings if finding.severity != "info"
    ]  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_a_healthy_day_raises_no_page_and_no_ticket_by_any_rule(seed: int, tmp_path: Path) -> None:
    report = analyzed(healthy_day(seed), tmp_path)

    assert report.rates.requests >= 200_000
    assert report.not_evaluated == []
    assert report.errored == []
    assert raised(report) == []


@pytest.mark.parametrize("change", [
    {"finish_reason": None, "terminal_seen": False, "stream_complete": False}, {"answer_chars": 0},
], ids=["cut", "empty"])  # fmt: skip
def test_a_single_cut_or_empty_answer_stays_info(change: dict[str, object], tmp_path: Path) -> None:
    events = healthy_day(6)
    answered = [event for event in events if event.get("finish_reason") == "stop" and event["attempt"] == 1]
    answered[len(answered) // 2].update(change)

    report = analyzed(events, tmp_path)

    assert raised(report) == []
    assert sum(report.rates.verdicts[name] for name in ("truncated", "empty")) == 1
