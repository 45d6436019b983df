"""The sentences beside the two rates say what the numbers can't."""

import json
from pathlib import Path

import quietburn
from quietburn.report.words import usable

T0 = 1_788_833_640  # 2026-09-08T02:14:00Z


def test_a_rate_without_deadlines_is_not_said_to_leave_none_open(tmp_path: Path) -> None:
    # Two empty answers: known not to be usable. Whether any answer came in time is known for none of them.
    path = tmp_path / "night.jsonl"
    empty = {"route": "complete", "status": 200, "latency_ms": 300, "answer_chars": 0, "finish_reason": "stop"}
    path.write_text("".join(json.dumps({"ts": T0 + n, **empty}) + "\n" for n in range(2)), encoding="utf-8")
    rates = quietburn.analyze(path).rates
    assert (rates.usable_rate, rates.unknown, rates.verdicts["empty"]) == (None, 0, 2)
    assert usable(rates) == "can't be measured; on time is unknown for most 2xx answers"
