"""Small ledgers for tests: written, read to events, or analyzed."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from quietburn.analysis.run import Request, analyze
from quietburn.common.config import Config
from quietburn.dialects.mapping import Mapping, shipped_mappings
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.engine.settings import Settings
from quietburn.ledger import parse
from quietburn.ledger.counts import FileCounts
from quietburn.records import lines
from quietburn.records.inputs import LedgerFile
from quietburn.report.model import Report
from quietburn.traffic.repeats import COUNTED_LINES

_shipped = cache(shipped_mappings)
_FOLLOWING = ("started_us", "start_known", "end_known", "traffic", "traffic_source", "kind", "route", "path")
_OF_THE_LINE = ("row_id", "file_id", "line", "dialect")
T0 = 1_788_833_640  # 2026-09-08T02:14:00Z


@dataclass(frozen=True)
class Reading:
    """What one ledger became: events by line (NULLs left out), refused lines, refused fields, counts."""

    events: dict[int, dict[str, object]]
    quarantine: list[tuple[int, int, int, str]]
    invalid: list[tuple[int, str, str]]
    counts: FileCounts


def read(path: Path, *, zone: str | None = None, threads: int = 2, known: tuple[Mapping, ...] | None = None) -> Reading:
    """Read one ledger with the shipped dialects."""
    with DuckEngine(zone=zone, known=known or _shipped(), threads=threads) as engine:
        engine.load([LedgerFile("ledger", path)])
        found = engine.connection.execute(f"SELECT * FROM {COUNTED_LINES} ORDER BY line")
        names = [column[0] for column in found.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        events = {
            int(row["line"]): {k: v for k, v in row.items() if v is not None and k not in _OF_THE_LINE} for row in rows
        }
        engine.prepare(Settings())  # what follows from other columns is in the view only
        ends = engine.connection.execute(f"SELECT line, {', '.join(_FOLLOWING)} FROM all_events").fetchall()
        for line, *values in ends:
            told = dict(zip(_FOLLOWING, values, strict=True))
            events[int(line)] |= {name: value for name, value in told.items() if value is not None}
        quarantine = [(q.line, q.offset, q.length, str(q.code)) for q in engine.quarantine()]
        invalid = [(i.line, i.field, str(i.code)) for i in engine.invalid_fields(10_000)]
        return Reading(events, quarantine, invalid, engine.files[0])


@contextmanager
def reading_way(way: str) -> Iterator[None]:
    """Read as it comes, every line by the exact parser, or in blocks of about one line: one of WAYS."""
    with pytest.MonkeyPatch.context() as patch:
        if way == "by the exact parser":
            patch.setattr(parse, "pair_counts", lambda texts: [-1] * len(texts))
        elif way == "tiny blocks":
            patch.setattr(lines, "BLOCK_BYTES", 300)
        yield


WAYS = ("as it comes", "by the exact parser", "tiny blocks")


def conserved(counts: FileCounts) -> bool:
    """Whether every physical line was accounted for once."""
    parts = counts.used + counts.not_a_request + counts.duplicates + counts.quarantined + counts.blank
    return counts.lines == parts


def jsonl(events: Iterable[dict[str, Any]]) -> bytes:
    """Return events as a ledger, one a line."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def report_of(
    folder: Path, events: Iterable[dict[str, Any]], *, config: Config | None = None, request: Request | None = None
) -> Report:
    """Write a ledger and analyze it."""
    path = folder / "ledger.jsonl"
    path.write_bytes(jsonl(events))
    return analyze([str(path)], request or Request(config=config or Config()))
