"""Ledger files into the table `ledger_events`, with every line accounted for."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import BinaryIO

import duckdb
import pyarrow as pa

from quietburn.ledger.blocks import Block, Line, LongLine, blocks
from quietburn.ledger.convert import Conversion, build, quote, recognises
from quietburn.ledger.detect import Detection, detect, sampled
from quietburn.ledger.events import BY_NAME, COLUMNS
from quietburn.ledger.inputs import LedgerFile
from quietburn.ledger.mapping import Mapping
from quietburn.ledger.raw import RawBlock, UnknownKeys, read_block
from quietburn.ledger.reasons import LineFault

EVENTS_TABLE = "ledger_events"
QUARANTINE_TABLE = "quarantined_lines"
INVALID_TABLE = "invalid_fields"
_BATCH_ROWS = 250_000
_BLOCKS_AHEAD = 24  # parsed while a batch is inserted; about 100 MiB of text at most

Progress = Callable[[int], None]


@dataclass
class FileCounts:
    """What became of one file's lines: lines = used + not_a_request + duplicates + quarantined + blank."""

    label: str
    dialect: str
    why: str
    lines: int = 0
    events: int = 0
    not_a_request: int = 0
    quarantined: int = 0
    incomplete_last_line: bool = False
    blank: int = 0
    duplicates: int = 0
    invalid_values: int = 0
    coerced: int = 0
    naive_times: int = 0
    leading_nuls: int = 0
    unknown: UnknownKeys = field(default_factory=UnknownKeys)


