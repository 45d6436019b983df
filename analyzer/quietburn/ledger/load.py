"""Ledger files into the table `ledger_events`, with every line accounted for."""

import dataclasses
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import BinaryIO, cast

import duckdb

from quietburn.errors import InputError
from quietburn.ledger import store
from quietburn.ledger.blocks import Block, LongLine, blocks
from quietburn.ledger.counts import FileCounts
from quietburn.ledger.detect import Detection, Rejoined, detect, sampled
from quietburn.ledger.events import BY_NAME
from quietburn.ledger.inputs import LedgerFile
from quietburn.ledger.insert import INVALID_TABLE, QUARANTINE_TABLE, Inserter, Parsed, Reader, sort_tables
from quietburn.ledger.mapping import Mapping
from quietburn.ledger.places import End, Place
from quietburn.ledger.raw import read_block
from quietburn.ledger.repeats import EVENTS_TABLE, drop_repeats
from quietburn.ledger.schema import FastSchema

_BLOCKS_AHEAD = 24  # parsed while a batch is inserted; about 100 MiB of text at most

Progress = Callable[[int], None]


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
            self._load_from(ledger, stream, detection, counts, Place(1, 0, b""), head, progress)
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
        start = Place(counts.lines + 1, file.resume_at, place.tail)
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
        self, ledger: LedgerFile, stream: BinaryIO, detection: Detection, counts: FileCounts, place: Place, head: bytes,
        progress: Progress | None,
    ) -> None:
        """Read a stream to its end from a place on, and remember where that was."""
        for mapping in detection.mappings:
            self.mappings[mapping.dialect.name] = mapping
        counts.dialects = tuple(dict.fromkeys((*counts.dialects, *(m.dialect.name for m in detection.mappings))))
        end = End(place.offset, place.offset, place.tail)
        reader = Reader(detection.mappings, self.forced is not None, self.zone)
        arriving = self._passing(self._read(stream, detection.fast_schema(), reader, place), end, progress)
        Inserter(self.connection, self._columns, reader, counts).insert(arriving)
        _refuse_shrunk(ledger, end.end_at)
        if self.durable:
            self._remember(counts, end, head)

    def _passing(
        self, parsed: Iterator[Parsed | LongLine], end: End, progress: Progress | None
    ) -> Iterator[Parsed | LongLine]:
        """Pass parsed blocks on, noting how far the file was read."""
        for item in parsed:
            if isinstance(item, LongLine):
                end.pass_over(item)
            else:
                end.pass_block(item.raw.block)
                if progress:
                    progress(len(item.raw.block.data))
            yield item

    def _remember(self, counts: FileCounts, end: End, head: bytes) -> None:
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

    def _open_kind(self, counts: FileCounts, end: End) -> str | None:
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

    def _read(
        self, stream: BinaryIO, schema: FastSchema, reader: Reader, place: Place
    ) -> Iterator[Parsed | LongLine]:
        """Parse blocks in threads and yield them in file order."""

        def parse(block: Block) -> Parsed:
            return sort_tables(read_block(block, schema), reader)

        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Future[Parsed] | LongLine] = deque()
            for block in blocks(stream, place.line, place.offset):
                waiting.append(block if isinstance(block, LongLine) else pool.submit(parse, block))
                if len(waiting) > _BLOCKS_AHEAD:
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())


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


def _result(item: Future[Parsed] | LongLine) -> Parsed | LongLine:
    return item if isinstance(item, LongLine) else item.result()
