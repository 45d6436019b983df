"""Whose word on a deadline counts, in any log: a declared one, else the longer of read timeout and configuration."""

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
READ_8S = {"x-stainless-read-timeout": "8.0"}
READ_DEFAULT = {"x-stainless-read-timeout": "600"}  # which OpenAI's SDK sends where nobody set a timeout


@pytest.mark.parametrize(
    ("headers", "configured", "verdict"),
    [
        ({}, None, "unknown"),
        (READ_3S, None, "late"),
        (READ_3S, 4_000, "late"),
        (READ_3S, 30_000, "usable"),
        (READ_8S, 4_000, "usable"),
        (READ_DEFAULT, 4_000, "late"),
        (READ_DEFAULT, None, "usable"),
        (READ_3S | DECLARED_4S, 30_000, "late"),
        ({"x-litellm-timeout": "6"} | READ_3S, None, "usable"),
    ],
)
def test_late_is_past_a_declared_deadline_or_past_both_the_configured_one_and_the_read_timeout(
    headers: dict[str, str], configured: float | None, verdict: str, tmp_path: Path
) -> None:
    path = tmp_path / "payloads.jsonl"
    path.write_text(json.dumps(CALL | {"metadata": {"requester_custom_headers": headers}}) + "\n")
    config = Config.model_validate({"deadline_ms": configured} if configured else {})
    rates = analyze([str(path)], Request(config=config)).rates
    assert {name for name, count in rates.verdicts.items() if count} == {verdict}


# The same call as nginx logs it.
NGINX = {
    "msec": "1767000005.000", "request_time": "5.000", "status": "200", "request_method": "POST",
    "uri": "/v1/chat/completions", "sent_http_content_type": "application/json",
}


@pytest.mark.parametrize(
    ("headers", "configured", "verdict"),
    [
        ({"http_x_stainless_read_timeout": "3"}, 4_000, "late"),
        ({"http_x_stainless_read_timeout": "3"}, 30_000, "usable"),
        ({"http_x_stainless_read_timeout": "8"}, 4_000, "usable"),
        ({"http_x_stainless_read_timeout": "600"}, 4_000, "late"),
        ({"http_x_stainless_read_timeout": "3", "http_x_deadline_ms": "8000"}, 4_000, "usable"),
    ],
)
def test_the_order_is_the_same_in_a_proxy_s_log(
    headers: dict[str, str], configured: float, verdict: str, tmp_path: Path
) -> None:
    path = tmp_path / "access.jsonl"
    path.write_text(json.dumps(NGINX | headers) + "\n")
    rates = analyze([str(path)], Request(config=Config.model_validate({"deadline_ms": configured}))).rates
    assert {name for name, count in rates.verdicts.items() if count} == {verdict}


def test_a_read_timeout_is_no_deadline_of_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "payloads.jsonl"
    streamed = CALL | {"stream": True, "model_parameters": {"stream": True}, "completionStartTime": 1767000001.0}
    path.write_text(json.dumps(streamed | {"metadata": {"requester_custom_headers": READ_3S}}) + "\n")
    assert analyze([str(path)], Request()).rates.verdicts["late"] == 0