class Loader:
    """Loads ledgers into one DuckDB connection; columns appear when a file first brings them."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, *, zone: str | None, known: tuple[Mapping, ...],
        forced: Mapping | None = None, threads: int | None = None,
    ) -> None:
        self.connection = connection
        self.zone = zone
        self.known = known
        self.forced = forced
        self.threads = threads or os.cpu_count() or 1
        self.files: list[FileCounts] = []
        self.mappings: dict[str, Mapping] = {}
        self._columns: set[str] = set()
        self._conversions: dict[tuple[str, tuple[str, ...]], Conversion] = {}
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE TABLE {EVENTS_TABLE} (file_id INTEGER, line BIGINT, dialect VARCHAR)")
        connection.execute(
            f"CREATE TABLE {QUARANTINE_TABLE} (file_id INTEGER, line BIGINT, byte_offset BIGINT, length BIGINT, code VARCHAR)"
        )
        connection.execute(f"CREATE TABLE {INVALID_TABLE} (file_id INTEGER, line BIGINT, field VARCHAR, code VARCHAR)")

    @property
    def columns(self) -> frozenset[str]:
        """Return the canonical columns that the table has."""
        return frozenset(self._columns)

    def load(self, ledger: LedgerFile, progress: Progress | None = None) -> FileCounts:
        """Load one ledger. Raises InputError when it can't be read or recognised."""
        with sampled(ledger) as (stream, lines):
            detection = detect(ledger, lines, self.known, forced=self.forced)
            counts = FileCounts(ledger.label, detection.main, detection.why)
            self.files.append(counts)
            for mapping in detection.mappings:
                self.mappings[mapping.dialect.name] = mapping
            batch: list[RawBlock] = []
            rows = 0
            for raw in self._read(stream, detection):
                if isinstance(raw, LongLine):
                    counts.lines += 1
                    counts.quarantined += 1
                    self._quarantine([(raw.number, raw.offset, raw.length, LineFault.TOO_LONG)])
                    continue
                batch.append(raw)
                rows += raw.lines
                if progress:
                    progress(len(raw.block.data))
                if rows >= _BATCH_ROWS:
                    self._add(batch, detection, counts)
                    batch, rows = [], 0
            self._add(batch, detection, counts)
        return counts

    def _read(self, stream: BinaryIO, detection: Detection) -> Iterator[RawBlock | LongLine]:
        """Parse blocks in threads and yield them in file order."""
        schema = detection.fast_schema()
        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Future[RawBlock] | LongLine] = deque()
            for block in blocks(stream):
                waiting.append(block if isinstance(block, LongLine) else pool.submit(read_block, block, schema))
                if len(waiting) > _BLOCKS_AHEAD:
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())

    def _add(self, batch: list[RawBlock], detection: Detection, counts: FileCounts) -> None:
        """Count what a batch of blocks holds and insert its events."""
        faults: list[tuple[Line, LineFault]] = []
        by_schema: dict[tuple[str, ...], list[pa.Table]] = {}
        for raw in batch:
            counts.lines += raw.lines
            counts.blank += raw.blank
            counts.leading_nuls += raw.leading_nuls
            faults += raw.faults
            for key, count in raw.unknown.counts.items():
                counts.unknown.add(key, count, raw.unknown.first_lines[key])
            for table in raw.tables:
                by_schema.setdefault(tuple(table.column_names), []).append(table)
        counts.quarantined += len(faults)
        counts.incomplete_last_line |= any(code is LineFault.INCOMPLETE_LAST_LINE for _, code in faults)
        self._quarantine([(line.number, line.offset, len(line.data), code) for line, code in faults])
        for tables in by_schema.values():
            self._insert(pa.concat_tables(tables), detection, counts, [raw.block for raw in batch])

    def _insert(self, table: pa.Table, detection: Detection, counts: FileCounts, parts: list[Block]) -> None:
        """Turn one raw table into events, dialect by dialect."""
        self.connection.register("raw_lines", table)
        try:
            taken = 0
            earlier: list[str] = []
            for mapping in detection.mappings:
                fits = recognises(mapping, table.column_names) if self.forced is None else "TRUE"
                mine = " AND ".join([f"({fits})", *(f"NOT ({other})" for other in earlier)])
                earlier.append(fits)
                taken += self._insert_dialect(mapping, table, mine, counts, parts)
            counts.not_a_request += table.num_rows - taken
        finally:
            self.connection.unregister("raw_lines")

    def _insert_dialect(
        self, mapping: Mapping, table: pa.Table, mine: str, counts: FileCounts, parts: list[Block]
    ) -> int:
        """Insert the lines of one dialect; return how many were of it, refused ones among them."""
        (of_dialect,) = _ints(self.connection.execute(f"SELECT {_count(mine)} FROM raw_lines").fetchone())
        if not of_dialect:
            return 0
        # A filter copies every column; the usual file, all of one dialect, is spared that.
        source = "raw_lines" if of_dialect == table.num_rows else f"(SELECT * FROM raw_lines WHERE {mine})"
        made = self._conversion(mapping, tuple(table.column_names))
        if made.trusting is not None and self._is_clean(made, source):
            self._keep(mapping, made.trusting, source)
            counts.events += of_dialect
            return of_dialect
        refused = _any(predicate for _, predicate in made.line_faults)
        census = (
            f"SELECT {_count(refused)}, {_count(_any(p for _, _, p in made.field_faults))}, "
            f"sum({_sum(made.coerced)}), {_count(_any(made.naive_times))} FROM {source}"
        )
        bad, invalid, coerced, naive = _ints(self.connection.execute(census).fetchone())
        counts.coerced += coerced
        counts.naive_times += naive
        if bad:
            counts.quarantined += bad
            self._quarantine(self._refused(made, source, parts))
        if invalid:
            counts.invalid_values += self._note_invalid(made, source, refused)
        self._keep(mapping, made, f"(SELECT * FROM {source} WHERE NOT ({refused}))" if bad else source)
        counts.events += of_dialect - bad
        return of_dialect

    def _is_clean(self, made: Conversion, source: str) -> bool:
        """Whether a few aggregates show that nothing in a raw table can be refused."""
        proofs = " AND ".join(f"COALESCE({proof}, TRUE)" for proof in made.proofs or ["TRUE"])
        row = self.connection.execute(f"SELECT {proofs} FROM {source}").fetchone()
        return bool(row and row[0])

    def _keep(self, mapping: Mapping, made: Conversion, source: str) -> None:
        self._widen(made.columns)
        listed = ", ".join(quote(name) for name in made.columns)
        self.connection.execute(
            f"INSERT INTO {EVENTS_TABLE} (file_id, dialect, {listed}) "
            f"SELECT {len(self.files) - 1}, '{mapping.dialect.name}', * FROM ({made.select_from(source)})"
        )

    def _conversion(self, mapping: Mapping, names: tuple[str, ...]) -> Conversion:
        key = (mapping.dialect.name, names)
        if key not in self._conversions:
            self._conversions[key] = build(mapping, list(names), zone=self.zone)
        return self._conversions[key]

    def _widen(self, columns: list[str]) -> None:
        for name in columns:
            if name != "line" and name not in self._columns:
                self.connection.execute(f"ALTER TABLE {EVENTS_TABLE} ADD COLUMN {name} {BY_NAME[name].sql_type}")
                self._columns.add(name)

    def _refused(self, made: Conversion, source: str, parts: list[Block]) -> list[tuple[int, int, int, LineFault]]:
        cases = " ".join(f"WHEN {predicate} THEN '{code}'" for code, predicate in made.line_faults)
        rows = self.connection.execute(
            f"SELECT line, code FROM (SELECT line, CASE {cases} END AS code FROM {source}) WHERE code IS NOT NULL"
        ).fetchall()
        places = _places(parts, {line for line, _ in rows})
        return [(line, *places[line], LineFault(code)) for line, code in rows]

    def _note_invalid(self, made: Conversion, source: str, refused: str) -> int:
        """Name the fields that became NULL in lines that were kept; return their number."""
        found = " UNION ALL ".join(
            f"SELECT line, '{name}' AS field, '{code}' AS code FROM {source} WHERE ({predicate}) AND NOT ({refused})"
            for name, code, predicate in made.field_faults
        )
        row = self.connection.execute(
            f"INSERT INTO {INVALID_TABLE} SELECT {len(self.files) - 1}, line, field, code FROM ({found}) ORDER BY line, field"
        ).fetchone()
        return int(row[0]) if row else 0

    def _quarantine(self, lines: list[tuple[int, int, int, LineFault]]) -> None:
        if not lines:
            return
        numbers, offsets, lengths, codes = zip(*lines, strict=True)
        table = pa.table({
            "file_id": pa.array([len(self.files) - 1] * len(lines), pa.int32()),
            "line": numbers, "byte_offset": offsets, "length": lengths, "code": [str(code) for code in codes],
        })
        self.connection.register("refused_lines", table)
        self.connection.execute(f"INSERT INTO {QUARANTINE_TABLE} SELECT * FROM refused_lines")
        self.connection.unregister("refused_lines")


