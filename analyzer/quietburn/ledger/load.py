"""Ledger files into the table `ledger_events`, with every line accounted for."""

import dataclasses
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

import duckdb
import pyarrow as pa

from quietburn.errors import InputError
from quietburn.ledger import store
from quietburn.ledger.blocks import Block, LongLine, blocks
from quietburn.ledger.convert import Conversion, build, quote, recognises
from quietburn.ledger.detect import Detection, Rejoined, detect, sampled
from quietburn.ledger.events import BY_NAME, COLUMNS
from quietburn.ledger.inputs import LedgerFile
from quietburn.ledger.mapping import Mapping
from quietburn.ledger.raw import Fault, RawBlock, UnknownKeys, read_block
from quietburn.ledger.reasons import LineFault
from quietburn.ledger.repeats import EVENTS_TABLE, drop_repeats

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
    file_id: int = 0
    dialects: tuple[str, ...] = ()
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

    def stored(self) -> dict[str, object]:
        """Return the counts as a store keeps them."""
        return dataclasses.asdict(self)

    @classmethod
    def restored(cls, stored: dict[str, Any]) -> "FileCounts":
        """Return counts that a store kept."""
        return cls(**{**stored, "dialects": tuple(stored["dialects"]), "unknown": UnknownKeys(**stored["unknown"])})


