"""Whose word on a deadline counts in LiteLLM's log: a declared one, then what is configured, then the SDK's read timeout."""

import json
from pathlib import Path
from typing import Any

import pytest

from quietburn.analysis.run import Request, analyze
from quietburn.common.config import Config

# An answer of 5 s.
CALL: dict[str, Any] = {
    "id": "a", "call_type": "acompletion", "status": "success", "startTime": 1767000000.0, "endTime": 1767000005.0,
    "response_time": 5.0, "model": "m", "model_parameters": {"stream": False},
    "response": {"choices": [{"finish_reason": "stop", "message": {"content": "Paris."}}]},
}
READ_3S, DECLARED_4S = {"x-stainless-read-timeout": "3.0"}, {"x-deadline-ms": "4000"}


@pytest.mark.parametrize(
    ("headers", "configured", "verdict"),
    [
        ({}, None, "unknown"),
        (READ_3S, None, "late"),
        (READ_3S, 30_000, "usable"),
        (READ_3S | DECLARED_4S, 30_000, "late"),
        ({"x-litellm-timeout": "6"} | READ_3S, None, "usable"),
    ],
)
def test_a_read_timeout_stands_in_where_no_deadline_is_declared_or_configured(
    headers: dict[str, str], configured: float | None, verdict: str, tmp_path: Path
) -> None:
    path = tmp_path / "payloads.jsonl"
    path.write_text(json.dumps(CALL | {"metadata": {"requester_custom_headers": headers}}) + "\n")
    config = Config.model_validate({"deadline_ms": configured} if configured else {})
    rates = analyze([str(path)], Request(config=config)).rates
    assert {name for name, count in rates.verdicts.items() if count} == {verdict}


def test_a_read_timeout_is_no_deadline_of_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "payloads.jsonl"
    streamed = CALL | {"stream": True, "model_parameters": {"stream": True}, "completionStartTime": 1767000001.0}
    path.write_text(json.dumps(streamed | {"metadata": {"requester_custom_headers": READ_3S}}) + "\n")
    assert analyze([str(path)], Request()).rates.verdicts["late"] == 0