def canonical_columns() -> dict[str, str]:
    """Return name and SQL type of every canonical column."""
    return {column.name: column.sql_type for column in COLUMNS}


def _result(item: "Future[RawBlock] | LongLine") -> RawBlock | LongLine:
    return item if isinstance(item, LongLine) else item.result()


def _places(parts: list[Block], wanted: set[int]) -> dict[int, tuple[int, int]]:
    """Return byte offset and length of physical lines, by number."""
    found: dict[int, tuple[int, int]] = {}
    for block in parts:
        offset = block.offset
        for index, piece in enumerate(block.data.split(b"\n")):
            number = block.first_line + index
            if number in wanted:
                found[number] = (offset, len(piece.rstrip(b"\r")))
            offset += len(piece) + 1
    return found


def _any(predicates: "Iterator[str] | list[str]") -> str:
    return " OR ".join(f"COALESCE({predicate}, FALSE)" for predicate in predicates) or "FALSE"


def _count(predicate: str) -> str:
    return f"sum(CASE WHEN {predicate} THEN 1 ELSE 0 END)"


def _sum(predicates: "Iterator[str] | list[str]") -> str:
    return " + ".join(f"CASE WHEN {predicate} THEN 1 ELSE 0 END" for predicate in predicates) or "0"


def _ints(row: tuple[object, ...] | None) -> tuple[int, ...]:
    return tuple(int(str(value)) if value is not None else 0 for value in row or ())
