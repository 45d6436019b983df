"""The engine on DuckDB: load ledgers, derive the views, run SELECTs."""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import duckdb
import pyarrow as pa

from quietburn.common import temporary
from quietburn.dialects.mapping import Mapping as Dialect
from quietburn.engine import derive
from quietburn.engine.base import EngineError
from quietburn.engine.clocks import Clocks
from quietburn.engine.connection import MEMORY_LIMIT, connect
from quietburn.engine.settings import DeadlineDefault, Settings
from quietburn.engine.usage import counts_cached_apart
from quietburn.errors import InputError
from quietburn.ledger.counts import FileCounts
from quietburn.ledger.load import Loader
from quietburn.ledger.store import is_store, mark_store, transaction
from quietburn.ledger.tables import INVALID_TABLE, QUARANTINE_TABLE
from quietburn.ledger.units import GivenUnits, Settled
from quietburn.records.inputs import LedgerFile, log_of
from quietburn.records.reasons import BadItem, FieldFault, InvalidField, LineFault, QuarantinedLine
from quietburn.traffic.counted import count_lines
from quietburn.traffic.kinds import TOLD_COLUMNS, TOLD_LINES, tell_kinds
from quietburn.traffic.repeats import COUNTED_LINES, conflicting_ids
from quietburn.traffic.reshipped import differing_keys
from quietburn.traffic.vantage import SameTraffic

INTERRUPTED = "Query interrupted"  # what DuckDB makes of a signal

_T = TypeVar("_T")


@dataclass(frozen=True)
class Unreadable:
    """Values of one field that could not be read: how many, and where the first stands."""

    count: int
    file: str
    line: int


