"""Rules that look at callers one by one, on ledgers with so many that only a sample of their calls is looked at."""

import random
from pathlib import Path
from typing import Any

from tests.rules.helpers import write_lines

from quietburn.analysis.run import Request, analyze

CLOCKS, PEOPLE, CALLS = 100, 1000, 40


def call(caller: str, second: float) -> dict[str, Any]:
    return {
        "ts": round(1_767_225_600 + second, 3), "client": caller, "status": 200, "latency_ms": 0, "prompt_tokens": 12,
        "completion_tokens": 4,
    }


def test_clocks_among_a_thousand_callers_are_found_by_a_sample_and_all_their_calls_count(tmp_path: Path) -> None:
    """2,048 stretches of 32 calls are looked at, so of 1,100 callers one stretch each: some 32 of the 40 calls."""
    dice = random.Random(1)  # noqa: S311 - calls, no secrets
    lines = [call(f"clock-{n}", n + 60 * beat) for n in range(CLOCKS) for beat in range(CALLS)]
    lines += [call(f"person-{n}", dice.uniform(0, 60 * CALLS)) for n in range(PEOPLE) for _ in range(CALLS)]
    ledger = write_lines(tmp_path / "night.jsonl", sorted(lines, key=lambda line: line["ts"]))

    report = analyze([str(ledger)], Request(only=("unlabelled-probe",)))

    assert report.errored == []
    assert {finding.subject["client"] for finding in report.findings} == {f"clock-{n}" for n in range(CLOCKS)}
    assert {finding.count for finding in report.findings} == {CALLS}
    assert {finding.observed["period_s"] for finding in report.findings} == {60}
    assert {finding.observed["attempts"] for finding in report.findings} == {CALLS}
