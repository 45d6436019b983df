"""What holds of any ledger, tried on generated ones."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from tests.ledgers import T0, Reading, conserved, jsonl, read

from quietburn.analysis.run import Request, analyze
from quietburn.errors import QuietburnError
from quietburn.ledger import parse
from quietburn.records import lines
from quietburn.report.model import Report

Event = dict[str, Any]


def bounded(examples: int) -> settings:
    """Return settings that try the same examples in every run, and spend no time on making a failing one smaller."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=checks,
                    phases=(Phase.explicit, Phase.generate))


def clean(number: int) -> bytes:
    """Return the line of an ordinary answer."""
    return json.dumps({
        "ts": T0 + number + 0.25, "request_id": f"r{number}", "status": 200, "latency_ms": 120.5, "deadline_ms": 8000,
        "prompt_tokens": 100, "cached_tokens": 7, "stream": True, "finish_reason": "stop", "answer": "yes", "note": "x",
    }).encode()  # fmt: skip


CLEAN = b"".join(clean(number) + b"\n" for number in range(25))
PIECES = st.sampled_from([
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\n", b"\r", b"\0", b" ", b"-", b"+", b".", b"e", b"0", b"9", b"//", b"'",
    b"1e400", b"NaN", b"Infinity", b"Inf", b"null", b"true", b"{}", b'"a"', b'{"a":1}', b"}{", b"}\n{", b"}\0{", b"[" * 300,
    b'"status": 500, ', b'"status": 200, ', b'"cpu_pct": "40", ', b'"zz": [1], ', b'"ts": "2026-09-08T02:14:00", ',
    b"\\u0041", b"\\ud800", b"\\udc00", b"\\u0000", b"\xff", b"\xc3", b"\xc3\xa9", b"\xef\xbb\xbf",
])  # fmt: skip
CHANGES = st.lists(
    st.tuples(st.sampled_from(["insert", "delete", "flip"]), st.integers(0, len(CLEAN) - 1), PIECES, st.integers(0, 7)),
    min_size=1, max_size=30,
)  # fmt: skip


def changed(text: bytes, changes: list[tuple[str, int, bytes, int]]) -> bytes:
    """Return bytes with some inserted, deleted and flipped."""
    found = bytearray(text)
    for kind, wanted, piece, bit in changes:
        place = wanted % max(1, len(found))
        if kind == "insert":
            found[place:place] = piece
        elif kind == "delete":
            del found[place : place + bit + 1]
        elif found:
            found[place] ^= 1 << bit
    return bytes(found)


@contextmanager
def written(*texts: bytes) -> Iterator[list[Path]]:
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.jsonl" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_bytes(text)
        yield paths


def accounted(report: Report) -> bool:
    """Whether every physical line of a report is used, set aside, a duplicate, refused or blank."""
    ledger = report.ledger
    return ledger.lines == ledger.used + ledger.not_a_request + ledger.duplicates + ledger.quarantined + ledger.blank


@bounded(60)
@given(st.lists(st.one_of(st.binary(max_size=60), PIECES, st.just(clean(0)), st.just(clean(1))), max_size=12), PIECES)
@example([], b"")
@example([b"\xef\xbb\xbf"], b"\n")
@example([b'{"ts": 1788833640, "status": 200}' * 2], b"\n")
def test_any_bytes_are_a_report_or_one_clear_error(parts: list[bytes], between: bytes) -> None:
    text = between.join(parts)
    with written(text) as paths:
        try:
            report = analyze([str(paths[0])], Request(threads=2))
        except QuietburnError as problem:
            assert "\n" not in str(problem)
            return
    assert accounted(report)
    assert report.ledger.physical_lines == text.removeprefix(b"\xef\xbb\xbf").count(b"\n") + (not text.endswith(b"\n"))
    assert report.ledger.quarantined == len(report.quarantine)
    json.dumps(report.model_dump(mode="json"), allow_nan=False)


def both_ways(text: bytes) -> tuple[Reading, Reading]:
    """Read in small blocks as it comes, and as one block by the exact parser."""
    with written(text) as (path,):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lines, "BLOCK_BYTES", 1500)
            usual = read(path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parse, "pair_counts", lambda texts: [-1] * len(texts))
            exact = read(path)
    return usual, exact


@bounded(40)
@given(CHANGES)
@example([("insert", 200, b"}{", 0), ("insert", 500, b"}\n{", 0), ("insert", 900, b"}\0{", 0)])
def test_a_damaged_ledger_reads_the_same_by_engine_and_exact_parser(changes: list[tuple[str, int, bytes, int]]) -> None:
    # The tail keeps the ledger recognizable, whatever became of the rest.
    text = changed(CLEAN, changes) + b"\n" + clean(100) + b"\n"
    usual, exact = both_ways(text)
    assert usual.quarantine == exact.quarantine
    assert usual.events == exact.events
    assert usual.invalid == exact.invalid
    assert usual.counts == exact.counts
    assert conserved(usual.counts)


