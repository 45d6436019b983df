"""What a call is for: by the name of its route, its operation, or the ending of its path."""

from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, Reading, jsonl, read

from quietburn.common.callkinds import CallKind
from quietburn.dialects.routes import Lists, RouteTable, pattern_of, shipped_routes


def read_lines(folder: Path, *events: dict[str, Any]) -> Reading:
    path = folder / "ledger.jsonl"
    path.write_bytes(jsonl(events))
    return read(path)


GENERATE, READY, EMBED, LIST, TOOL, OTHER = CallKind

GENERATING_PATHS = (
    "/v1/chat/completions", "/openai/v1/chat/completions", "/v1/chat/completions/", "/v1/chat/completions?api-version=1#top",
    "POST /v1/chat/completions HTTP/1.1", "https://llm.example:8443/team-a/v1/completions", "//v1//responses",
    "/openai/deployments/gpt-4o/chat/completions", "/openai/deployments/gpt-4o/completions?api-version=2026-01-01",
    "/anthropic/v1/messages", "/engines/codegen/completions",
    "/generate", "/generate_stream", "/v2/models/ensemble/generate", "/v2/models/llama/versions/1/generate_stream",
    "/api/chat", "/ollama/api/generate", "/invocations", "/endpoints/llm/invocations",
    "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse-stream", "/model/m/invoke",
    "/bedrock/model/m/invoke-with-response-stream",
    "/v1beta/models/gemini-pro:generateContent", "/v1beta/models/gemini-pro:streamGenerateContent?alt=sse",
    "/v1/projects/p/locations/us/publishers/anthropic/models/claude:streamRawPredict", "/V1/Chat/Completions",
)
OTHER_PATHS = {
    "/health": READY, "/healthz": READY, "/v2/health/live": READY, "/v2/models/llama/ready": READY, "/health/liveliness": READY,
    "/health_generate": READY, "/proxy/readyz?verbose": READY, "GET /ping HTTP/1.1": READY,
    "/v1/embeddings": EMBED, "/openai/deployments/ada/embeddings": EMBED, "/api/embed": EMBED, "/v2/rerank": EMBED,
    "/v1/messages/count_tokens": EMBED, "/v1beta/models/emb:embedContent": EMBED, "/v1/moderations": EMBED,
    "/v1/audio/transcriptions": EMBED, "/v1/images/generations": EMBED, "/model/amazon.titan-embed-text-v2%3A0/invoke": EMBED,
    "/v1/models": LIST, "/v1/models/gpt-4o": LIST, "/metrics": LIST, "/api/tags": LIST, "/docs": LIST, "/get_model_info": LIST,
    "/mcp": TOOL, "/mcp/": TOOL, "/gateway/mcp/tools": TOOL, "/mcp/v1/messages": TOOL,
    "/key/generate": OTHER, "/v1/uploads/up_1/complete": OTHER, "/v1/threads/thread_1/messages": OTHER,
    "/x/run": OTHER, "/autocomplete": OTHER, "/v1/chat/completions/export": OTHER, "/": OTHER,
}


@pytest.mark.parametrize("path", GENERATING_PATHS)
def test_a_path_that_real_servers_answer_at_generates_whatever_stands_before_it(path: str) -> None:
    told = shipped_routes().tell(path=path)
    assert (told.kind, told.if_shown) == (GENERATE, GENERATE)
    assert shipped_routes().tell(route=path) == told, "a route may be given by its path"


@pytest.mark.parametrize(("path", "kind"), OTHER_PATHS.items())
def test_a_path_that_answers_nobody_is_told_by_its_ending(path: str, kind: CallKind) -> None:
    assert shipped_routes().tell(path=path).kind is kind


@pytest.mark.parametrize("path", ["/v1/embeddings", "/health", "/v1/models", "/mcp", "/key/generate"])
def test_what_a_line_shows_does_not_outweigh_a_listed_path(path: str) -> None:
    told = shipped_routes().tell(path=path)
    assert told.if_shown is told.kind