class Loader:
    """Loads ledgers into one DuckDB connection; columns appear when a file first brings them."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, *, zone: str | None, known: tuple[Mapping, ...],
        forced: Mapping | None = None, threads: int | None = None, durable: bool = False,
    ) -> None:
        self.connection = connection
        self.durable = durable
        self.zone = zone
        self.known = known
        self.forced = forced
        self.threads = threads or os.cpu_count() or 1
        self.files: list[FileCounts] = []
        self.mappings: dict[str, Mapping] = {}
        self._columns: set[str] = set()
        self._conversions: dict[tuple[str, tuple[str, ...]], Conversion] = {}
        self._current = FileCounts("", "", "")
        self._next_id = self._open_tables()

    def _open_tables(self) -> int:
        """Make the tables where they are missing, learn which columns there are; return the next file's id."""
        self.connection.execute("SET TimeZone = 'UTC'")
        for name, columns in (
            (EVENTS_TABLE, "file_id INTEGER, line BIGINT, dialect VARCHAR, line_check BIGINT"),
            (QUARANTINE_TABLE, "file_id INTEGER, line BIGINT, byte_offset BIGINT, length BIGINT, code VARCHAR"),
            (INVALID_TABLE, "file_id INTEGER, line BIGINT, field VARCHAR, code VARCHAR"),
        ):
            self.connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
        store.create_files_table(self.connection)
        listed = self.connection.execute(f"DESCRIBE {EVENTS_TABLE}").fetchall()
        self._columns = {row[0] for row in listed} & BY_NAME.keys()
        # Results are always fetched whole: DuckDB refuses other work while rows are left.
        ((last,),) = self.connection.execute(f"SELECT max(file_id) FROM {store.FILES_TABLE}").fetchall()
        return 0 if last is None else int(last) + 1

    @property
    def columns(self) -> frozenset[str]:
        """Return the canonical columns that the table has."""
        return frozenset(self._columns)

    def load(self, ledger: LedgerFile, progress: Progress | None = None) -> FileCounts:
        """Load what is new of one ledger, all of it or nothing.

        Raises InputError when it can't be read or recognised; then nothing of it is kept.
        """
        columns, mappings = set(self._columns), dict(self.mappings)
        try:
            # In memory there is nothing to protect: a load that fails ends the run.
            with store.transaction(self.connection) if self.durable else nullcontext():
                counts = self._load_new(ledger, progress)
        except BaseException:
            self._columns, self.mappings = columns, mappings
            raise
        self.files.append(counts)
        return counts

    def restore(self) -> None:
        """Take every file of the store as one of this run."""
        for file in store.remembered_files(self.connection):
            counts = FileCounts.restored(file.counts)
            self._know_again(counts)
            self.files.append(counts)

    def labels(self) -> tuple[str, ...]:
        """Return every file's label by its id."""
        if not self.durable:
            return tuple(counts.label for counts in self.files)
        return tuple(file.label for file in store.remembered_files(self.connection))

    def _know_again(self, counts: FileCounts) -> None:
        for mapping in self.known:
            if mapping.dialect.name in counts.dialects:
                self.mappings[mapping.dialect.name] = mapping

    def _load_new(self, ledger: LedgerFile, progress: Progress | None) -> FileCounts:
        with sampled(ledger) as (stream, sample, head):
            for file in store.remembered_files(self.connection) if ledger.path else ():
                if file.starts_like(head, ledger.label):
                    with store.resumed(ledger, file) as place:
                        if place is not None:
                            return self._load_grown(ledger, file, place, sample, head, progress)
            detection = detect(ledger, sample, self.known, forced=self.forced)
            counts = FileCounts(ledger.label, detection.main, detection.why, self._next_id)
            self._next_id += 1
            self._load_from(ledger, stream, detection, counts, _Place(1, 0, b""), head, progress)
            return counts

    def _load_grown(
        self, ledger: LedgerFile, file: store.Remembered, place: store.Resumed, sample: list[bytes], head: bytes,
        progress: Progress | None,
    ) -> FileCounts:
        """Add what stands behind the place up to which a file was read; nothing where it has not grown."""
        counts = FileCounts.restored(file.counts)
        counts.label = ledger.label
        self._know_again(counts)
        rest = place.stream.read(file.end_at - file.resume_at + 1)
        if len(rest) <= file.end_at - file.resume_at:
            return counts
        if file.open_line is not None:
            self._take_back(counts, file.open_line, file.open_kind)
        detection = detect(ledger, sample, self.known, forced=self.forced)
        start = _Place(counts.lines + 1, file.resume_at, place.tail)
        self._load_from(ledger, cast(BinaryIO, Rejoined(rest, place.stream)), detection, counts, start, head, progress)
        return counts

    def _take_back(self, counts: FileCounts, line: int, kind: str | None) -> None:
        """Uncount a line that had no end when it was read; it is read again, whole."""
        counts.lines -= 1
        counts.incomplete_last_line = False
        if kind:
            setattr(counts, kind, getattr(counts, kind) - 1)
        for table in (EVENTS_TABLE, QUARANTINE_TABLE, INVALID_TABLE):
            self.connection.execute(f"DELETE FROM {table} WHERE file_id = {counts.file_id} AND line = {line}")

    def _load_from(
        self, ledger: LedgerFile, stream: BinaryIO, detection: Detection, counts: FileCounts, place: "_Place", head: bytes,
        progress: Progress | None,
    ) -> None:
        """Read a stream to its end from a place on, and remember where that was."""
        for mapping in detection.mappings:
            self.mappings[mapping.dialect.name] = mapping
        counts.dialects = tuple(dict.fromkeys((*counts.dialects, *(m.dialect.name for m in detection.mappings))))
        self._current = counts
        end = _End(place.offset, place.offset, place.tail)
        batch: list[RawBlock] = []
        rows = 0
        for raw in self._read(stream, detection, place):
            if isinstance(raw, LongLine):
                end.pass_over(raw)
                counts.lines += 1
                counts.quarantined += 1
                self._quarantine([(raw.number, raw.offset, raw.length, LineFault.TOO_LONG)])
                continue
            end.pass_block(raw.block)
            batch.append(raw)
            rows += raw.lines
            if progress:
                progress(len(raw.block.data))
            if rows >= _BATCH_ROWS:
                self._add(batch, detection, counts)
                batch, rows = [], 0
        self._add(batch, detection, counts)
        _refuse_shrunk(ledger, end.end_at)
        if self.durable:
            self._remember(counts, end, head)

    def _remember(self, counts: FileCounts, end: "_End", head: bytes) -> None:
        """Drop what stands twice in the store and note how far a file was read."""
        kind = self._open_kind(counts, end)
        for file_id, count in drop_repeats(self.connection, self.columns).items():
            self._count_repeats(counts, file_id, count)
        if kind == "events" and self._open_kind(counts, end) != "events":
            kind = "duplicates"
        size = min(len(head), store.HEAD_BYTES, end.resume_at or end.end_at)
        store.remember(self.connection, store.Remembered(
            counts.file_id, counts.label, size, store.digest(head[:size]), end.resume_at, end.end_at,
            store.tail_mark(end.tail), counts.lines, end.open_line, kind, counts.stored(),
        ))

    def drop_repeats(self) -> None:
        """Drop lines that stand twice in what was loaded into memory."""
        for file_id, count in drop_repeats(self.connection, self.columns).items():
            self._count_repeats(self.files[-1], file_id, count)

    def _count_repeats(self, current: FileCounts, file_id: int, count: int) -> None:
        """Count lines that turned out to stand twice, in whichever file they stand."""
        if file_id == current.file_id:
            current.duplicates += count
            current.events -= count
            return
        for file in store.remembered_files(self.connection):
            if file.file_id == file_id:
                counts = FileCounts.restored(file.counts)
                counts.duplicates += count
                counts.events -= count
                store.remember(self.connection, dataclasses.replace(file, counts=counts.stored()))
        for counts in self.files:
            if counts.file_id == file_id:
                counts.duplicates += count
                counts.events -= count

    def _open_kind(self, counts: FileCounts, end: "_End") -> str | None:
        """Return what a line that has no end yet was counted as."""
        if end.open_line is None:
            return None
        for table, kind in ((QUARANTINE_TABLE, "quarantined"), (EVENTS_TABLE, "events")):
            ((found,),) = self.connection.execute(
                f"SELECT count(*) FROM {table} WHERE file_id = {counts.file_id} AND line = {end.open_line}"
            ).fetchall()
            if found:
                return kind
        return "not_a_request" if end.open_has_text else "blank"

    def _read(self, stream: BinaryIO, detection: Detection, place: "_Place") -> Iterator[RawBlock | LongLine]:
        """Parse blocks in threads and yield them in file order."""
        schema = detection.fast_schema()
        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Future[RawBlock] | LongLine] = deque()
            for block in blocks(stream, place.line, place.offset):
                waiting.append(block if isinstance(block, LongLine) else pool.submit(read_block, block, schema))
                if len(waiting) > _BLOCKS_AHEAD:
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())

    def _add(self, batch: list[RawBlock], detection: Detection, counts: FileCounts) -> None:
        """Count what a batch of blocks holds and insert its events."""
        faults: list[Fault] = []
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
        counts.incomplete_last_line |= any(fault.code is LineFault.INCOMPLETE_LAST_LINE for fault in faults)
        self._quarantine([(fault.line, fault.offset, fault.length, fault.code) for fault in faults])
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
        (of_dialect,) = _ints(self.connection.execute(f"SELECT {_count(mine)} FROM raw_lines").fetchall()[0])
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
        bad, invalid, coerced, naive = _ints(self.connection.execute(census).fetchall()[0])
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
        ((clean,),) = self.connection.execute(f"SELECT {proofs} FROM {source}").fetchall()
        return bool(clean)

    def _keep(self, mapping: Mapping, made: Conversion, source: str) -> None:
        self._widen(made.columns)
        listed = ", ".join(quote(name) for name in made.columns)
        self.connection.execute(
            f"INSERT INTO {EVENTS_TABLE} (file_id, dialect, {listed}) "
            f"SELECT {self._current.file_id}, '{mapping.dialect.name}', * FROM ({made.select_from(source)})"
        )

    def _conversion(self, mapping: Mapping, names: tuple[str, ...]) -> Conversion:
        key = (mapping.dialect.name, names)
        if key not in self._conversions:
            self._conversions[key] = build(mapping, list(names), zone=self.zone)
        return self._conversions[key]

    def _widen(self, columns: list[str]) -> None:
        for name in columns:
            if name in BY_NAME and name not in self._columns:
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
        ((count,),) = self.connection.execute(
            f"INSERT INTO {INVALID_TABLE} SELECT {self._current.file_id}, line, field, code FROM ({found}) ORDER BY line, field"
        ).fetchall()
        return int(count)

    def _quarantine(self, lines: list[tuple[int, int, int, LineFault]]) -> None:
        if not lines:
            return
        numbers, offsets, lengths, codes = zip(*lines, strict=True)
        table = pa.table({
            "file_id": pa.array([self._current.file_id] * len(lines), pa.int32()),
            "line": numbers, "byte_offset": offsets, "length": lengths, "code": [str(code) for code in codes],
        })
        self.connection.register("refused_lines", table)
        self.connection.execute(f"INSERT INTO {QUARANTINE_TABLE} SELECT * FROM refused_lines")
        self.connection.unregister("refused_lines")


