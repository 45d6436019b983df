"""Ledger files into the table `ledger_events`, with every line accounted for."""

import dataclasses
import os
from collections import deque
from collections.abc import Callable, Iterator
from collections.abc import Mapping as KeyMap
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import duckdb

from quietburn.common.columns import BY_NAME
from quietburn.dialects.detect import Detection, EmptyLedgerError, NoLedgerError, Rejoined, Sampled, detect, sampled
from quietburn.dialects.mapping import Mapping
from quietburn.errors import InputError
from quietburn.ledger import store
from quietburn.ledger.counts import FileCounts
from quietburn.ledger.insert import Inserter, Parsed, Reader, parsed
from quietburn.ledger.parse import Extraction
from quietburn.ledger.places import End, Place
from quietburn.ledger.tables import EVENTS_TABLE, FILES_TABLE, INVALID_TABLE, QUARANTINE_TABLE, create_tables
from quietburn.records.framing.documents import records_of_document
from quietburn.records.framing.framed import Neighbours, framed
from quietburn.records.inputs import LedgerFile, followers, label_of, opened
from quietburn.records.lines import Block, Line, LongLine, blocks, lines_of
from quietburn.records.records import Records, records_of_lines

_BLOCKS_AHEAD = 12  # parsed while a batch is inserted; about 50 MiB of text at most