@pytest.mark.parametrize(("said", "kind", "if_shown"), [
    ({"path": "/x/run"}, OTHER, GENERATE),
    ({"path": "/v1/chat/completions", "method": "OPTIONS"}, OTHER, OTHER),
    ({"path": "/v1/chat/completions", "method": "head"}, OTHER, OTHER),
    ({"path": "GET /v1/chat/completions HTTP/2"}, OTHER, GENERATE),
    ({"path": "/v1/models", "method": "GET"}, LIST, LIST),
    ({"path": "/health", "method": "GET"}, READY, READY),
    ({"route": "complete", "path": "/health"}, GENERATE, GENERATE),
    ({"route": "rag", "path": "/v1/embeddings"}, GENERATE, GENERATE),
    ({"route": "embeddings", "path": "/v1/chat/completions"}, EMBED, EMBED),
    ({"route": "Readyz"}, READY, READY),
    ({"route": "-", "path": "/v1/models"}, LIST, LIST),
    ({"route": "/api", "path": "/v1/messages"}, GENERATE, GENERATE),
    ({"operation": "acompletion"}, GENERATE, GENERATE),
    ({"operation": "aembedding"}, EMBED, EMBED),
    ({"operation": "execute_tool"}, TOOL, TOOL),
    ({"operation": "avector_store_search"}, OTHER, OTHER),
    ({"operation": "pass_through", "path": "/v1/messages"}, GENERATE, GENERATE),
    ({}, GENERATE, GENERATE),
])
def test_the_first_that_applies_holds(said: dict[str, str], kind: CallKind, if_shown: CallKind) -> None:
    told = shipped_routes().tell(**said)
    assert (told.kind, told.if_shown) == (kind, if_shown)


def test_what_the_user_lists_comes_first() -> None:
    shipped = shipped_routes()
    own: Lists = {GENERATE: ("/x/run", "/team/*/ask", "pass_through"), TOOL: ("rag",), OTHER: ("/internal/**",)}
    table = RouteTable(shipped.exceptions, shipped.endings, shipped.names, shipped.operations, own)
    assert table.tell(path="/v1/x/run?a=1").kind is GENERATE
    assert table.tell(path="/team/blue/ask").kind is GENERATE
    assert table.tell(operation="pass_through").kind is GENERATE
    assert table.tell(route="rag", path="/v1/chat/completions").kind is TOOL
    assert table.tell(path="/internal/v1/chat/completions").kind is OTHER
    assert table.tell(path="/v1/chat/completions").kind is GENERATE


def test_a_pattern_keeps_no_id() -> None:
    assert pattern_of("/v1/threads/thread_8aZ/runs?key=secret") == "/v1/threads/*/runs"
    assert pattern_of("/files/averylongsegmentoflettersonly/content/") == "/files/*/content"


@pytest.mark.parametrize("shown", [
    {"completion_tokens": 5}, {"ttft_ms": 40}, {"finish_reason": "stop"}, {"answer_chars": 3}, {"stream": True},
])
def test_a_path_in_no_list_generates_where_the_line_shows_it(tmp_path: Path, shown: dict[str, object]) -> None:
    line = {"path": "/x/run", "status": 200, "latency_ms": 900}
    events = read_lines(tmp_path, line | {"ts": T0} | shown, line | {"ts": T0 + 1, "completion_tokens": 0}).events
    assert (events[1]["kind"], events[1]["route"], events[1]["path"]) == ("generate", "complete", "/x/run")
    assert (events[2]["kind"], events[2]["route"]) == ("other", "/x/run")


def test_the_first_byte_of_an_access_log_shows_no_generation(tmp_path: Path) -> None:
    line = {"msec": str(T0), "request_time": "0.2", "status": "200", "uri": "/app.js",
            "upstream_response_time": "0.1", "upstream_header_time": "0.1"}
    assert read_lines(tmp_path, line).events[1]["kind"] == "other"


def test_a_check_is_a_probe_unless_the_line_says_otherwise(tmp_path: Path) -> None:
    line = {"path": "/health", "status": 200, "latency_ms": 9}
    events = read_lines(tmp_path, line | {"ts": T0}, line | {"ts": T0 + 1, "traffic": "user"}).events.values()
    told = [(event["kind"], event["traffic"], event["traffic_source"]) for event in events]
    assert told == [("ready", "probe", "path"), ("ready", "user", "label")]
