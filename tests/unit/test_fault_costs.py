"""Naming the values that became unknown costs less than reading the lines that hold them."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import Reading, read

LINES = 20_000
NGINX = {
    "uri": "/v1/chat/completions", "status": "200", "request_completion": "OK", "bytes_sent": "20411",
    "upstream_addr": "10.1.2.3:8000", "upstream_status": "200", "upstream_response_time": "3.001",
}  # fmt: skip


def measured(folder: Path, faulty: Any) -> tuple[float, Reading]:
    """Return the CPU seconds of loading, and what was read, where `faulty` says which lines have a bad value."""
    path = folder / "ledger.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for number in range(LINES):
            took = "late" if faulty(number) else "0.5"
            members = NGINX | {"msec": f"{1767000009 + number}.5", "request_id": f"r{number}", "request_time": took}
            stream.write(json.dumps(members) + "\n")
    start = time.process_time()
    reading = read(path)
    return time.process_time() - start, reading


@pytest.mark.parametrize("every", [LINES, 8], ids=["one line", "one line in eight"])
def test_bad_values_cost_less_than_the_data(every: int, tmp_path: Path) -> None:
    measured(tmp_path, lambda _: False)  # imports and caches
    clean, reading = measured(tmp_path, lambda _: False)
    assert reading.counts.invalid_values == 0
    faulty, reading = measured(tmp_path, lambda number: number % every == 0)
    assert reading.counts.invalid_values == LINES // every
    assert faulty < 1.75 * clean


def test_every_bad_value_of_a_line_is_named_with_its_reason(tmp_path: Path) -> None:
    lines = [
        {"ts": 1788833640, "request_id": "a", "status": 200, "latency_ms": -1, "prompt_tokens": 2.5, "stream": "maybe"},
        {"ts": 1788833641, "request_id": "b", "status": 200, "latency_ms": 5, "prompt_tokens": 3, "cached_tokens": 4},
        {"ts": 1788833642, "request_id": "c", "status": 200, "latency_ms": 5},
        {"ts": "never", "request_id": "d", "status": 200, "latency_ms": -1},  # refused: its fields are not named
    ]
    path = tmp_path / "ledger.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    reading = read(path)
    assert reading.invalid == [
        (1, "latency_ms", "negative"), (1, "prompt_tokens", "not_integral"), (1, "stream", "not_a_flag"),
        (2, "cached_tokens", "more_than_whole"),
    ]  # fmt: skip
    assert reading.counts.invalid_values == 4