DOCUMENT = "document"  # stands for a wrapper in the counts of files whose records are not lines
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
        self.left_out: list[str] = []  # why files of a folder are no ledgers
        self.followers: KeyMap[Path, LedgerFile] = {}  # of rotated files
        self._begun_before: dict[Path, frozenset[int]] = {}  # lines that belong to a record of the file before
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
            raise InputError(
                "--db: was written by an older version of quietburn. Load a ledger into it once, or load all into a new file."
            )
        self._columns = names & BY_NAME.keys()
        # Results are always fetched whole: DuckDB refuses other work while rows are left.
        ((last,),) = self.connection.execute(f"SELECT max(file_id) FROM {FILES_TABLE}").fetchall()
        return 0 if last is None else int(last) + 1

    @property
    def columns(self) -> frozenset[str]:
        """Return the canonical columns that the table has."""
        return frozenset(self._columns)

    def load_all(self, ledgers: list[LedgerFile], progress: Progress | None = None) -> dict[int, LedgerFile]:
        """Load ledgers in turn, those of a folder that are none named and left out; return them by file id.

        Raises InputError when none of them is a ledger.
        """
        self.followers = followers(ledgers)
        by_id = {self.load(ledger, progress).file_id: ledger for ledger in ledgers}
        if self.left_out and len(self.left_out) == len(ledgers):
            raise NoLedgerError(self.left_out[0])
        self.notes += [f"Left out: {reason}" for reason in self.left_out]
        return by_id

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
        except NoLedgerError as problem:
            self._columns, self.mappings = columns, mappings
            if not ledger.found:
                raise
            self.left_out.append(str(problem))
            return FileCounts(ledger.label, "none", "it is not a ledger", _NO_FILE)
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
                    f"{ledger.label}: its lines changed since it was loaded (rotated or rewritten); the earlier lines stay "
                    "in the store as a separate file."
                )
            detection = detect(ledger, sample, self.known, forced=self.forced)
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
        if counts.wrapper == DOCUMENT or (counts.wrapper and (file.open_line is not None or file.counts["incomplete_last_line"])):
            return self._load_again(ledger, counts, sample, progress)
        if file.open_line is not None:  # it is read again, whole
            for table in (EVENTS_TABLE, QUARANTINE_TABLE, INVALID_TABLE):
                self.connection.execute(f"DELETE FROM {table} WHERE file_id = {counts.file_id} AND line = {file.open_line}")
        detection = detect(ledger, sample, self.known, forced=self.forced)
        start = Place(counts.lines + 1, file.resume_at, place.tail)
        self._load_from(ledger, cast(BinaryIO, Rejoined(rest, place.stream)), detection, counts, start, sample.head, progress)
        return counts

    def _load_again(
        self, ledger: LedgerFile, before: FileCounts, sample: Sampled, progress: Progress | None
    ) -> FileCounts:
        """Read a file anew that ended within a wrapped line: its parts may stand far before its end."""
        for table in (EVENTS_TABLE, QUARANTINE_TABLE, INVALID_TABLE):
            self.connection.execute(f"DELETE FROM {table} WHERE file_id = {before.file_id}")
        detection = detect(ledger, sample, self.known, forced=self.forced)
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
        counts.wrapper = detection.wrapper.name if detection.wrapper else DOCUMENT if detection.is_document else ""
        end = End(place.offset, place.offset, place.tail)
        inode = ledger.path.stat().st_ino if ledger.path else None
        reader = Reader(detection.mappings, self.forced is not None, self.zone)
        beside = self._neighbours(ledger)
        arriving = self._passing(self._read(stream, detection, place, beside), end, progress)
        inserter = Inserter(self.connection, self._columns, reader, counts)
        open_block: list[Parsed] = []
        inserter.insert(_ended(arriving, open_block))
        ended_counts = counts.stored()
        inserter.insert(iter(open_block))
        _refuse_shrunk(ledger, inode, end.end_at)
        if beside.follower is not None:
            self._begun_before[beside.follower] = frozenset(beside.continued)
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
                end.pass_block(item.records.block)
                if progress:
                    progress(len(item.records.block.data))
            yield item

    def _neighbours(self, ledger: LedgerFile) -> Neighbours:
        """Return what a file shares with those beside it."""
        follower = self.followers.get(ledger.path) if ledger.path else None
        begun = self._begun_before.get(ledger.path, frozenset()) if ledger.path else frozenset()
        if follower is None:
            return Neighbours(begun_before=begun)
        return Neighbours(follower.path, lambda: _first_lines(follower), begun)

    def _arriving(
        self, stream: BinaryIO, detection: Detection, place: Place, beside: Neighbours
    ) -> Iterator[Block | Records | LongLine]:
        """Yield what a file holds, piece by piece: blocks of lines, or records that were laid bare."""
        if detection.is_document:
            return records_of_document(stream)
        arriving = blocks(stream, place.line, place.offset)
        return arriving if detection.wrapper is None else framed(arriving, detection.wrapper, beside)

    def _read(
        self, stream: BinaryIO, detection: Detection, place: Place, beside: Neighbours
    ) -> Iterator[Parsed | LongLine]:
        """Parse blocks in threads and yield them in file order."""
        extraction = Extraction(detection.source, (key for members in detection.sample for key in members))

        def work(item: Block | Records) -> Parsed:
            return parsed(records_of_lines(item) if isinstance(item, Block) else item, extraction)

        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Future[Parsed] | LongLine] = deque()
            for item in self._arriving(stream, detection, place, beside):
                waiting.append(item if isinstance(item, LongLine) else pool.submit(work, item))
                if len(waiting) > _BLOCKS_AHEAD:
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())


def _first_lines(ledger: LedgerFile) -> Iterator[Line]:
    """Yield lines from a ledger's beginning; none where it can't be read, which its own turn will tell."""
    with suppress(InputError), opened(ledger) as stream:
        for block in blocks(stream):
            if isinstance(block, LongLine):
                return
            yield from lines_of(block)


def place_of(ledger: LedgerFile) -> str:
    """Return where a ledger lies, however it was named."""
    return label_of(str(ledger.path.resolve())) if ledger.path else ledger.label


def _ended(arriving: Iterator[Parsed | LongLine], open_block: list[Parsed]) -> Iterator[Parsed | LongLine]:
    """Pass on what holds whole lines; a block of a line that has no end yet, the last one, is put aside."""
    for item in arriving:
        if isinstance(item, Parsed) and item.records.block.is_last:
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
        raise InputError(f"{ledger.label}: shrank while it was read, so none of it was kept. Run again when it is stable.")


def _result(item: Future[Parsed] | LongLine) -> Parsed | LongLine:
    return item if isinstance(item, LongLine) else item.result()
