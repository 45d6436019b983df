"""Raw tables into the tables of events, refused lines and invalid fields, with a check for each value."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from quietburn.common.columns import BY_NAME
from quietburn.common.sql import any_of, count_where, how_many, literal, quote
from quietburn.dialects.mapping import Mapping
from quietburn.dialects.rawcolumns import ITEM, LENGTH, OFFSET
from quietburn.dialects.recognise import meets
from quietburn.dialects.unknown import UnknownKeys
from quietburn.ledger.cells import raw_table
from quietburn.ledger.convert import Conversion, build
from quietburn.ledger.counts import FileCounts
from quietburn.ledger.joins import Joins
from quietburn.ledger.parse import Extraction, parse
from quietburn.ledger.tables import EVENTS_TABLE, INVALID_TABLE, QUARANTINE_TABLE
from quietburn.records.lines import LongLine
from quietburn.records.reasons import Fault, LineFault
from quietburn.records.records import Records

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

    def is_of(self, mapping: Mapping, shape: Shape) -> str:
        """Return the predicate over lines of a raw table: this line is of the dialect."""
        return "TRUE" if self.forced else meets(mapping.recognise, list(shape))

    def is_request(self, mapping: Mapping, shape: Shape) -> str:
        """Return the predicate over lines of the dialect: this one is a request."""
        return meets(mapping.requests, list(shape))


@dataclass
class Parsed:
    """A parsed block on its way into the tables: its events as a raw table, and what was refused."""

    records: Records
    table: pa.Table | None
    faults: list[Fault]
    unknown: UnknownKeys


def parsed(records: Records, extraction: Extraction) -> Parsed:
    """Parse a block's records."""
    tokens = parse(records, extraction)
    table = raw_table(records, tokens, extraction.source)
    records.texts = []  # a batch of blocks holds what was read, not the text
    return Parsed(records, table, records.faults + tokens.faults, tokens.unknown)


@dataclass
class _Batch:
    """What waits to be inserted."""

    tables: list[pa.Table] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    joins: Joins = field(default_factory=Joins)
    rows: int = 0

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
        self._batch = _Batch()

    def insert(self, arriving: Iterator[Parsed | LongLine]) -> None:
        """Insert everything that arrives."""
        for item in arriving:
            self._take(item)
            if self._batch.is_full:
                self._insert_batch()
        self._insert_batch()
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

    def _take(self, item: Parsed | LongLine) -> None:
        """Count a block, and keep what is to be inserted."""
        counts, batch = self.counts, self._batch
        if isinstance(item, LongLine):
            counts.lines += 1
            counts.physical_lines += 1
            batch.faults.append(Fault(item.number, item.offset, item.length, LineFault.TOO_LONG))
            return
        records = item.records
        counts.lines += records.lines
        counts.physical_lines += records.lines if records.physical_lines is None else records.physical_lines
        counts.blank += records.blank
        counts.leading_nuls += records.leading_nuls
        counts.incomplete_last_line |= any(fault.code is LineFault.INCOMPLETE_LAST_LINE for fault in item.faults)
        for key, count in item.unknown.counts.items():
            counts.unknown.add(key, count, item.unknown.first_lines[key])
        counts.joined += records.joined
        counts.not_a_request += records.other_text
        counts.other_text += records.other_text
        batch.joins.rows += records.joins
        batch.faults += item.faults
        if item.table is not None:
            batch.tables.append(item.table)
            batch.rows += item.table.num_rows

    def _insert_batch(self) -> None:
        """Insert what waits."""
        batch, self._batch = self._batch, _Batch()
        self.counts.quarantined += len(batch.faults)
        self._quarantine(batch.faults)
        if batch.tables:
            self._insert_table(pa.concat_tables(batch.tables, promote_options="default"))
        batch.joins.settle(self.connection, self.counts, EVENTS_TABLE, QUARANTINE_TABLE)

    def _insert_table(self, table: pa.Table) -> None:
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
                taken += self._insert_dialect(mapping, table, mine)
            self.counts.not_a_request += table.num_rows - taken
            if ITEM in table.column_names:
                self.counts.other_items += table.num_rows - taken
        finally:
            self.connection.unregister("raw_lines")

    def _insert_dialect(self, mapping: Mapping, table: pa.Table, mine: str) -> int:
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
            self._refuse(made, source)
        if invalid:
            counts.invalid_values += self._note_invalid(made, source, refused)
        kept = f"(SELECT * FROM {source} WHERE NOT ({refused}))" if bad else source
        self._keep(mapping, made, kept, faulty=bool(invalid))
        counts.events += of_dialect - bad
        return of_dialect

    def _totals(self, sql: str) -> tuple[int, ...]:
        (row,) = self.connection.execute(sql).fetchall()
        return tuple(int(value or 0) for value in row)

    def _keep(self, mapping: Mapping, made: Conversion, source: str, *, faulty: bool) -> None:
        columns = [*made.columns, *(["unreadable"] if faulty else [])]
        for name in columns:
            if name in BY_NAME and name not in self._columns:
                self.connection.execute(f"ALTER TABLE {EVENTS_TABLE} ADD COLUMN {name} {BY_NAME[name].sql_type}")
                self._columns.add(name)
        listed = ", ".join(quote(name) for name in columns)
        self.connection.execute(
            f"INSERT INTO {EVENTS_TABLE} (file_id, dialect, {listed}) "
            f"SELECT {self.counts.file_id}, {literal(mapping.dialect.name)}, * FROM ({made.select_from(source, faulty=faulty)})"
        )

    def _refuse(self, made: Conversion, source: str) -> None:
        cases = " ".join(f"WHEN {predicate} THEN {literal(code)}" for code, predicate in made.line_faults)
        item = ITEM if ITEM in made.columns else "NULL"
        self.connection.execute(
            f"INSERT INTO {QUARANTINE_TABLE} SELECT {self.counts.file_id}, line, {OFFSET}, {LENGTH}, code, item, request_id "
            f"FROM (SELECT line, {OFFSET}, {LENGTH}, CASE {cases} END AS code, {item} AS item, {made.request_id} AS request_id "
            f"FROM {source}) "
            "WHERE code IS NOT NULL"
        )

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
            "request_id": pa.nulls(len(faults), pa.string()),
        })
        self.connection.register("refused_lines", table)
        self.connection.execute(f"INSERT INTO {QUARANTINE_TABLE} SELECT * FROM refused_lines")
        self.connection.unregister("refused_lines")
