"""Spoiling a field of any line never makes a ledger look better.

What spoils a value is what no field can hold: then nobody knows what it was. Every field of every
fixture is spoilt, ids and times among them. What can't hold, and why:

- A request of which the first attempt's id is spoilt is judged from its second attempt on: that this
  one had a first is written nowhere else. Each such line may make one request usable more, and no more.
- A line that no dialect knows any more is counted as no request; what it was an attempt of is not known.
- A list of events that is spoilt as a whole takes an unknown number of them with it, so lists and objects
  that hold others stay.
- A value that is spoilt into another good one, an empty list of tags into none, or gone altogether is no
  spoilt one. `complete` and `non_empty` never make a request unknown (what-counts), so a ledger that never
  logs them is judged without.

`QUIETBURN_FUZZ=20` tries twenty times as many.
"""

import json
import os
import random
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.ledgers import T0, jsonl

from quietburn.analysis.run import Request, analyze, analyzing
from quietburn.judge.compare import take_side
from quietburn.judge.gate import Asked, Threshold, decide
from quietburn.report.model import Report
from quietburn.report.verdict import Verdict

_ROOT = Path(__file__).parents[2] / "fixtures"
_TIMES = int(os.environ.get("QUIETBURN_FUZZ", "1"))
_SPOILT: tuple[Any, ...] = ({}, [], [None], {"spoilt": 1}, [[]], "\x00")
_LINES = 60
_IDS = frozenset({
    "request_id", "id", "trace_id", "traceId", "span_id", "spanId", "session_id", "litellm_call_id", "http_x_request_id",
    "x-request-id", "x_request_id", "idempotency_key", "idempotency-key",
})  # fmt: skip


class Counts(NamedTuple):
    """Usable requests, the calls that are bad, unknown or left out (refused, other kinds, no request), the last by itself."""

    usable: int
    others: int
    no_requests: int


@cache
def ledgers() -> dict[str, tuple[str, ...]]:
    """Return the first lines of each dialect's ledger and of each rule's that fires, by name."""
    found = [*_ROOT.glob("dialects/*/ledger.jsonl"), *_ROOT.glob("rules/*/fires.jsonl")]
    return {path.parent.name: tuple(path.read_text(encoding="utf-8").splitlines()[:_LINES]) for path in sorted(found)}


def judged(path: Path) -> Report:
    return analyze([str(path)], Request(rules=(), threads=1))


def counted(report: Report) -> Counts:
    verdicts = report.rates.verdicts
    ledger = report.ledger
    no_requests = ledger.not_a_request + ledger.other_items
    left_out = sum(entry.events for entry in report.left_out) + ledger.quarantined + ledger.bad_items + no_requests
    return Counts(verdicts["usable"], sum(verdicts.values()) - verdicts["usable"] + left_out, no_requests)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and key of every value of a record that holds no others."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if isinstance(inner, dict | list):
            yield from places(inner)
        else:
            yield value, key


def spoilt(dice: random.Random, line: str, shared: Container[Any]) -> tuple[str, bool]:
    """Return a line with a spoilt value, and whether this was an id that several lines share."""
    record = json.loads(line)
    found = list(places(record))
    if not found:
        return line, False
    container, key = dice.choice(found)
    was_shared = key in _IDS and container[key] in shared
    container[key] = dice.choice(_SPOILT)
    return json.dumps(record), was_shared


def shared_ids(lines: Iterable[str]) -> set[Any]:
    """Return the ids that stand in several lines."""
    seen = Counter(container[key] for line in lines for container, key in places(json.loads(line)) if key in _IDS)
    return {value for value, count in seen.items() if count > 1}


@pytest.mark.parametrize("name", sorted(ledgers()))
def test_spoilt_fields_make_nothing_usable_and_lose_no_call(name: str, tmp_path: Path) -> None:
    path, lines = tmp_path / "ledger.jsonl", ledgers()[name]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    whole, shared = counted(judged(path)), shared_ids(lines)
    for seed in range(_TIMES):
        dice = random.Random(f"{name}{seed}")
        damaged, cut_loose = list(lines), 0
        for number in dice.sample(range(len(lines)), max(1, len(lines) // 3)):
            damaged[number], was_shared = spoilt(dice, lines[number], shared)
            cut_loose += was_shared
        path.write_text("\n".join(damaged) + "\n", encoding="utf-8")
        found = counted(judged(path))
        assert found.usable <= whole.usable + cut_loose + found.no_requests - whole.no_requests, (name, seed)
        assert found.others >= whole.others, (name, seed)


def gated(path: Path, lines: Iterable[dict[str, Any]]) -> Verdict:
    """Return what a gate at 95 % says of a ledger."""
    path.write_bytes(jsonl(lines))
    with analyzing([str(path)], Request(rules=(), threads=1)) as found:
        side = take_side(found.report, found.engine, found.settings)
        return decide(Asked(min_usable=Threshold(0.95, "the test")), side).verdict


@pytest.mark.parametrize("key", ["status", "latency_ms", "deadline_ms", "ts", "path"])
@pytest.mark.parametrize("how", ["spoilt", "gone"])
def test_hiding_what_failed_never_passes_a_gate_that_failed(key: str, how: str, tmp_path: Path) -> None:
    # 150 answers in time, 20 late ones and 30 failures: 75 % usable.
    call: dict[str, Any] = {"path": "/v1/chat/completions", "status": 200, "latency_ms": 400, "deadline_ms": 2000}
    bad: list[dict[str, Any]] = [{"latency_ms": 2500}] * 20 + [{"status": 503}] * 30
    lines = [call | {"ts": T0 + 3 * n, "request_id": f"r{n}"} | other for n, other in enumerate([{}] * 150 + bad)]
    path = tmp_path / "ledger.jsonl"
    assert gated(path, lines) is Verdict.FAIL
    kept = [{name: value for name, value in line.items() if name != key} for line in lines[150:]]
    hidden = [line | ({} if how == "gone" else {key: {}}) for line in kept]
    assert gated(path, lines[:150] + hidden) is not Verdict.PASS
