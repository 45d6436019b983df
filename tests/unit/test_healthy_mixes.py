"""A healthy ledger is healthy whatever its mix of streams, of which no log says how they ended, and whole answers."""

from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, report_of

USUAL = {"route": "complete", "status": 200, "latency_ms": 400, "deadline_ms": 2000}
STREAM = USUAL | {"stream": True}  # neither its end nor its length is logged
WHOLE = USUAL | {"stream": False, "finish_reason": "stop", "answer_chars": 80}
MIXES = {
    "streams": [STREAM] * 60,
    "whole answers": [WHOLE] * 60,
    "both": [STREAM] * 60 + [WHOLE] * 60,
    "both and eight whole ones more": [STREAM] * 60 + [WHOLE] * 68,
}


@pytest.mark.parametrize("mix", MIXES)
def test_every_mix_of_healthy_answers_has_the_same_rates(mix: str, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [line | {"ts": T0 + n, "request_id": f"r{n}"} for n, line in enumerate(MIXES[mix])]
    rates = report_of(tmp_path, lines).rates
    assert (rates.success_rate, rates.usable_rate, rates.judged_share) == (1.0, 1.0, 1.0)
    assert rates.usable == rates.judged == len(lines)


@pytest.mark.parametrize("mix", MIXES)
def test_one_late_answer_in_ten_costs_every_mix_the_same(mix: str, tmp_path: Path) -> None:
    lines = [line | {"ts": T0 + n, "request_id": f"r{n}"} for n, line in enumerate(MIXES[mix][:60])]
    for line in lines[::10]:
        line["latency_ms"] = 3000
    assert report_of(tmp_path, lines).rates.usable_rate == 0.9
