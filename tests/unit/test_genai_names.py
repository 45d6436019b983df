"""Each name under which conventions and vendors write a fact into GenAI spans, in both forms of spans."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import read

from quietburn.dialects.mapping import shipped_mappings
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.engine.settings import Settings
from quietburn.records.inputs import LedgerFile

CHAT = {"gen_ai.operation.name": "chat"}
TEXT_PARTS = [{"role": "assistant", "parts": [{"type": "text", "content": "Paris."}]}]
# column, name of the attribute, what it holds, what the column holds then
NAMES: list[tuple[str, str, Any, Any]] = [
    ("backend", "gen_ai.provider.name", "openai", "openai"),
    ("backend", "gen_ai.system", "openai", "openai"),  # until v1.36
    ("model", "gen_ai.request.model", "m", "m"),
    ("model", "gen_ai.response.model", "m", "m"),
    ("prompt_tokens", "gen_ai.usage.input_tokens", 7, 7),
    ("prompt_tokens", "gen_ai.usage.prompt_tokens", 7, 7),
    ("completion_tokens", "gen_ai.usage.output_tokens", 7, 7),
    ("completion_tokens", "gen_ai.usage.completion_tokens", 7, 7),
    ("actual_tokens", "llm.usage.total_tokens", 7, 7),
    ("actual_tokens", "gen_ai.usage.total_tokens", 7, 7),
    ("cached_tokens", "gen_ai.usage.cache_read.input_tokens", 7, 7),
    ("cached_tokens", "gen_ai.usage.cache_read_input_tokens", 7, 7),
    ("reasoning_tokens", "gen_ai.usage.reasoning.output_tokens", 7, 7),
    ("reasoning_tokens", "gen_ai.usage.reasoning_tokens", 7, 7),
    ("reasoning_tokens", "llm.usage.reasoning_tokens", 7, 7),
    ("finish_reason", "gen_ai.response.finish_reasons", ["length"], "length"),
    ("finish_reason", "gen_ai.response.finish_reason", "length", "length"),
    ("finish_reason", "gen_ai.response.stop_reason", "length", "length"),
    ("finish_reason", "llm.response.finish_reason", "length", "length"),
    ("finish_reason", "llm.finish_reason", "length", "length"),
    ("ttft_ms", "gen_ai.response.time_to_first_chunk", 0.5, 500),  # in seconds
    ("ttft_ms", "gen_ai.latency.time_to_first_token", 0.5, 500),
    ("queue_age_ms", "gen_ai.latency.time_in_queue", 0.25, 250),
    ("stream", "gen_ai.request.stream", True, True),
    ("stream", "gen_ai.is_streaming", True, True),
    ("stream", "llm.is_streaming", True, True),
    ("answer_chars", "gen_ai.output.messages", json.dumps(TEXT_PARTS), 6),
    ("answer_chars", "gen_ai.completion.0.content", "Paris.", 6),
    ("status", "error.type", "500", 500),
    ("error", "error.type", "timeout", "timeout"),
]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": value}


def as_otlp(attributes: dict[str, Any], number: int = 1, second: int = 0) -> dict[str, Any]:
    """Return the line of the collector's file exporter for one span, by the second in which it begins."""
    listed = [{"key": key, "value": _value(value)} for key, value in attributes.items()]
    span = {
        "traceId": "aa", "spanId": f"{number:02}", "attributes": listed,
        "startTimeUnixNano": f"176700000{second}000000000", "endTimeUnixNano": "1767000010000000000",
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def as_document(attributes: dict[str, Any], number: int = 1) -> dict[str, Any]:
    """Return one span as a trace of a document a line."""
    times = {"start_time": "2025-12-29T09:20:00Z", "end_time": "2025-12-29T09:20:01Z"}
    return {"trace_id": "aa", "spans": [{"trace_id": "aa", "span_id": f"{number:02}", **times, "attributes": attributes}]}


@pytest.mark.parametrize("form", [as_otlp, as_document])
def test_each_name_of_a_fact_is_read(form: Any, tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    lines = [form(CHAT | {name: holds}, number) for number, (_, name, holds, _) in enumerate(NAMES, 1)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    events = read(path).events
    assert [(column, name, events[line].get(column)) for line, (column, name, *_) in enumerate(NAMES, 1)] == [
        (column, name, wanted) for column, name, _, wanted in NAMES
    ]


@pytest.mark.parametrize("operation", ["chat", "text_completion", "generate_content"])
def test_what_generates_is_a_call_for_an_answer(operation: str, tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    older = {"llm.request.type": "completion" if operation == "text_completion" else operation}
    lines = [as_otlp({"gen_ai.operation.name": operation}, 1), as_otlp(older, 2)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [event["route"] for event in read(path).events.values()] == ["complete", "complete"]


def test_spans_in_any_order_are_events_in_the_order_of_their_times(tmp_path: Path) -> None:
    one = CHAT | {"gen_ai.request.id": "one"}
    later, earlier = as_otlp(one, 1, second=9), as_otlp(one, 2, second=1)
    path = tmp_path / "spans.jsonl"
    path.write_text(json.dumps(later) + "\n" + json.dumps(earlier) + "\n")
    with DuckEngine(known=shipped_mappings(), threads=2) as engine:
        engine.load([LedgerFile("spans", path)])
        engine.prepare(Settings())
        rows = engine.select("SELECT line, nth FROM all_events ORDER BY line").to_pylist()
    assert rows == [{"line": 1, "nth": 2}, {"line": 2, "nth": 1}]  # two attempts of one request
