"""Numbers that no arithmetic can hold, in every place where a transform reads one: each costs its field, with a reason."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import conserved, read

from quietburn.dialects.guarded import Transform
from quietburn.dialects.transforms import TRANSFORMS

HUGE = "9e9999999"

NGINX = {
    "msec": "1767000009.850", "request_id": "ab12", "uri": "/v1/chat/completions", "status": "200", "request_time": "9.750",
    "request_completion": "OK", "upstream_addr": "10.1.2.3:8000, 10.1.2.4:8000", "upstream_status": "504, 200",
}  # fmt: skip
SPEND = {
    "request_id": "c1", "call_type": "acompletion",
    "startTime": "2026-09-01T10:00:00.000Z", "endTime": "2026-09-01T10:00:06.200Z",
    "model_group": "pro", "status": "success", "total_tokens": 11, "prompt_tokens": 7, "completion_tokens": 4,
    "api_key": "k", "spend": 0.1, "request_tags": [], "metadata": {"attempted_retries": 0},
}  # fmt: skip
AIPERF = {
    "metadata": {"x_request_id": "r0", "request_start_ns": 1767000000100000000, "request_end_ns": 1767000009850000000,
                 "benchmark_phase": "profiling", "was_cancelled": False},
    "metrics": {"request_latency": {"value": 9750.0, "unit": "ms"}},
}  # fmt: skip

LINES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("a retry count", NGINX, {"http_x_stainless_retry_count": HUGE}, "attempt"),
    ("a sum of times", NGINX, {"upstream_response_time": "9e999999, 9e999999"}, "upstream_ms"),
    ("a header time", NGINX, {"upstream_response_time": "9e999999, 9e999999", "upstream_header_time": "-, 9e999999"}, "ttft_ms"),
    ("a spend log's retries", SPEND, {"metadata": {"attempted_retries": HUGE}}, "attempt"),
    ("a number in a unit", AIPERF, {"metrics": {"time_to_first_token": {"value": "HUGE", "unit": "s"}}}, "ttft_ms"),
]


@pytest.mark.parametrize(("base", "changed", "field"), [line[1:] for line in LINES], ids=[line[0] for line in LINES])
def test_a_number_beyond_all_bounds_is_one_unknown_value(
    base: dict[str, Any], changed: dict[str, Any], field: str, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text(json.dumps(base | changed).replace('"HUGE"', HUGE) + "\n", encoding="utf-8")
    reading = read(path)
    assert conserved(reading.counts)
    assert (reading.counts.lines, reading.counts.events, reading.counts.quarantined) == (1, 1, 0)
    assert (1, field, "out_of_range") in reading.invalid
    assert field not in reading.events[1]


def failing(_: object) -> None:
    raise RuntimeError("a case that nobody thought of")


@pytest.mark.parametrize("name", ["plus_one", "item_sum"])
def test_a_transform_that_fails_costs_its_field(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRANSFORMS, name, Transform(failing, 1, "fails"))
    path = tmp_path / "ledger.jsonl"
    line = NGINX | {"http_x_stainless_retry_count": "1", "upstream_response_time": "1.0"}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    reading = read(path)
    field = {"plus_one": "attempt", "item_sum": "upstream_ms"}[name]
    assert reading.counts.events == 1
    assert reading.invalid == [(1, field, "not_a_number")]
