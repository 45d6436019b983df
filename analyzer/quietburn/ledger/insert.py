"""Raw tables into the tables of events, refused lines and invalid fields.

Tables that are proven clean are streamed into one statement; all others are inserted in
batches, with a check for each value and a count of whatever a check refuses.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import duckdb
import numpy as np
import pyarrow as pa

from quietburn.ledger.blocks import LongLine, places_of
from quietburn.ledger.convert import Conversion, build, recognition_proof
from quietburn.ledger.counts import FileCounts
from quietburn.ledger.events import BY_NAME
from quietburn.ledger.joins import Joins
from quietburn.ledger.mapping import Mapping
from quietburn.ledger.proofs import microseconds
from quietburn.ledger.raw import RawBlock
from quietburn.ledger.rawcolumns import CLOCK, ITEM, RawKind, raw_name
from quietburn.ledger.reasons import Fault, LineFault
from quietburn.ledger.recognise import meets
from quietburn.ledger.sql import any_of, count_where, how_many, literal, quote
from quietburn.ledger.tables import EVENTS_TABLE, INVALID_TABLE, QUARANTINE_TABLE
from quietburn.ledger.times import TimeUnit

_BATCH_ROWS = 250_000  # DuckDB plans the statement anew for each batch: measured best of 50 to 500 thousand

Shape = tuple[str, ...]  # names of a raw table's columns


@dataclass(frozen=True)
class Reader:
    """How raw tables of one file become events: its dialects, in the order in which a line is offered to them.

    `forced` that every line is of the first dialect, whatever it looks like; `zone` is the zone
    of times that name none.
    """

    mappings: tuple[Mapping, ...]
    forced: bool
    zone: str | None
    _conversions: dict[tuple[str, Shape], Conversion] = field(default_factory=dict)

    def conversion(self, mapping: Mapping, shape: Shape) -> Conversion:
        """Return the conversion of raw tables of a shape, lines of one dialect."""
        key = (mapping.dialect.name, shape)
        if key not in self._conversions:
            self._conversions[key] = build(mapping, list(shape), zone=self.zone)
        return self._conversions[key]

    def trusting(self, shape: Shape) -> Conversion:
        """Return the conversion of proven tables of a shape."""
        written = tuple(name for name in shape if not name.startswith(f"{CLOCK}:"))
        made = self.conversion(self.mappings[0], written).trusting
        if made is None:
            raise AssertionError("a table was called clean without a proof")
        return made

    def is_of(self, mapping: Mapping, shape: Shape) -> str:
        """Return the predicate over lines of a raw table: this line is of the dialect."""
        return "TRUE" if self.forced else meets(mapping.recognise, list(shape))

    def is_request(self, mapping: Mapping, shape: Shape) -> str:
        """Return the predicate over lines of the dialect: this one is a request."""
        return meets(mapping.requests, list(shape))

    def proven(self, table: pa.Table) -> pa.Table | None:
        """Return the table as the trusting conversion takes it; None where it is not proven clean.

        That is where each line is of the first dialect, and nothing in it can be refused or coerced.
        """
        shape, first = tuple(table.column_names), self.mappings[0]
        known = [] if self.forced and not first.requests.keys else recognition_proof(first, list(shape))
        if known is None or not all(proof.holds(table) for proof in known):
            return None
        made = self.conversion(first, shape)
        if made.trusting is None or not made.is_clean(table):
            return None
        for key in made.trusting.clocks:
            table = table.append_column(raw_name(CLOCK, key), microseconds(table[raw_name(RawKind.DECIMAL, key)]))
        return table


@dataclass
class Parsed:
    """A parsed block on its way into the tables: clean raw tables apart from the others.

    `places` are number, byte offset and length of the lines of the others: a block's bytes are let
    go before the last check of what stood in them.
    """

    raw: RawBlock
    clean: list[pa.Table] = field(default_factory=list)
    others: list[pa.Table] = field(default_factory=list)
    places: list[tuple[int, int, int]] = field(default_factory=list)


def sort_tables(raw: RawBlock, reader: Reader) -> Parsed:
    """Tell a block's clean tables from those whose values must be looked at one by one."""
    parsed = Parsed(raw)
    for table in raw.tables:
        proven = reader.proven(table)
        if proven is None:
            parsed.others.append(table)
        else:
            parsed.clean.append(proven)
    if parsed.others:
        parsed.places = places_of(raw.block, np.unique(np.concatenate([table["line"].to_numpy() for table in parsed.others])))
    return parsed