KEYS = st.sampled_from([
    "ts", "ts", "timestamp", "started_at", "request_id", "idempotency_key", "status", "error", "reason", "decision", "route",
    "model", "latency_ms", "latency_s", "deadline_ms", "cpu_pct", "prompt_tokens", "cached_tokens", "completion_tokens",
    "reasoning_tokens", "actual_tokens", "stream", "client_closed", "prefix", "answer", "user_agent", "retry_after_ms", "zz",
    "note", "",
])  # fmt: skip
VALUES = st.sampled_from([
    "null", "true", "false", "0", "-0", "1", "-1", "7", "200", "500", "1.5", "40.0", "1e3", "1e400", "NaN", "Infinity",
    "-Infinity", "Inf", "9007199254740993", "9223372036854775808", "1788833640", "1788833640.1234567", "1788833640123",
    "1788833640123456789", "1.7888e9", '""', '" "', '"a"', '"40"', '" 40 "', '"-1"', '"1e3"', '"true"', '"NaN"', '"1788833640"',
    '"1.78883364e9"', '"2026-09-08T02:14:00Z"', '"2026-09-08 02:14:00.25"', '"complete"', '"reject"', '"kube-probe/1.2"',
    r'"\u0061"', r'"\ud800"', "{}", "[]", '{"a": [1]}', "[[null]]",
])  # fmt: skip
LINES = st.lists(st.lists(st.tuples(KEYS, VALUES), max_size=7), min_size=1, max_size=40)


@bounded(18)
@given(LINES, LINES)
def test_lines_of_any_values_read_the_same_by_the_engine_and_by_the_exact_parser(
    first: list[list[tuple[str, str]]], second: list[list[tuple[str, str]]]
) -> None:
    def written_out(lines: list[list[tuple[str, str]]]) -> bytes:
        return b"".join(("{" + ", ".join(f'"{key}": {value}' for key, value in line) + "}\n").encode() for line in lines)

    usual, exact = both_ways(CLEAN + written_out(first) + CLEAN.replace(b'"r', b'"s') + written_out(second))
    assert usual.quarantine == exact.quarantine
    assert usual.events == exact.events
    assert usual.invalid == exact.invalid
    assert usual.counts == exact.counts
    assert conserved(usual.counts)


def night(seed: int) -> list[Event]:
    """Return half an hour of calls with late, cut, empty, failed and retried ones, and probes."""
    chance = random.Random(seed)
    events: list[Event] = []
    for number in range(400):
        start = chance.uniform(0, 1800)
        latency = chance.choice([300, 700, 9000, 12000]) if number % 3 else chance.uniform(100, 2000)
        event: Event = {
            "ts": round(T0 + start + latency / 1000, 3), "latency_ms": round(latency, 1), "request_id": f"r{number % 330}",
            "status": chance.choice([200] * 8 + [429, 500, 503, 400, 499]), "deadline_ms": 8000, "stream": True,
            "traffic": chance.choice(["user", "user", "probe", "batch"]), "backend": chance.choice(["a", "b"]),
            "model": "m", "prompt_tokens": chance.randrange(500), "completion_tokens": chance.randrange(300),
            "cpu_pct": chance.choice([3, 40, 95]), "queue_age_ms": chance.randrange(6000),
            "prefix_fp": f"p{chance.randrange(200)}",
        }  # fmt: skip
        if event["status"] == 200:
            event |= {"finish_reason": chance.choice(["stop", "stop", None]), "answer_chars": chance.choice([0, 50, 90])}
        events.append({key: value for key, value in event.items() if value is not None})
    return events


def told(*texts: bytes, threads: int = 2) -> dict[str, Any]:
    """Return a report without what names files and lines."""
    with written(*texts) as paths:
        report = analyze([str(path) for path in paths], Request(threads=threads)).model_dump(mode="json")
    for finding in report["findings"]:
        assert finding.pop("evidence")
    for name in ("files", "unknown_keys"):
        report["ledger"].pop(name)
    return report


def settled(value: Any) -> Any:
    """Return a value with numbers to twelve digits: sums of doubles depend on their order beyond that."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: settled(part) for key, part in value.items()}
    return [settled(part) for part in value] if isinstance(value, list) else value


SEEDS = st.integers(0, 10**6)


@bounded(3)
@given(SEEDS, st.integers(1, 399))
def test_the_order_of_lines_and_files_changes_no_rate_and_no_finding(seed: int, cut: int) -> None:
    events = night(seed)
    whole = settled(told(jsonl(events)))
    assert whole["findings"]
    shuffled = random.Random(seed).sample(events, len(events))
    for other in (told(jsonl(shuffled)), told(jsonl(events[:cut]), jsonl(events[cut:]))):
        assert settled(other) == whole


@bounded(3)
@given(SEEDS)
def test_a_probe_more_changes_no_rate_of_requests(seed: int) -> None:
    events = night(seed)
    probes = [event | {"traffic": "probe", "ts": event["ts"] + 0.111} for event in events[:20]]
    before, after = (told(jsonl(ledger))["rates"] for ledger in (events, events + probes))
    of_attempts = ("attempts", "successes", "success_rate", "tokens", "by_traffic", "length_limited")
    assert {k: v for k, v in after.items() if k not in of_attempts} == {k: v for k, v in before.items() if k not in of_attempts}
    assert after["attempts"] == before["attempts"] + 20


@bounded(3)
@given(SEEDS, CHANGES)
def test_the_number_of_threads_changes_nothing_in_the_report(seed: int, changes: list[tuple[str, int, bytes, int]]) -> None:
    text = jsonl(night(seed)) + changed(CLEAN, changes) + b"\n"
    with written(text) as (path,), pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", 2000)
        reports = [analyze([str(path)], Request(threads=threads)).model_dump(mode="json") for threads in (1, 2, 5)]
    assert reports[1] == reports[0]
    assert reports[2] == reports[0]


def test_a_tight_memory_limit_changes_nothing_in_the_report(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"".join(jsonl(night(seed)) for seed in range(150)))
    reports = [
        analyze([str(path)], Request(threads=2, memory_limit=limit)).model_dump(mode="json") for limit in ("1GB", "48MB")
    ]
    assert reports[0]["ledger"]["lines"] == 60_000
    assert reports[1] == reports[0]
