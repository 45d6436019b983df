"""Spoiling a field of any line never makes a ledger look better; the ids and times that group attempts are left alone.

What spoils a value is what no field can hold: then nobody knows what it was. A field that is gone is
another matter: `complete` and `non_empty` never make a request unknown (what-counts), so a ledger
that never logs them is judged without. `QUIETBURN_FUZZ=20` tries twenty times as many, on every rule's ledger.
"""

import json
import os
import random
from collections.abc import Iterable, Iterator
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
_RULES = (
    "failover-never-called", "failover-starved", "late-but-200", "queue-over-budget", "slow-refusal", "success-hides-outage",
)
_SPOILT: tuple[Any, ...] = ({}, [], [None], {"spoilt": 1}, [[]], "\x00")
_LINES = 60
# By these attempts become one request; spoilt, the second try of a late request is judged from its own start.
_GROUPING = ("request_id", "ts")


class Counts(NamedTuple):
    """Usable requests, and the calls that are bad, unknown or left out: refused lines, other kinds, no request at all."""

    usable: int
    others: int


@cache
def ledgers() -> dict[str, tuple[str, ...]]:
    """Return the first lines of each dialect's ledger and of rules' that fire, by name."""
    rules = [path for path in _ROOT.glob("rules/*/fires.jsonl") if _TIMES > 1 or path.parent.name in _RULES]
    found = [*_ROOT.glob("dialects/*/ledger.jsonl"), *rules]
    return {path.parent.name: tuple(path.read_text(encoding="utf-8").splitlines()[:_LINES]) for path in sorted(found)}


def judged(path: Path) -> Report:
    return analyze([str(path)], Request(rules=(), threads=1))


def counted(report: Report) -> Counts:
    verdicts = report.rates.verdicts
    ledger = report.ledger
    refused = ledger.quarantined + ledger.bad_items + ledger.not_a_request + ledger.other_items
    left_out = sum(entry.events for entry in report.left_out) + refused
    return Counts(verdicts["usable"], sum(verdicts.values()) - verdicts["usable"] + left_out)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and key of every value of a record that holds no others."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if isinstance(inner, dict | list):
            yield from places(inner)
        else:
            yield value, key


def spoilt(dice: random.Random, line: str) -> str:
    record = json.loads(line)
    found = [(container, key) for container, key in places(record) if key not in _GROUPING]
    if found:
        container, key = dice.choice(found)
        container[key] = dice.choice(_SPOILT)
    return json.dumps(record)


@pytest.mark.parametrize("name", sorted(ledgers()))
def test_spoilt_fields_make_nothing_usable_and_lose_no_call(name: str, tmp_path: Path) -> None:
    path, lines = tmp_path / "ledger.jsonl", ledgers()[name]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    whole = counted(judged(path))
    for seed in range(_TIMES):
        dice = random.Random(f"{name}{seed}")
        damaged = list(lines)
        for number in dice.sample(range(len(lines)), max(1, len(lines) // 3)):
            damaged[number] = spoilt(dice, lines[number])
        path.write_text("\n".join(damaged) + "\n", encoding="utf-8")
        found = counted(judged(path))
        assert found.usable <= whole.usable, (name, seed)
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
