"""Which files a call names, in which order, and what is said of times that are odd."""

import gzip
import time
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, jsonl, report_of

from quietburn.analysis.run import Request, analyze
from quietburn.records.inputs import find_ledgers


def names(*arguments: str) -> list[str]:
    return [ledger.path.name for ledger in find_ledgers(list(arguments)) if ledger.path]


def test_a_rotated_set_is_read_in_time_order_and_what_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    in_order = [
        "gate.jsonl-20260905.gz", "gate.jsonl-20260906", "gate.jsonl.10.zst", "gate.jsonl.2.gz", "gate.jsonl.1", "gate.jsonl",
        "old.log.2026-09-05", "old.log", "proxy.ndjson",
    ]
    for name in [*reversed(in_order), "notes.txt", "gate.jsonl.bak", "gate.jsonl.1.tar", "jsonl", ".jsonl.swp", "x.json"]:
        (tmp_path / name).touch()
    (tmp_path / "folder.jsonl").mkdir()

    assert names(str(tmp_path)) == in_order


def test_a_pattern_that_no_shell_expanded_is_expanded_and_a_file_of_that_very_name_wins(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl", "b.jsonl.1", "c.txt", "b[1].jsonl", "b1.jsonl"):
        (tmp_path / name).touch()

    assert names(f"{tmp_path}/*.jsonl") == ["a.jsonl", "b.jsonl", "b1.jsonl", "b[1].jsonl"]
    assert names(f"{tmp_path}/b.jsonl*") == ["b.jsonl.1", "b.jsonl"]
    assert names(f"{tmp_path}/b[1].jsonl") == ["b[1].jsonl"]
    assert names(f"{tmp_path}/**/b.jsonl", str(tmp_path / "b.jsonl")) == ["b.jsonl"]


def test_an_empty_file_among_ledgers_is_listed_with_no_lines(tmp_path: Path) -> None:
    (tmp_path / "gate.jsonl").touch()
    (tmp_path / "gate.jsonl.1").write_bytes(jsonl([{"ts": T0, "status": 200}]))
    older = jsonl([{"ts": T0 - 60, "status": 200}, {"ts": T0 - 50, "status": 500}])
    (tmp_path / "gate.jsonl.2.gz").write_bytes(gzip.compress(older))

    report = analyze([str(tmp_path)], Request(rules=()))

    listed = [(Path(file.path).name, file.lines, file.events) for file in report.ledger.files]
    assert listed == [("gate.jsonl.2.gz", 2, 2), ("gate.jsonl.1", 1, 1), ("gate.jsonl", 0, 0)]
    assert report.ledger.lines == 3


def test_findings_of_files_behind_an_empty_one_name_the_right_file(tmp_path: Path) -> None:
    late = {"route": "complete", "status": 200, "latency_ms": 9000, "deadline_ms": 1000}
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "b.jsonl").write_bytes(jsonl({"ts": T0 + n, **late} for n in range(20)))

    report = analyze([str(tmp_path)], Request(only=("late-but-200",)))

    assert {Path(place.file).name for finding in report.findings for place in finding.evidence} == {"b.jsonl"}


@pytest.mark.parametrize(("times", "words"), [
    ([T0, T0 * 1000], "1 in milliseconds, 1 in seconds"),
    ([T0 * 1_000_000, T0 * 1_000_000_000, T0 * 1_000_000_000], "1 in microseconds, 2 in nanoseconds"),
    ([T0, T0 + 1], None),
    ([T0 * 1000, T0 * 1000 + 1], None),
    (["2026-09-08T02:14:00Z", T0], None),
])  # fmt: skip
def test_a_file_that_mixes_units_of_time_is_said_to(times: list[object], words: str | None, tmp_path: Path) -> None:
    report = report_of(tmp_path, [{"ts": moment, "status": 200} for moment in times], request=Request(rules=()))

    said = [notice for notice in report.notices if "several units" in notice]
    assert len(said) == (words is not None)
    assert words is None or words in said[0]


def test_events_in_the_future_are_kept_and_noticed(tmp_path: Path) -> None:
    now = time.time()
    events = [{"ts": now + ahead, "status": 200} for ahead in (-10, 30, 86_400, 2 * 86_400)]

    report = report_of(tmp_path, events, request=Request(rules=()))

    assert report.ledger.events == 4
    assert [notice for notice in report.notices if notice.startswith("2 events are in the future, the last at 20")]


def test_inventions_of_failed_attempts_are_counted_in_a_notice(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [
        {"ts": T0, "status": 500, "latency_ms": 0, "prompt_tokens": 9}, {"ts": T0 + 1, "status": 200, "latency_ms": 0},
        {"ts": T0 + 2, "latency_ms": 0, "error": "connect"}, {"ts": T0 + 3, "status": 503, "latency_ms": 4},
    ]

    report = report_of(tmp_path, events, request=Request(rules=()))

    said = [notice for notice in report.notices if "time of 0" in notice]
    assert [notice.partition(";")[0] for notice in said] == ["2 failed attempts report a time of 0 (a placeholder)"]
    assert report.ledger.invalid_values == 0


@pytest.mark.parametrize("nuls", [100, 17 << 20, 40 << 20])
def test_a_record_behind_a_run_of_nuls_of_any_length_is_kept(nuls: int, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"\0" * nuls + jsonl([{"ts": T0, "status": 200}, {"ts": T0 + 1, "status": 200}]))

    report = analyze([str(path)], Request(rules=()))

    assert (report.ledger.lines, report.ledger.events, report.ledger.quarantined) == (2, 2, 0)
    assert [notice for notice in report.notices if notice.startswith("Leading NUL bytes were skipped in 1 lines")]
