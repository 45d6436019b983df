"""A rule that compares a window with a longer one names the events that are worse, not the first of the window."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.rules.helpers import RULES, defaults, write_lines

from quietburn.analysis.run import Request, analyze
from quietburn.engine.binding import undeclared
from quietburn.ruleset.lint import lint
from quietburn.ruleset.rule import Rule

START = 1_767_225_600
SLOW = "is_2xx AND completion_tokens / latency_ms < $least * window.hour_rate / 1000"


def comparative(evidence: str = SLOW) -> Rule:
    """Return a rule that fires where tokens per second of five minutes fall to half of the hour's."""
    usual = tomllib.loads((RULES / "late-but-200.toml").read_text(encoding="utf-8"))
    return Rule.model_validate({
        "rule": usual["rule"] | {
            "id": "answers-slowed", "severity": "ticket", "needs": ["ts", "status", "completion_tokens", "latency_ms"],
        },
        "parameters": {"least": {"default": 0.5, "unit": "share", "meaning": "share of the hour's rate"}},
        "minutes": {
            "tokens": "sum(CASE WHEN is_2xx THEN completion_tokens ELSE 0 END)",
            "seconds": "sum(CASE WHEN is_2xx THEN latency_ms / 1000 ELSE 0 END)",
        },
        "window": {
            "observed": {
                "rate": "tokens_5m / seconds_5m", "hour_rate": "tokens_1h / seconds_1h",
                "drop": "(tokens_1h / seconds_1h) / (tokens_5m / seconds_5m)",
            },
            "grades": [
                {"severity": "ticket", "window": "5m", "flag": "tokens_5m / seconds_5m <= $least * tokens_1h / seconds_1h"}
            ],
        },
        "finding": {"evidence": evidence, "worst_by": "drop", "inference": "Slower.", "action": "Look."},
        "alert": {"none": "a test"},
        "runbook": usual["runbook"],
    })  # fmt: skip


def slowed() -> list[dict[str, Any]]:
    """Return fifty minutes of ten answers at 100 tokens a second, then three of five such and twenty at 10."""
    lines = [answer(minute, 2 + 5 * i, 1_000) for minute in range(50) for i in range(10)]
    for minute in range(50, 53):
        lines += [answer(minute, 2 + i, 1_000) for i in range(5)] + [answer(minute, 20 + i, 10_000) for i in range(20)]
    return lines


def answer(minute: int, second: float, latency_ms: float) -> dict[str, Any]:
    return {"ts": START + 60 * minute + second, "status": 200, "completion_tokens": 100, "latency_ms": latency_ms}


def test_evidence_compared_with_its_window_names_the_slow_answers_alone(tmp_path: Path) -> None:
    lines = slowed()
    ledger = write_lines(tmp_path / "slowed.jsonl", lines)

    (finding,) = analyze([str(ledger)], Request(rules=(comparative(),))).findings

    # In the hour 575 answers of 100 tokens in 515 * 1 s and 60 * 10 s.
    assert finding.observed["hour_rate"] == pytest.approx(57_500 / 1_115)
    assert finding.count == 60
    assert {lines[place.line - 1]["latency_ms"] for place in finding.evidence} == {10_000}


def test_such_evidence_keeps_to_the_subset_and_to_what_the_rule_declares() -> None:
    rule = comparative()

    assert lint(rule, defaults(rule)) == []
    assert undeclared(rule, defaults(rule)) == []


def test_evidence_can_read_only_what_the_window_observes() -> None:
    with pytest.raises(ValidationError, match=r"finding.evidence reads window.median, which is not in window.observed"):
        comparative("latency_ms > window.median")
