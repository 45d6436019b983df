"""A real LiteLLM behind a real nginx: what its log says of each kind of call, and the rates against what callers got."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from fixtures.gateways.compare import compare
from fixtures.gateways.lab import RUNS, play
from fixtures.gateways.litellm import INSTALL, is_installed
from tests.gateways.nginx import require_nginx
from tests.missing import unavailable

from quietburn.analysis.run import Request, analyzing
from quietburn.common.config import Config

PLAYED = sorted(path for path in RUNS.iterdir() if path.is_dir())
# What becomes of a call of each scene, in LiteLLM's log; what the callers of the lab do is told by fixtures/gateways/scenes.py.
SAID: dict[str, dict[str, Any]] = {
    "answer": {"status": 200, "attempt": 1, "read_timeout_ms": 5000, "stream": False, "verdict": "usable", "decision": None},
    "tool": {"status": 200, "non_empty": True, "verdict": "usable"},
    "empty": {"status": 200, "non_empty": False, "verdict": "empty"},
    # The finish reason of a stream proves nothing, and a read timeout is no deadline of it.
    "stream": {"status": 200, "stream": True, "complete": None, "finish_reason": None, "deadline_ms": 9000},
    "left-stream": {"status": 200, "client_closed": True, "complete": False, "verdict": "abandoned"},
    "too-long": {"status": 400, "verdict": "invalid"},
    "against-policy": {"status": 400, "error": "BadRequestError", "verdict": "invalid"},
    "gone": {"status": 404, "verdict": "invalid"},
    "no-such-model": {"status": 400, "verdict": "invalid"},
    "wrong-key": {"status": 401, "verdict": "invalid"},
    "fail": {"status": 500, "error": "InternalServerError", "verdict": "failed"},
    "cut-stream": {"status": 500, "error": "APIConnectionError", "verdict": "failed"},
    "shed": {"status": 429, "reason": "vendor_rate_limit", "decision": None, "verdict": "refused"},
    "probe": {"traffic": "probe", "traffic_source": "label"},
}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def scene_of(line: dict[str, Any], truth: list[dict[str, Any]]) -> str:
    """Return the scene of a line's call, by the id that its answer carried, or the end of its prompt."""

    def is_of(call: dict[str, Any]) -> bool:
        answered = line["litellm_call_id"] in {attempt.get("litellm") for attempt in call["attempts"]}
        return answered or f" {call['id'][:6]}" in str(line["messages"])

    return next(str(call["scenario"]) for call in truth if is_of(call))


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Plays one call of each scene; returns the last event of each, of two callers beyond their limit the refused one."""
    require_nginx()
    if not is_installed():
        unavailable(INSTALL)
    folder = tmp_path_factory.mktemp("played")
    play(dict.fromkeys(SAID, 1) | {"over-limit": 2}, folder)
    truth, lines = read(folder / "truth.jsonl.gz"), read(folder / "litellm.jsonl.gz")
    plain = folder / "litellm.jsonl"
    plain.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with analyzing([str(plain)], Request(config=Config.model_validate({"deadline_ms": 9000}))) as run:
        rows = run.engine.select("SELECT * FROM all_events ORDER BY status, line").to_pylist()
    return {scene_of(lines[row["line"] - 1], truth): row for row in rows}


@pytest.mark.parametrize("scene", SAID)
def test_each_kind_of_call_is_read_for_what_its_caller_got(scene: str, events: dict[str, dict[str, Any]]) -> None:
    assert {name: events[scene].get(name) for name in SAID[scene]} == SAID[scene]


def test_a_retry_carries_its_number_and_the_id_and_key_of_its_request(events: dict[str, dict[str, Any]]) -> None:
    shed = events["shed"]
    assert (shed["attempt"], shed["nth"], shed["of_request"]) == (3, 3, 3)
    assert shed["idempotency_key"] == f"key-{shed['request_id']}"


def test_what_litellm_refuses_itself_is_our_own_refusal(events: dict[str, dict[str, Any]]) -> None:
    limit = events["over-limit"]
    assert (limit["status"], limit["decision"], limit["reason"]) == (429, "reject", "litellm_rate_limit")


@pytest.mark.parametrize("folder", PLAYED, ids=lambda folder: folder.name)
def test_the_usable_rate_is_the_one_that_the_callers_would_recognise(folder: Path) -> None:
    assert [row for row in compare(folder) if not row.agrees] == []


def test_the_runs_have_faults_of_every_kind() -> None:
    for folder in PLAYED:
        found = {call["outcome"] for call in read(folder / "truth.jsonl.gz")}
        assert {"usable", "late", "timeout", "empty", "broken", "failed", "invalid", "left"} <= found
    assert len(PLAYED) >= 2