class DuckEngine:
    """One run's events in an in-memory DuckDB; a context manager that leaves nothing behind."""

    def __init__(
        self, *, zone: str | None = None, known: tuple[Dialect, ...], forced: Dialect | None = None,
        threads: int | None = None, memory_limit: str = MEMORY_LIMIT, database: Path | None = None,
        units: GivenUnits | None = None, read_only: bool = False, join: bool = False,
    ) -> None:
        self.connection, self._spill = connect(
            threads=threads, memory_limit=memory_limit, database=database, read_only=read_only
        )
        try:
            # The mark and the tables are one thing: a kill in between must not leave a store that none can open.
            with nullcontext() if database is None else transaction(self.connection):
                if database is not None:
                    self._open_store(database, read_only=read_only)
                self.loader = Loader(
                    self.connection, zone=zone, known=known, forced=forced, threads=threads, durable=database is not None,
                    read_only=read_only,
                )
        except BaseException:
            self.close()
            raise
        self._given_units = units or {}
        self._join = join
        self.columns: frozenset[str] = frozenset()
        self.settled: list[Settled] = []
        self.same_traffic: list[SameTraffic] = []
        self.strata: list[derive.Stratum] = []
        self.clocks = Clocks()
        self.conflicting_ids = 0
        self.joined_retries = 0
        self.reshipped_keys: dict[str, int] = {}
        self._carried: dict[str, bool] = {}
        self._side_gauges: dict[str, str] = {}

    def _open_store(self, database: Path, *, read_only: bool) -> None:
        """Check that the file is a store; make a new one of an empty file. Raises InputError."""
        if is_store(self.connection, str(database)):
            return
        if read_only:
            raise InputError(f"--db {database}: contains no ledger. Name the ledgers to load into it.")
        mark_store(self.connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and remove what was spilled."""
        self.connection.close()
        temporary.remove(self._spill)

    @property
    def files(self) -> list[FileCounts]:
        """Return what became of each file's lines."""
        return self.loader.files

    def load(self, ledgers: list[LedgerFile], progress: Callable[[int], None] | None = None) -> None:
        """Load ledgers, each as a whole; without any, take what the store holds."""
        by_id = self.loader.load_all(ledgers, progress)
        if not ledgers:
            self.loader.restore()
        counting = frozenset(name for name, mapping in self.loader.mappings.items() if mapping.dialect.sdk_attempts)
        counted = count_lines(
            self.connection, self.loader.columns, self._file_ids, self._given_units, self._logs(), counting,
            join=self._join,
        )
        self.joined_retries = counted.joined_retries
        self.columns, self.settled, self.same_traffic = counted.columns, counted.settled, counted.same_traffic
        for counts in self.files:
            counts.duplicates, counts.reshipped = counted.repeats.get(counts.file_id, (0, 0))
            counts.same_call = counted.same_call.get(counts.file_id, 0)
            counts.events -= counts.duplicates
            if counts.packed and counts.duplicates:
                self._count_repeated_lines(counts)
        if any(counts.reshipped for counts in self.files):
            self.reshipped_keys = differing_keys(self.connection, by_id)
        self.conflicting_ids = conflicting_ids(self.connection, self.columns)

    def _logs(self) -> dict[tuple[int, str], str]:
        """Return the log that lines of a file and dialect belong to: a rotated set is one, two dialects are two."""
        several = len({dialect for counts in self.files for dialect in counts.dialects}) > 1
        return {
            (counts.file_id, dialect): log_of(counts.label) + (f" ({dialect})" if several else "")
            for counts in self.files
            for dialect in counts.dialects
        }

    def _count_repeated_lines(self, counts: FileCounts) -> None:
        """Count as duplicates the lines none of whose events count."""
        before = counts.events + counts.duplicates - counts.packed
        ((left,),) = self.connection.execute(
            f"SELECT count(DISTINCT line) FROM {COUNTED_LINES} WHERE file_id = {counts.file_id}"
        ).fetchall()
        counts.duplicates = before - int(left)
        counts.packed = counts.events - int(left)
        counts.reshipped = min(counts.reshipped, counts.duplicates)

    @property
    def _file_ids(self) -> list[int] | None:
        """Return the files of this run where the store may hold others."""
        return [counts.file_id for counts in self.files] if self.loader.durable else None

    def prepare(self, settings: Settings) -> None:
        """Make `events` and what it stands on."""
        mappings = self.loader.mappings
        weak = {
            column: self._with_joined({name for name, mapping in mappings.items() if column in mapping.weak_columns})
            for column in ("finish_reason", "stream_complete")
        }
        settings = replace(settings, weak=weak)
        first_byte = [name for name, mapping in mappings.items() if mapping.dialect.first_byte]
        tell_kinds(self.connection, self.columns, settings.routes, first_byte)
        self.strata, self.clocks = derive.create_events(self.connection, self.columns, settings)
        # A deadline may be assumed or configured where no line carries one.
        stood_in = {"deadline_ms"} if settings.deadlines or "read_timeout_ms" in self.columns else set()
        stored = self.columns - stood_in
        narrowed = settings.since_us is not None or settings.until_us is not None
        made = stood_in | ({"prefix_is_new"} if "prefix_fp" in stored else set())
        self._carried = self._count("events" if narrowed else COUNTED_LINES, stored) | self._count("events", made | {"route"})
        # A check is a probe without any label; that says who spends only where checks spend.
        if not self._carried.get("traffic"):
            spends = "SELECT 1 FROM events WHERE traffic IS NOT NULL AND tokens > 0 LIMIT 1"
            self._carried["traffic"] = bool(self.connection.execute(spends).fetchall())

    def _with_joined(self, dialects: set[str]) -> tuple[str, ...]:
        """Return dialects, and those whose lines are filled from lines of any of them."""
        logs = self._logs()
        filled = {found.outer for found in self.same_traffic if self._join and found.same for (_, dialect), log in logs.items()
                 if log == found.inner and dialect in dialects}  # fmt: skip
        return tuple(sorted(dialects | {dialect for (_, dialect), log in logs.items() if log in filled}))

    def _count(self, source: str, columns: Collection[str]) -> dict[str, bool]:
        if not columns:
            return {}
        asked = ", ".join(f"count({name}) > 0" for name in sorted(columns))
        (row,) = self.connection.execute(f"SELECT {asked} FROM {source}").fetchall()
        return dict(zip(sorted(columns), row, strict=True))

    @property
    def side_gauges(self) -> Mapping[str, str]:
        """Return gauges that come from elsewhere: column of the ledger -> table of (backend, minute, value)."""
        return self._side_gauges

    def take_cpu(self, means: list[tuple[str, int, float]]) -> None:
        """Take CPU use by backend and minute from elsewhere."""
        backends, minutes, values = zip(*means, strict=True)
        self.with_rows("cpu_minutes", pa.table({"backend": backends, "minute": pa.array(minutes, pa.int64()), "value": values}))
        self._side_gauges["cpu_pct"] = "cpu_minutes"

    def carries(self, field: str) -> bool:
        """Whether any event has a value in this column, a gauge from elsewhere stands for it, or no header of it was sent."""
        return bool(self._carried.get(field, False)) or field in self._side_gauges or field in self._told_by_headers

    @property
    def _told_by_headers(self) -> frozenset[str]:
        """Return the columns of headers that a log has keys for, though no line may carry one."""
        return frozenset[str]().union(
            *(mapping.columns_told_by(self.logged_keys(name)) for name, mapping in self.loader.mappings.items())
        )

    def logged_keys(self, dialect: str) -> frozenset[str]:
        """Return the keys that every log of a dialect has, empty ones too."""
        found = [frozenset(counts.keys) for counts in self.files if dialect in counts.dialects]
        return frozenset.intersection(*found) if found else frozenset()

    def select(self, sql: str) -> pa.Table:
        """Run one SELECT. Raises EngineError."""

        def fetched() -> pa.Table:
            # A relation's own Arrow output would save a copy of what is small, and can't be interrupted.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                return self.connection.execute(sql).to_arrow_table()

        return self._within_memory(fetched)

    def make_table(self, name: str, sql: str) -> None:
        """Keep the rows of a SELECT. Raises EngineError."""
        self._within_memory(lambda: self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}"))

    def _within_memory(self, run: Callable[[], _T]) -> _T:
        """Run a statement; where memory is too tight for all threads, again with one. Raises EngineError."""
        try:
            try:
                return run()
            except duckdb.OutOfMemoryException:  # each thread holds blocks of its own: one needs the least
                with self._one_thread():
                    return run()
        except duckdb.Error as problem:
            raise EngineError(str(problem)) from None
        except RuntimeError as problem:
            if str(problem) != INTERRUPTED:
                raise
            raise KeyboardInterrupt from None  # Ctrl-C is no fault of the statement that it stops

    @contextmanager
    def _one_thread(self) -> Iterator[None]:
        ((threads,),) = self.connection.execute("SELECT current_setting('threads')").fetchall()
        self.connection.execute("SET threads = 1")
        try:
            yield
        finally:
            self.connection.execute(f"SET threads = {threads}")

    def with_rows(self, name: str, rows: pa.Table) -> None:
        """Give rows under a name, replacing what had it."""
        self.connection.register(name, rows)

    def _ids(self) -> str:
        return ", ".join(str(counts.file_id) for counts in self.files) or "NULL"

    def quarantine(self, limit: int | None = None) -> list[QuarantinedLine]:
        """Return the first refused lines, or all of them, in order of file and line."""
        rows = self.connection.execute(
            f"SELECT file_id, line, byte_offset, length, code FROM {QUARANTINE_TABLE} WHERE item IS NULL "
            f"AND file_id IN ({self._ids()}) ORDER BY file_id, line{'' if limit is None else f' LIMIT {limit}'}"
        ).fetchall()
        labels = {counts.file_id: counts.label for counts in self.files}
        return [QuarantinedLine(labels[f], line, offset, length, LineFault(code)) for f, line, offset, length, code in rows]

    def quarantine_codes(self) -> dict[str, int]:
        """Return how many lines were refused for each reason, the most first."""
        return dict(self.connection.execute(
            f"SELECT code, count(*) FROM {QUARANTINE_TABLE} WHERE item IS NULL AND file_id IN ({self._ids()}) "
            "GROUP BY code ORDER BY 2 DESC, 1"
        ).fetchall())

    def bad_items(self, limit: int) -> list[BadItem]:
        """Return the first items that were refused within used lines, in order of file, line and item."""
        rows = self.connection.execute(
            f"SELECT file_id, line, item, code FROM {QUARANTINE_TABLE} WHERE item IS NOT NULL AND file_id IN ({self._ids()}) "
            f"ORDER BY file_id, line, item LIMIT {limit}"
        ).fetchall()
        labels = {counts.file_id: counts.label for counts in self.files}
        return [BadItem(labels[f], line, item, LineFault(code)) for f, line, item, code in rows]

    def invalid_fields(self, limit: int) -> list[InvalidField]:
        """Return the first fields that became NULL, in order of file and line."""
        rows = self.connection.execute(
            f"SELECT file_id, line, field, code FROM {INVALID_TABLE} WHERE file_id IN ({self._ids()}) "
            f"ORDER BY file_id, line, field LIMIT {limit}"
        ).fetchall()
        labels = {counts.file_id: counts.label for counts in self.files}
        return [InvalidField(labels[f], line, field, FieldFault(code)) for f, line, field, code in rows if f in labels]

    def unreadable(self, field: str) -> Unreadable | None:
        """Return how many of a field's values became NULL since they can't be read, and where the first stands."""
        rows = self.connection.execute(
            f"SELECT file_id, line, count(*) OVER () FROM {INVALID_TABLE} WHERE file_id IN ({self._ids()}) AND field = ? "
            "ORDER BY file_id, line LIMIT 1", [field],
        ).fetchall()
        labels = {counts.file_id: counts.label for counts in self.files}
        return Unreadable(int(rows[0][2]), labels[rows[0][0]], int(rows[0][1])) if rows else None

    def counting_cached_apart(self) -> dict[str, int]:
        """Return in how many events of each dialect the prompt leaves cached tokens out that the total has."""
        if not {"actual_tokens", "prompt_tokens", "completion_tokens", "cached_tokens"} <= self.columns:
            return {}
        rows = self.connection.execute(
            f"SELECT dialect, count(*) FROM {COUNTED_LINES} WHERE {counts_cached_apart()} GROUP BY dialect ORDER BY dialect"
        ).fetchall()
        return {str(dialect): int(count) for dialect, count in rows}

    def lines_meant(self, default: DeadlineDefault) -> bool:
        """Return whether a deadline of the configuration is for any of the loaded events, whatever these carry."""
        condition = default.condition(self.columns | TOLD_COLUMNS)
        if condition in (None, "TRUE"):
            return condition is not None
        return bool(self.connection.execute(f"SELECT 1 FROM {TOLD_LINES} WHERE {condition} LIMIT 1").fetchall())

    def routes(self, limit: int) -> list[str]:
        """Return the routes of the loaded events, those with the most events first."""
        rows = self.connection.execute(
            f"SELECT route FROM {TOLD_LINES} GROUP BY route ORDER BY count(*) DESC, route LIMIT {limit}"
        ).fetchall()
        return [str(row[0]) for row in rows]

    def span(self) -> tuple[int | None, int | None]:
        """Return the first and last time of the loaded events, in UTC microseconds."""
        if "ts_us" not in self.columns:
            return None, None
        ((first, last),) = self.connection.execute(
            f"SELECT min(ts_us), max(ts_us) FROM {COUNTED_LINES}"
        ).fetchall()
        return first, last

    def after(self, moment_us: int) -> tuple[int, int | None]:
        """Return how many of the loaded events are later than a moment, and the time of the last of them."""
        if "ts_us" not in self.columns:
            return 0, None
        ((count, last),) = self.connection.execute(
            f"SELECT count(*), max(ts_us) FROM {COUNTED_LINES} WHERE ts_us > {moment_us}"
        ).fetchall()
        return int(count), last
