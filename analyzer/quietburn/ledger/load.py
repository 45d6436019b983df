"""Ledger files into the table `ledger_events`, with every line accounted for."""

import dataclasses
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, BinaryIO, cast

import duckdb

from quietburn.errors import InputError
from quietburn.ledger import store
from quietburn.ledger.blocks import Block, LongLine, blocks
from quietburn.ledger.counts import FileCounts
from quietburn.ledger.detect import Detection, EmptyLedgerError, Rejoined, Sampled, detect, sampled
from quietburn.ledger.events import BY_NAME
from quietburn.ledger.inputs import LedgerFile, label_of, opened
from quietburn.ledger.insert import Inserter, Parsed, Reader, sort_tables
from quietburn.ledger.mapping import Mapping
from quietburn.ledger.places import End, Place
from quietburn.ledger.raw import read_block
from quietburn.ledger.tables import EVENTS_TABLE, FILES_TABLE, INVALID_TABLE, QUARANTINE_TABLE, create_tables
from quietburn.ledger.unwrapping import unwrapped

_BLOCKS_AHEAD = 24  # parsed while a batch is inserted; about 100 MiB of text at most

_NO_FILE = -1  # id of files that hold no line

Progress = Callable[[int], None]


class Loader:
    """Loads ledgers into one DuckDB connection; columns appear when a file first brings them."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, *, zone: str | None, known: tuple[Mapping, ...],
        forced: Mapping | None = None, threads: int | None = None, durable: bool = False,
        read_only: bool = False,
    ) -> None:
        self.connection = connection
        self.durable = durable
        self.read_only = read_only
        self.zone = zone
        self.known = known
        self.forced = forced
        self.threads = threads or os.cpu_count() or 1
        self.files: list[FileCounts] = []
        self.mappings: dict[str, Mapping] = {}
        self.notes: list[str] = []  # for the reader of the report
        self._columns: set[str] = set()
        self._next_id = self._open_tables()

    def _open_tables(self) -> int:
        """Make the tables where they are missing, learn which columns there are; return the next file's id."""
        self.connection.execute("SET TimeZone = 'UTC'")
        if not self.read_only:
            create_tables(self.connection)
        listed = self.connection.execute(f"DESCRIBE {EVENTS_TABLE}").fetchall()
        names = {row[0] for row in listed}
        quarantined = {row[0] for row in self.connection.execute(f"DESCRIBE {QUARANTINE_TABLE}").fetchall()}
        if "item" not in names & quarantined:
            raise InputError("--db: was filled by an older version of quietburn; load a ledger into it once, or load all anew.")
        self._columns = names & BY_NAME.keys()
        # Results are always fetched whole: DuckDB refuses other work while rows are left.
        ((last,),) = self.connection.execute(f"SELECT max(file_id) FROM {FILES_TABLE}").fetchall()
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
        except EmptyLedgerError:
            if not ledger.found:
                raise
            # In a folder a ledger that was just rotated is empty; it is listed with its no lines.
            counts = FileCounts(ledger.label, "none", "the file is empty", _NO_FILE)
            self.files.append(counts)
            return counts
        except BaseException:
            self._columns, self.mappings = columns, mappings
            raise
        # A copy of a file that this run has loaded is that file; it may have grown meanwhile.
        self.files = [file for file in self.files if file.file_id != counts.file_id]
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
        known = store.remembered_files(self.connection) if self.durable else self.files
        labels = {file.file_id: file.label for file in known}
        return tuple(labels.get(number, "") for number in range(self._next_id))

    def _know_again(self, counts: FileCounts) -> None:
        for mapping in self.known:
            if mapping.dialect.name in counts.dialects:
                self.mappings[mapping.dialect.name] = mapping

    def _load_new(self, ledger: LedgerFile, progress: Progress | None) -> FileCounts:
        with sampled(ledger) as sample:
            known = list(store.remembered_files(self.connection)) if ledger.path else []
            for file in known:
                if file.starts_like(sample.head, place_of(ledger)):
                    with store.resumed(ledger, file) as place:
                        if place is not None:
                            return self._load_grown(ledger, file, place, sample, progress)
            if any(file.path == place_of(ledger) for file in known):
                self.notes.append(
                    f"{ledger.label}: holds other lines than when it was loaded (rotated or rewritten); the earlier ones stay "
                    "in the store, as a file of their own."
                )
            detection = detect(ledger, sample.lines, self.known, forced=self.forced)
            counts = FileCounts(ledger.label, detection.main, detection.why, self._next_id)
            self._next_id += 1
            start = Place(1, sample.passed, b"")
            self._load_from(ledger, sample.stream, detection, counts, start, sample.head, progress)
            return counts

    def _load_grown(
        self, ledger: LedgerFile, file: store.Remembered, place: store.Resumed, sample: Sampled,
        progress: Progress | None,
    ) -> FileCounts:
        """Add what stands behind the place up to which a file was read; nothing where it has not grown."""
        self._know_again(FileCounts.restored(file.counts))
        rest = place.stream.read(file.end_at - file.resume_at + 1)
        if len(rest) <= file.end_at - file.resume_at:
            return dataclasses.replace(FileCounts.restored(file.counts), label=ledger.label)
        counts = dataclasses.replace(FileCounts.restored(file.ended_counts), label=ledger.label)
        if counts.wrapper and (file.open_line is not None or file.counts["incomplete_last_line"]):
            return self._load_again(ledger, counts, sample, progress)
        if file.open_line is not None:  # it is read again, whole
            for table in (EVENTS_TABLE, QUARANTINE_TABLE, INVALID_TABLE):
                self.connection.execute(f"DELETE FROM {table} WHERE file_id = {counts.file_id} AND line = {file.open_line}")
        detection = detect(ledger, sample.lines, self.known, forced=self.forced)
        start = Place(counts.lines + 1, file.resume_at, place.tail)
        self._load_from(ledger, cast(BinaryIO, Rejoined(rest, place.stream)), detection, counts, start, sample.head, progress)
        return counts

    def _load_again(
        self, ledger: LedgerFile, before: FileCounts, sample: Sampled, progress: Progress | None
    ) -> FileCounts:
        """Read a file anew that ended within a wrapped line: its parts may stand far before its end."""
        for table in (EVENTS_TABLE, QUARANTINE_TABLE, INVALID_TABLE):
            self.connection.execute(f"DELETE FROM {table} WHERE file_id = {before.file_id}")
        detection = detect(ledger, sample.lines, self.known, forced=self.forced)
        counts = FileCounts(ledger.label, detection.main, detection.why, before.file_id)
        with opened(ledger) as stream:
            self._load_from(ledger, stream, detection, counts, Place(1, 0, b""), sample.head, progress)
        return counts

    def _load_from(
        self, ledger: LedgerFile, stream: BinaryIO, detection: Detection, counts: FileCounts, place: Place, head: bytes,
        progress: Progress | None,
    ) -> None:
        """Read a stream to its end from a place on, and remember where that was."""
        for mapping in detection.mappings:
            self.mappings[mapping.dialect.name] = mapping
        counts.dialects = tuple(dict.fromkeys((*counts.dialects, *(m.dialect.name for m in detection.mappings))))
        counts.keys = tuple(sorted({*counts.keys, *detection.logged_keys()}))
        counts.wrapper = detection.wrapper.name if detection.wrapper else ""
        end = End(place.offset, place.offset, place.tail)
        inode = ledger.path.stat().st_ino if ledger.path else None
        reader = Reader(detection.mappings, self.forced is not None, self.zone)
        arriving = self._passing(self._read(stream, detection, reader, place), end, progress)
        inserter = Inserter(self.connection, self._columns, reader, counts)
        open_block: list[Parsed] = []
        inserter.insert(_ended(arriving, open_block))
        ended_counts = counts.stored()
        inserter.insert(iter(open_block))
        _refuse_shrunk(ledger, inode, end.end_at)
        if self.durable:
            self._remember(ledger, counts, ended_counts, end, head)

    def _remember(
        self, ledger: LedgerFile, counts: FileCounts, ended_counts: dict[str, Any], end: End, head: bytes
    ) -> None:
        """Note how far a file was read."""
        size = min(len(head), store.HEAD_BYTES, end.resume_at or end.end_at)
        store.remember(self.connection, store.Remembered(
            counts.file_id, counts.label, place_of(ledger), size, store.digest(head[:size]), end.resume_at, end.end_at,
            store.tail_mark(end.tail), counts.lines, end.open_line, counts.stored(), ended_counts,
        ))

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

    def _read(
        self, stream: BinaryIO, detection: Detection, reader: Reader, place: Place
    ) -> Iterator[Parsed | LongLine]:
        """Parse blocks in threads and yield them in file order."""
        schema = detection.fast_schema()

        def parse(block: Block) -> Parsed:
            return sort_tables(read_block(block, schema), reader)

        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Future[Parsed] | LongLine] = deque()
            for block in unwrapped(blocks(stream, place.line, place.offset), detection.wrapper, pool):
                waiting.append(block if isinstance(block, LongLine) else pool.submit(parse, block))
                if len(waiting) > _BLOCKS_AHEAD:
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())


def place_of(ledger: LedgerFile) -> str:
    """Return where a ledger lies, however it was named."""
    return label_of(str(ledger.path.resolve())) if ledger.path else ledger.label


def _ended(arriving: Iterator[Parsed | LongLine], open_block: list[Parsed]) -> Iterator[Parsed | LongLine]:
    """Pass on what holds whole lines; a block of a line that has no end yet, the last one, is put aside."""
    for item in arriving:
        if isinstance(item, Parsed) and item.raw.block.is_last:
            open_block.append(item)
        else:
            yield item


def _refuse_shrunk(ledger: LedgerFile, inode: int | None, end_at: int) -> None:
    """Refuse a file that is shorter now than what was read of it."""
    if ledger.path is None or ledger.is_compressed:
        return
    try:
        now = ledger.path.stat()
    except OSError:
        return  # gone or renamed while it was read: what was read is whole
    if now.st_ino == inode and now.st_size < end_at:
        raise InputError(f"{ledger.label}: shrank while it was read, so nothing of it was kept. Run again once it stands still.")


def _result(item: Future[Parsed] | LongLine) -> Parsed | LongLine:
    return item if isinstance(item, LongLine) else item.result()