@dataclass
class _Rest:
    """What waits to be inserted with checks: tables, refused lines, and the places of all lines in the tables."""

    tables: list[tuple[bool, pa.Table]] = field(default_factory=list)  # whether clean, table
    faults: list[Fault] = field(default_factory=list)
    places: list[tuple[int, int, int]] = field(default_factory=list)
    joins: Joins = field(default_factory=Joins)
    rows: int = 0

    def add(self, table: pa.Table, *, clean: bool) -> None:
        self.tables.append((clean, table))
        self.rows += table.num_rows

    @property
    def is_full(self) -> bool:
        return self.rows + len(self.faults) + len(self.joins.rows) >= _BATCH_ROWS


class Inserter:
    """Inserts one file's parsed blocks; columns appear when a line first brings them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, columns: set[str], reader: Reader, counts: FileCounts) -> None:
        self.connection = connection
        self.reader = reader
        self.counts = counts
        self._columns = columns
        self._rest = _Rest()

    def insert(self, arriving: Iterator[Parsed | LongLine]) -> None:
        """Insert everything that arrives. An error of the arrival itself is raised as it is."""
        ended = False

        def clean_tables() -> Iterator[pa.Table]:
            """Yield clean tables and set all else aside, until that is enough for a batch."""
            nonlocal ended
            for item in arriving:
                yield from self._take(item)
                if self._rest.is_full:
                    return
            ended = True

        while not ended:
            tables = clean_tables()
            first = next(tables, None)
            if first is not None:
                self._stream(first, tables)
            self._insert_rest()
        if any(mapping.events for mapping in self.reader.mappings):
            self._count_lines()

    def _count_lines(self) -> None:
        """Count what became of physical lines where a line holds several events: the best that became of any."""
        counts = self.counts
        mine = f"file_id = {counts.file_id}"
        used = f"(SELECT DISTINCT line FROM {EVENTS_TABLE} WHERE {mine})"
        self._refuse_lines_of_bad_items(mine, used)
        with_event, refused, bad_items = self._totals(
            f"SELECT (SELECT count(*) FROM {used}), count(*) FILTER (item IS NULL), count(item) FROM {QUARANTINE_TABLE} "
            f"WHERE {mine}"
        )
        counts.packed = counts.events - with_event
        counts.quarantined, counts.bad_items = refused, bad_items
        counts.not_a_request = counts.lines - counts.blank - with_event - counts.joined - refused

    def _refuse_lines_of_bad_items(self, mine: str, used: str) -> None:
        """Make one refused line, for its first bad item's reason, of the bad items of each line that gave no event."""
        unused = f"{mine} AND item IS NOT NULL AND line NOT IN {used}"
        first = f"SELECT line, min(item) FROM {QUARANTINE_TABLE} WHERE {unused} GROUP BY line"
        self.connection.execute(f"DELETE FROM {QUARANTINE_TABLE} WHERE {unused} AND (line, item) NOT IN ({first})")
        self.connection.execute(f"UPDATE {QUARANTINE_TABLE} SET item = NULL WHERE {unused}")

    def _take(self, item: Parsed | LongLine) -> list[pa.Table]:
        """Count a block and set aside what is not clean; return what is."""
        counts, rest = self.counts, self._rest
        if isinstance(item, LongLine):
            counts.lines += 1
            rest.faults.append(Fault(item.number, item.offset, item.length, LineFault.TOO_LONG))
            return []
        raw = item.raw
        counts.lines += raw.lines
        counts.blank += raw.blank
        counts.leading_nuls += raw.leading_nuls
        counts.incomplete_last_line |= any(fault.code is LineFault.INCOMPLETE_LAST_LINE for fault in raw.faults)
        for key, count in raw.unknown.counts.items():
            counts.unknown.add(key, count, raw.unknown.first_lines[key])
        counts.not_a_request += raw.other_text
        counts.other_text += raw.other_text
        rest.joins.rows += raw.joins
        rest.faults += raw.faults
        for table in item.others:
            rest.add(table, clean=False)
        rest.places += item.places
        return item.clean

    def _stream(self, first: pa.Table, tables: Iterator[pa.Table]) -> None:
        """Insert clean tables of one shape with one statement; those of another shape wait."""
        shape = tuple(first.column_names)
        mapping = self.reader.mappings[0]
        made = self.reader.trusting(shape)
        failures: list[BaseException] = []

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                for table in chain([first], tables):
                    if tuple(table.column_names) == shape:
                        self.counts.events += table.num_rows
                        self.counts.count_times(TimeUnit.SECONDS, table.num_rows if made.clocks else 0)
                        yield from table.to_batches()
                    else:
                        self._rest.add(table, clean=True)
            except BaseException as problem:
                # DuckDB would wrap it in words of its own; it is raised again below.
                failures.append(problem)
                raise

        self.connection.register("raw_stream", pa.RecordBatchReader.from_batches(first.schema, batches()))
        try:
            self._keep(mapping, made, made.staged("raw_stream"))
        except duckdb.Error:
            if failures:
                raise failures[0] from None
            raise
        finally:
            self.connection.unregister("raw_stream")

    def _insert_rest(self) -> None:
        """Insert what was set aside."""
        rest, self._rest = self._rest, _Rest()
        self.counts.quarantined += len(rest.faults)
        self._quarantine(rest.faults)
        groups: dict[tuple[bool, Shape], list[pa.Table]] = {}
        for clean, table in rest.tables:
            groups.setdefault((clean, tuple(table.column_names)), []).append(table)
        for (clean, _), tables in groups.items():
            if clean:
                self._stream(tables[0], iter(tables[1:]))
            else:
                self._insert_checked(pa.concat_tables(tables), rest.places)
        rest.joins.settle(self.connection, self.counts, EVENTS_TABLE, QUARANTINE_TABLE)

    def _insert_checked(self, table: pa.Table, places: list[tuple[int, int, int]]) -> None:
        """Turn one raw table into events, dialect by dialect."""
        self.connection.register("raw_lines", table)
        try:
            taken = 0
            earlier: list[str] = []
            for mapping in self.reader.mappings:
                fits = self.reader.is_of(mapping, tuple(table.column_names))
                request = self.reader.is_request(mapping, tuple(table.column_names))
                mine = " AND ".join([f"({fits})", f"({request})", *(f"NOT ({other})" for other in earlier)])
                earlier.append(fits)
                taken += self._insert_dialect(mapping, table, mine, places)
            self.counts.not_a_request += table.num_rows - taken
        finally:
            self.connection.unregister("raw_lines")

    def _insert_dialect(self, mapping: Mapping, table: pa.Table, mine: str, places: list[tuple[int, int, int]]) -> int:
        """Insert the lines of one dialect; return how many were of it, refused ones among them."""
        (of_dialect,) = self._totals(f"SELECT {count_where(mine)} FROM raw_lines")
        if not of_dialect:
            return 0
        # A filter copies every column; the usual file, all of one dialect, is spared that.
        lines = "raw_lines" if of_dialect == table.num_rows else f"(SELECT * FROM raw_lines WHERE {mine})"
        made = self.reader.conversion(mapping, tuple(table.column_names))
        source = made.staged(lines)
        refused = any_of(predicate for _, predicate in made.line_faults)
        units = "".join(f", {count_where(predicate)}" for predicate in made.time_units.values())
        bad, invalid, coerced, naive, invented, *by_unit = self._totals(
            f"SELECT {count_where(refused)}, {count_where(any_of(p for _, _, p in made.field_faults))}, "
            f"sum({how_many(made.coerced)}), {count_where(any_of(made.naive_times))}, {count_where(made.invented)}{units} "
            f"FROM {source}"
        )
        counts = self.counts
        counts.coerced += coerced
        counts.naive_times += naive
        counts.invented += invented
        for unit, count in zip(made.time_units, by_unit, strict=True):
            counts.count_times(unit, count)
        if bad:
            counts.quarantined += bad
            self._quarantine(self._refused(made, source, places))
        if invalid:
            counts.invalid_values += self._note_invalid(made, source, refused)
        self._keep(mapping, made, f"(SELECT * FROM {source} WHERE NOT ({refused}))" if bad else source)
        counts.events += of_dialect - bad
        return of_dialect

    def _totals(self, sql: str) -> tuple[int, ...]:
        (row,) = self.connection.execute(sql).fetchall()
        return tuple(int(value or 0) for value in row)

    def _keep(self, mapping: Mapping, made: Conversion, source: str) -> None:
        for name in made.columns:
            if name in BY_NAME and name not in self._columns:
                self.connection.execute(f"ALTER TABLE {EVENTS_TABLE} ADD COLUMN {name} {BY_NAME[name].sql_type}")
                self._columns.add(name)
        listed = ", ".join(quote(name) for name in made.columns)
        self.connection.execute(
            f"INSERT INTO {EVENTS_TABLE} (file_id, dialect, {listed}) "
            f"SELECT {self.counts.file_id}, {literal(mapping.dialect.name)}, * FROM ({made.select_from(source)})"
        )

    def _refused(self, made: Conversion, source: str, places: list[tuple[int, int, int]]) -> list[Fault]:
        cases = " ".join(f"WHEN {predicate} THEN {literal(code)}" for code, predicate in made.line_faults)
        item = ITEM if ITEM in made.columns else "NULL"
        rows = self.connection.execute(
            f"SELECT line, item, code FROM (SELECT line, {item} AS item, CASE {cases} END AS code FROM {source}) "
            "WHERE code IS NOT NULL"
        ).fetchall()
        by_line = {line: (offset, length) for line, offset, length in places}
        return [Fault(line, *by_line[line], LineFault(code), item) for line, item, code in rows]

    def _note_invalid(self, made: Conversion, source: str, refused: str) -> int:
        """Name the fields that became NULL in lines that were kept; return their number."""
        # The lines are looked at once, however many checks there are: which hold is asked of the faulty ones only.
        checks = [predicate for _, _, predicate in made.field_faults]
        cases = ", ".join(f"CASE WHEN {predicate} THEN {place} END" for place, predicate in enumerate(checks, 1))
        any_fault = any_of(checks)
        faulty = f"SELECT line, unnest([{cases}]) AS place FROM {source} WHERE ({any_fault}) AND NOT ({refused})"
        fields = ", ".join(literal(name) for name, _, _ in made.field_faults)
        codes = ", ".join(literal(code) for _, code, _ in made.field_faults)
        found = f"SELECT line, ([{fields}])[place] AS field, ([{codes}])[place] AS code FROM ({faulty}) WHERE place IS NOT NULL"
        ((count,),) = self.connection.execute(
            f"INSERT INTO {INVALID_TABLE} SELECT {self.counts.file_id}, line, field, code FROM ({found}) ORDER BY line, field"
        ).fetchall()
        return int(count)

    def _quarantine(self, faults: list[Fault]) -> None:
        if not faults:
            return
        table = pa.table({
            "file_id": pa.array([self.counts.file_id] * len(faults), pa.int32()),
            "line": [fault.line for fault in faults],
            "byte_offset": [fault.offset for fault in faults],
            "length": [fault.length for fault in faults],
            "code": [str(fault.code) for fault in faults],
            "item": pa.array([fault.item for fault in faults], pa.int64()),
        })
        self.connection.register("refused_lines", table)
        self.connection.execute(f"INSERT INTO {QUARANTINE_TABLE} SELECT * FROM refused_lines")
        self.connection.unregister("refused_lines")