@dataclass(frozen=True)
class _Place:
    """Where reading starts: number of the next line, its byte offset, and the bytes before it."""

    line: int
    offset: int
    tail: bytes


@dataclass
class _End:
    """Where reading has come to: after the last line that ended, and what stands behind it."""

    resume_at: int
    end_at: int
    tail: bytes
    open_line: int | None = None
    open_has_text: bool = False

    def pass_block(self, block: Block) -> None:
        """Note a block; in the last one of a file the last line may have no end."""
        cut = block.data.rfind(b"\n") + 1 if block.is_last else len(block.data)
        self.tail = (self.tail + block.data[:cut])[-store.TAIL_BYTES :]
        self.resume_at = block.offset + cut
        self.end_at = block.offset + len(block.data)
        if cut < len(block.data):
            self.open_line = block.first_line + block.data.count(b"\n")
            self.open_has_text = bool(block.data[cut:].strip())

    def pass_over(self, line: LongLine) -> None:
        """Note a line that was too long to be held; its bytes are not known again."""
        self.resume_at = self.end_at = line.offset + line.length
        self.tail = b""


def _refuse_shrunk(ledger: LedgerFile, end_at: int) -> None:
    """Refuse a file that is shorter now than what was read of it."""
    if ledger.path is None or ledger.is_compressed:
        return
    try:
        size = ledger.path.stat().st_size
    except OSError:
        return  # gone or renamed while it was read: what was read is whole
    if size < end_at:
        raise InputError(f"{ledger.label}: shrank while it was read, so nothing of it was kept. Run again once it stands still.")


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
