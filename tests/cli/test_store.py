"""A store of nights (`--db`): what it knows again, what it never loses, and who may hold it."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.cli.program import QUIETBURN, Done, call, environment, is_one_line, jsonl, late, run, run_all, write
from tests.missing import unavailable

from quietburn.dialects.mapping import shipped_mappings
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.engine.store_nights import stored_files
from quietburn.errors import InputError
from quietburn.records.inputs import LedgerFile

STORE = "nights.duckdb"


def night(first: int, count: int = 40) -> list[dict[str, Any]]:
    """Return calls with ids of their own; every eighth is late."""
    return [(late if n % 8 == 0 else call)(n, request_id=f"r{n}") for n in range(first, first + count)]


def analyzed(cwd: Path, *arguments: str) -> dict[str, Any]:
    """Return the JSON report of a call that must succeed."""
    done = run(cwd, "analyze", *arguments, "--format", "json")
    assert done.status == 0, done.err
    report: dict[str, Any] = done.report
    for file in report["ledger"]["files"]:
        del file["detected_because"]  # counts the sample of the call that loaded it
    return report


def without_notices(report: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in report.items() if name != "notices"}


def held(cwd: Path) -> list[dict[str, Any]]:
    """Return what `nights` lists."""
    done = run(cwd, "nights", "--db", STORE, "--format", "json")
    assert (done.status, done.err) == (0, "")
    files: list[dict[str, Any]] = json.loads(done.out)
    return files


# Known again


def test_a_store_gives_the_report_that_memory_gives_and_a_reload_adds_nothing(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [*night(0), night(0)[3]])
    (tmp_path / "a.jsonl").write_bytes((tmp_path / "a.jsonl").read_bytes() + b"broken\n\n")

    memory = analyzed(tmp_path, "a.jsonl")
    first, again, alone = (analyzed(tmp_path, *ledgers, "--db", STORE) for ledgers in (("a.jsonl",), ("a.jsonl",), ()))

    assert memory["ledger"]["lines"] == 43
    assert (memory["ledger"]["duplicates"], memory["ledger"]["quarantined"], memory["ledger"]["blank"]) == (1, 1, 1)
    assert first == memory
    assert again == memory
    assert alone == memory
    (file,) = held(tmp_path)
    assert (file["lines"], file["events"], file["quarantined"], file["blank"]) == (43, 41, 1, 1)
    assert file["path"] == str(tmp_path / "a.jsonl")
    assert (file["first_ts"], file["last_ts"]) == ("2026-09-08T02:14:00Z", "2026-09-08T02:14:39Z")


@pytest.mark.parametrize("open_line", [
    b"", b'{"ts": 1788833700, "status"', b'{"ts": 1788833700, "status": 200, "latency_ms": -1, "note": 1}', b"  ", b"\xff",
], ids=["whole", "cut", "complete but open", "blank", "no text"])  # fmt: skip
def test_a_grown_file_adds_its_new_lines_and_an_open_line_is_read_again_whole(tmp_path: Path, open_line: bytes) -> None:
    ledger, grown = tmp_path / "a.jsonl", jsonl(night(40))
    ledger.write_bytes(jsonl(night(0)) + open_line)
    before = analyzed(tmp_path, "a.jsonl", "--db", STORE)
    assert before == analyzed(tmp_path, "a.jsonl")

    ledger.write_bytes(ledger.read_bytes() + b"\n" + grown)
    after = analyzed(tmp_path, "a.jsonl", "--db", STORE, "--max-quarantined", "50%")

    assert after == analyzed(tmp_path, "a.jsonl", "--max-quarantined", "50%")
    assert after["ledger"]["lines"] == 81
    assert len(held(tmp_path)) == 1


def test_a_rotated_file_is_the_same_file_under_its_new_name(tmp_path: Path) -> None:
    ledger = write(tmp_path / "ledger.jsonl", night(0, 60))
    analyzed(tmp_path, "ledger.jsonl", "--db", STORE)
    ledger.rename(tmp_path / "ledger.jsonl.1")
    write(ledger, night(60, 60))

    report = analyzed(tmp_path, "ledger.jsonl", "ledger.jsonl.1", "--db", STORE)

    assert sorted(Path(file["path"]).name for file in report["ledger"]["files"]) == ["ledger.jsonl", "ledger.jsonl.1"]
    assert (report["rates"]["requests"], report["ledger"]["duplicates"]) == (120, 0)
    assert [file["events"] for file in held(tmp_path)] == [60, 60]
    assert "its lines changed since it was loaded" in " ".join(report["notices"])


def test_the_same_night_compressed_is_known_by_its_content(tmp_path: Path) -> None:
    events = night(0, 60)
    write(tmp_path / "ledger.jsonl", events)
    analyzed(tmp_path, "ledger.jsonl", "--db", STORE)
    (tmp_path / "ledger.jsonl.1.gz").write_bytes(gzip.compress(jsonl(events)))

    report = analyzed(tmp_path, "ledger.jsonl.1.gz", "--db", STORE)

    assert report["rates"]["requests"] == 60
    assert len(held(tmp_path)) == 1


def test_a_rewritten_file_is_noticed_and_costs_the_store_nothing(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", night(0))
    analyzed(tmp_path, "a.jsonl", "--db", STORE)
    write(tmp_path / "a.jsonl", night(100))

    report = analyzed(tmp_path, "a.jsonl", "--db", STORE)

    assert without_notices(report) == without_notices(analyzed(tmp_path, "a.jsonl"))
    assert [notice for notice in report["notices"] if "rotated or rewritten" in notice]
    assert [file["events"] for file in held(tmp_path)] == [40, 40]


def test_a_line_that_stands_in_two_files_belongs_to_a_report_on_either(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", night(0))
    write(tmp_path / "b.jsonl", night(20))
    analyzed(tmp_path, "a.jsonl", "--db", STORE)

    second = analyzed(tmp_path, "b.jsonl", "--db", STORE)
    both = analyzed(tmp_path, "--db", STORE)

    assert second == analyzed(tmp_path, "b.jsonl")
    assert (both["rates"]["requests"], both["ledger"]["duplicates"], both["ledger"]["lines"]) == (60, 20, 80)


def test_a_span_of_a_store_is_what_the_span_of_its_ledgers_is(tmp_path: Path) -> None:
    for name, first in (("a.jsonl", 0), ("b.jsonl", 40), ("c.jsonl", 80)):
        write(tmp_path / name, night(first))
        analyzed(tmp_path, name, "--db", STORE)
    span = ("--since", "2026-09-08T02:14:30Z", "--until", "2026-09-08T02:15:30Z")

    assert analyzed(tmp_path, "--db", STORE, *span) == analyzed(tmp_path, "a.jsonl", "b.jsonl", "c.jsonl", *span)


def test_a_ledger_with_new_fields_joins_those_without(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", night(0))
    write(tmp_path / "b.jsonl", [event | {"cpu_pct": 12, "tenant": "t"} for event in night(40)])
    analyzed(tmp_path, "a.jsonl", "--db", STORE)
    analyzed(tmp_path, "b.jsonl", "--db", STORE)

    assert analyzed(tmp_path, "--db", STORE) == analyzed(tmp_path, "a.jsonl", "b.jsonl")


@pytest.mark.parametrize("leftover", ["an empty file", "an empty database"])
def test_what_a_load_killed_at_its_very_start_leaves_is_an_empty_store(tmp_path: Path, leftover: str) -> None:
    write(tmp_path / "a.jsonl", night(0))
    (tmp_path / STORE).touch()
    if leftover == "an empty database":
        (tmp_path / STORE).unlink()
        duckdb.connect(str(tmp_path / STORE)).close()

    listed = held(tmp_path)
    nothing = run(tmp_path, "analyze", "--db", STORE)
    loaded = analyzed(tmp_path, "a.jsonl", "--db", STORE)

    assert listed == []
    assert (nothing.status, nothing.out) == (2, "")
    assert is_one_line(nothing.err) and "contains no ledger" in nothing.err
    assert loaded == analyzed(tmp_path, "a.jsonl")
    assert [file["lines"] for file in held(tmp_path)] == [40]


# What can't be used


def test_what_is_no_store_is_refused_in_one_line_and_left_as_it_is(tmp_path: Path) -> None:
    ledger = write(tmp_path / "a.jsonl", night(0))
    (tmp_path / "text.db").write_text("not a database, but notes of mine\n" * 400, encoding="utf-8")
    with duckdb.connect(str(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE mine AS SELECT 1 AS x")
    with duckdb.connect(str(tmp_path / "newer.db")) as newer:
        newer.execute("CREATE TABLE quietburn_store AS SELECT 999 AS version")
    (tmp_path / "folder").mkdir()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    calls = {
        ("analyze", "a.jsonl", "--db", "text.db"): "--db text.db: is not a quietburn store",
        ("analyze", "a.jsonl", "--db", "other.db"): "--db other.db: is a DuckDB file of another program",
        ("analyze", "a.jsonl", "--db", "newer.db"): "--db newer.db: was written by another version",
        ("analyze", "a.jsonl", "--db", "folder"): "--db folder:",
        ("analyze", "a.jsonl", "--db", "none/x.db"): "--db none/x.db:",
        ("analyze", "--db", "none.db"): "--db none.db: no such file",
        ("nights", "--db", "none.db"): "--db none.db: no such file",
        ("nights", "--db", "other.db"): "--db other.db: is a DuckDB file of another program",
        ("nights", "--db", "text.db"): "--db text.db: is not a quietburn store",
        ("analyze", "a.jsonl", "--show-raw"): "--show-raw: needs --quarantine FILE",
    }

    done = run_all(tmp_path, list(calls))

    for (asked, words), one in zip(calls.items(), done, strict=True):
        assert (one.status, one.out) == (2, ""), asked
        assert is_one_line(one.err), (asked, one.err)
        assert words in one.err, (asked, one.err)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    assert ledger.exists()


def test_a_second_process_is_told_who_holds_the_store(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", night(0))
    analyzed(tmp_path, "a.jsonl", "--db", STORE)
    with duckdb.connect(str(tmp_path / STORE)):
        done, listed = run_all(tmp_path, [("analyze", "a.jsonl", "--db", STORE), ("nights", "--db", STORE)])

    for one in (done, listed):
        assert (one.status, one.out) == (2, "")
        assert is_one_line(one.err)
        assert f"process {os.getpid()}" in one.err
    assert analyzed(tmp_path, "--db", STORE)["rates"]["requests"] == 40


# Nothing half


def engine_on(folder: Path) -> DuckEngine:
    return DuckEngine(known=shipped_mappings(), threads=1, database=folder / STORE)


def test_a_file_that_shrinks_while_it_is_read_is_not_kept_and_the_store_is_whole(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", night(0))
    ledger = write(tmp_path / "b.jsonl", night(40, 60_000))
    analyzed(tmp_path, "a.jsonl", "--db", STORE)

    with engine_on(tmp_path) as engine, pytest.raises(InputError, match="shrank while it was read"):
        engine.load([LedgerFile("b.jsonl", ledger)], lambda _: os.truncate(ledger, 1000))

    assert [file["events"] for file in held(tmp_path)] == [40]


def test_a_file_that_is_replaced_while_it_is_read_is_kept_as_it_was(tmp_path: Path) -> None:
    ledger = write(tmp_path / "b.jsonl", night(0, 60_000))
    other = write(tmp_path / "other.jsonl", night(90_000, 7))

    def replaced(_: int) -> None:
        if other.exists():
            other.replace(ledger)

    with engine_on(tmp_path) as engine:
        engine.load([LedgerFile("b.jsonl", ledger)], replaced)

    assert [file["events"] for file in held(tmp_path)] == [60_000]
    assert analyzed(tmp_path, "b.jsonl", "--db", STORE)["rates"]["requests"] == 7
    assert [file["events"] for file in held(tmp_path)] == [60_000, 7]


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a small file system of its own; outside of CI a machine that forbids it skips the test."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        unavailable(f"this machine may not mount a small disk: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_one_line_and_the_store_keeps_the_files_it_had(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", night(0))
    write(tmp_path / "large.jsonl", night(40, 60_000))
    with small_disk(tmp_path / "disk", "3m") as disk:
        store = str(disk / STORE)
        first = run(tmp_path, "analyze", "a.jsonl", "--db", store, "--format", "json")
        full = run(tmp_path, "analyze", "large.jsonl", "--db", store)
        again = run(tmp_path, "analyze", "--db", store, "--format", "json")

        assert first.status == 0, first.err
        assert (full.status, full.out) == (2, "")
        assert is_one_line(full.err), full.err
        assert "disk is full" in full.err
        assert again.status == 0, again.err
        assert again.report == first.report


def test_a_full_temporary_folder_is_one_line(tmp_path: Path) -> None:
    write(tmp_path / "large.jsonl", night(0, 60_000))
    with small_disk(tmp_path / "disk", "64k") as disk:
        (disk / "filler").write_bytes(b"x" * 60_000)
        done = run(tmp_path, "analyze", "large.jsonl", "--output", str(disk / "report.json"), env=environment(TMPDIR=str(disk)))
        left = sorted(path.name for path in disk.iterdir())

    assert done.status in (0, 2), done.err  # what fits into memory needs no temporary folder
    assert done.err == "" or is_one_line(done.err)
    assert left in (["filler"], ["filler", "report.json"])


KILLS = 50
FILES = ("a.jsonl", "b.jsonl", "c.jsonl")
LINES = 20_000


def loading(folder: Path, store: str) -> "subprocess.Popen[bytes]":
    """Start loading every file, in a process begun from nothing; one rule only, so that most of its time is the load."""
    return subprocess.Popen(
        [*QUIETBURN, "analyze", *FILES, "--db", store, "--quiet", "--only", "late-but-200"], cwd=folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(TMPDIR=str(folder / "tmp")),
    )


def load_and_kill(folder: Path, after_s: float) -> bool:
    """Start loading and kill the process; return whether it was still running."""
    process = loading(folder, STORE)
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def test_fifty_kills_at_random_moments_leave_whole_files_and_the_same_report(tmp_path: Path) -> None:
    for place, name in enumerate(FILES):
        write(tmp_path / name, night(place * LINES, LINES))
    (tmp_path / "tmp").mkdir()
    begun = time.monotonic()
    assert loading(tmp_path, "undisturbed.duckdb").wait() == 0
    whole = time.monotonic() - begun
    undisturbed = analyzed(tmp_path, *FILES, "--db", "undisturbed.duckdb")
    dice = random.Random(20260908)  # noqa: S311 - moments to kill at, not secrets
    hits, seen = 0, set()
    while hits < KILLS:
        hits += load_and_kill(tmp_path, dice.uniform(0.05, 1.0) * whole)
        files = stored_files(tmp_path / STORE) if (tmp_path / STORE).is_file() else []
        assert [file.lines for file in files] == [LINES] * len(files)
        assert [file.events for file in files] == [LINES] * len(files)
        seen.add(len(files))
        if len(files) == len(FILES):
            assert analyzed(tmp_path, "--db", STORE) == undisturbed
            for path in tmp_path.glob(f"{STORE}*"):
                path.unlink()
        shutil.rmtree(tmp_path / "tmp")
        (tmp_path / "tmp").mkdir()

    assert analyzed(tmp_path, *FILES, "--db", STORE) == undisturbed
    assert len(seen) > 1, "every kill came before the first or after the last file was kept"


# Refused lines


def test_refused_lines_are_written_by_place_and_reason_and_with_their_text_only_if_asked(tmp_path: Path) -> None:
    broken = b'{"ts": 1788833640, "prompt": "canary-5b1f\n' + b"\xff\x1b[31m\n" + b"[1]\n"
    text = jsonl(night(0, 3)) + broken + jsonl(night(3, 60))
    (tmp_path / "a.jsonl").write_bytes(text)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(text))
    start = len(jsonl(night(0, 3)))
    places = [(4, start, 41, "cut_short"), (5, start + 42, 6, "not_utf8"), (6, start + 49, 3, "not_an_object")]
    raw = ['{"ts": 1788833640, "prompt": "canary-5b1f', "\\xff\x1b[31m", "[1]"]

    plain, shown, packed, piped = (
        run(tmp_path, "analyze", name, "--quarantine", f"{number}.jsonl", *flags, stdin=text if name == "-" else b"")
        for number, (name, *flags) in enumerate(
            [("a.jsonl",), ("a.jsonl", "--show-raw"), ("a.jsonl.gz", "--show-raw"), ("-", "--show-raw")]
        )
    )

    assert [done.status for done in (plain, shown, packed, piped)] == [0, 0, 0, 0]
    written = [[json.loads(line) for line in (tmp_path / f"{n}.jsonl").read_text().splitlines()] for n in range(4)]
    for records in written:
        assert [(r["line"], r["offset"], r["length"], r["code"]) for r in records] == places
    assert all(set(r) == {"file", "line", "offset", "length", "code", "reason"} for r in written[0])
    assert [[r["raw"] for r in records] for records in written[1:]] == [raw, raw, [None] * 3]
    assert "canary" not in (tmp_path / "0.jsonl").read_text() + plain.out + plain.err + shown.out
    assert all(line.isascii() and "\x1b" not in line for line in (tmp_path / "1.jsonl").read_text().splitlines())


def test_a_place_for_refused_lines_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", night(0))

    done: Done = run(tmp_path, "analyze", "a.jsonl", "--quarantine", "none/q.jsonl")

    assert (done.status, done.out) == (2, "")
    assert is_one_line(done.err)
    assert "--quarantine none/q.jsonl: can't be written" in done.err
