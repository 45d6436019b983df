"""Raw tables: the source's values by key and kind, made by the fast way or the careful way."""


import re
import zlib
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quietburn.ledger.blocks import (
    Block,
    Integers,
    Line,
    Segment,
    SplitBlock,
    odd_rows,
    runs_between,
    segment_lines,
    split_block,
)
from quietburn.ledger.careful import NumberText, Refused, as_float, as_time_decimal, keys_with_values, parse_line
from quietburn.ledger.events import Kind
from quietburn.ledger.private import columns_of_text, private_columns
from quietburn.ledger.rawcolumns import ITEM, LINE_CHECK, PRIVATE_TYPES, RAW_TYPES, RawKind, raw_name
from quietburn.ledger.reasons import Fault, LineFault
from quietburn.ledger.records import records_of
from quietburn.ledger.schema import FastSchema, Source, number_kind
from quietburn.ledger.strict import strict_table

_NUMERIC = frozenset({Kind.COUNT, Kind.DURATION, Kind.NUMBER, Kind.PERCENT, Kind.FLAG})


@dataclass
class UnknownKeys:
    """Keys that the dialect doesn't know: lines that hold one, and the first of them."""

    counts: dict[str, int] = field(default_factory=dict)
    first_lines: dict[str, int] = field(default_factory=dict)

    def add(self, key: str, count: int, line: int) -> None:
        """Count lines that hold a key."""
        self.counts[key] = self.counts.get(key, 0) + count
        self.first_lines[key] = min(line, self.first_lines.get(key, line))


    def named(self) -> "UnknownKeys":
        """Return the keys as they may be shown and kept: what is no field's name may be what a caller wrote."""
        shown = UnknownKeys()
        for key, count in self.counts.items():
            name = key if is_field_name(key) or _MASKED.fullmatch(key) else f"(a key of {len(key)} characters)"
            shown.add(name, count, self.first_lines[key])
        return shown


# Names of fields are shown, so that a renamed one is seen; what does not look like one may hold a secret.
_FIELD_NAME = re.compile(r"^(?=.*[a-z])(?!(?:.*[0-9]){4})[A-Za-z_@][A-Za-z0-9_.@:/-]*")
_LONGEST_FIELD_NAME = 48
_MASKED = re.compile(r"\(a key of [0-9]+ characters\)")


def is_field_name(key: str) -> bool:
    """Whether a key looks like a field's name, and so may be shown."""
    return len(key) <= _LONGEST_FIELD_NAME and _FIELD_NAME.fullmatch(key) is not None


@dataclass
class RawBlock:
    """A block as raw tables, with everything that is not in them counted or named."""

    block: Block
    tables: list[pa.Table] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    unknown: UnknownKeys = field(default_factory=UnknownKeys)
    lines: int = 0
    blank: int = 0
    leading_nuls: int = 0
    other_text: int = 0
    joins: list[tuple[int, int, int, int]] = field(default_factory=list)


def read_block(block: Block, schema: FastSchema) -> RawBlock:
    """Turn a block into raw tables: the fast way where a line allows it, else the careful way."""
    split = split_block(block)
    raw = RawBlock(
        block, faults=list(split.faults), lines=split.lines, blank=split.blank, leading_nuls=split.leading_nuls,
        other_text=split.other_text, joins=split.joins,
    )
    odd = list(split.odd)
    if split.plain is not None:
        odd += _read_plain(raw, split, schema)
    if odd:
        _read_carefully(raw, sorted(odd, key=lambda line: line.number), schema.source)
    return raw


def _read_plain(raw: RawBlock, split: SplitBlock, schema: FastSchema) -> list[Line]:
    """Add the plain lines' tables; return the lines that go the careful way: refused ones, and some that look unlike others."""
    segment = split.plain
    if segment is None:
        return []
    if schema.source.careful_only or schema.scattered or not schema.kinds:
        return segment_lines(segment)
    table = strict_table(segment.data, len(segment.numbers), schema)
    if schema.scattered:
        return segment_lines(segment)
    if isinstance(table, pa.Table):
        _add_fast(raw, table, segment, schema)
        return []
    return _read_but_odd_ones(raw, segment, schema) or _read_around(raw, segment, table, schema)


def _read_but_odd_ones(raw: RawBlock, segment: Segment, schema: FastSchema) -> list[Line]:
    """Read lines of which some are bad without those that look unlike the others, and return these.

    They may be good or bad: the careful way tells. Finding the bad ones by the strict reader's
    refusals means to read all lines twice. Where looks tell nothing, nothing is read or returned.
    """
    odd = odd_rows(segment.data)
    if not len(odd) or _read_run(raw, segment.part(runs_between(odd, len(segment.numbers))), schema):
        return []
    return segment_lines(segment.part([(row, row + 1) for row in odd.tolist()]))


_MANY_REFUSALS = 400
_SMALL = 48


def _read_around(raw: RawBlock, segment: Segment, bad_row: int | None, schema: FastSchema) -> list[Line]:
    """Read what the strict reader accepts and return what it refuses.

    The reader names the row of a syntax or type error, so that what stands before it is known to be
    good: it is read at once when all bad rows are known. Where it names none the run is halved.
    """
    refused: list[Line] = []
    good: list[tuple[int, int]] = []
    pending: list[tuple[int, int, int | None]] = [(0, len(segment.numbers), bad_row)]
    while pending:
        first, end, row = pending.pop()
        if row is None and end - first > _SMALL:
            middle = (first + end) // 2
            runs = [(first, middle), (middle, end)]
        elif row is None or len(refused) > _MANY_REFUSALS:
            refused += segment_lines(segment.part([(first, end)]))
            continue
        else:
            bad = first + row
            refused += segment_lines(segment.part([(bad, bad + 1)]))
            good += [(first, bad)] if row else []
            runs = [(bad + 1, end)]
        for begin, stop in runs:
            if begin < stop:
                unread = _read_run(raw, segment.part([(begin, stop)]), schema)
                pending += [(begin, stop, row) for row in unread]
    if good and _read_run(raw, segment.part(sorted(good)), schema):
        for run in good:  # good one by one and not together: a key that nobody announced changes its type between them
            part = segment.part([run])
            refused += segment_lines(part) if _read_run(raw, part, schema) else []
    return refused


def _read_run(raw: RawBlock, segment: Segment, schema: FastSchema) -> list[int | None]:
    """Add the table of lines that the strict reader accepts; else return the one bad row that it names, or None."""
    table = strict_table(segment.data, len(segment.numbers), schema)
    if not isinstance(table, pa.Table):
        return [table]
    _add_fast(raw, table, segment, schema)
    return []


def _add_fast(raw: RawBlock, table: pa.Table, segment: Segment, schema: FastSchema) -> None:
    """Add a strict table; where it holds known keys that nobody announced, learn these and read its lines again."""
    late = _late_keys(table, schema)
    if not late:
        _add_table(raw, table, segment, schema)
        return
    _learn_late(schema, table, late)
    again = strict_table(segment.data, len(segment.numbers), schema)
    if isinstance(again, pa.Table) and not _late_keys(again, schema):
        _add_table(raw, again, segment, schema)
    else:
        _read_carefully(raw, segment_lines(segment), schema.source)


def _late_keys(table: pa.Table, schema: FastSchema) -> list[str]:
    """Return the known keys that hold something in a table and were not read as what they are announced to be."""
    source = schema.source
    return [
        key for key in table.column_names
        if source.knows(key) and key not in source.ignored and not _is_as_announced(table, key, schema)
        and table[key].null_count < table.num_rows
    ]  # fmt: skip


def _is_as_announced(table: pa.Table, key: str, schema: FastSchema) -> bool:
    kind = schema.kinds.get(key)
    return kind is not None and table[key].type == RAW_TYPES[kind]


def _add_table(raw: RawBlock, table: pa.Table, segment: Segment, schema: FastSchema) -> None:
    """Rename a strict table's columns to raw ones, count unknown keys, and drop private texts."""
    source, numbers = schema.source, segment.numbers
    private = source.private_keys
    names, arrays = ["line"], [pa.array(numbers)]
    texts: dict[str, Any] = {}
    unread: list[pa.Array] = []
    for key in table.column_names:
        column = _one_array(table[key])
        # A line of a later block may bring a key while this one was read: kinds are only ever added.
        if not _is_as_announced(table, key, schema):
            if not source.reads_whole(key) and column.null_count < len(column):
                unread.append(pc.is_valid(column))
                if not source.knows(key):
                    _count_unknown(raw.unknown, key, column, numbers)
            continue
        if key in private:
            texts[key] = column
        if source.is_column(key):
            names.append(raw_name(schema.kinds[key], key))
            arrays.append(column)
    for name, array in private_columns(texts, source):
        names.append(name)
        arrays.append(array)
    if unread:
        names.append(LINE_CHECK)
        arrays.append(_line_checks(segment, unread))
    raw.tables.append(pa.table(arrays, names=names))


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; the usual one is that already, and combining would copy it."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _line_checks(segment: Segment, unread: list[pa.Array]) -> pa.Array:
    """Return a check sum for each line that holds any of the keys that aren't read."""
    holds = reduce(pc.or_, unread).to_numpy(zero_copy_only=False)
    data, starts = segment.data, segment.starts
    sums = np.zeros(len(holds), np.int64)
    for row in np.flatnonzero(holds).tolist():
        sums[row] = zlib.crc32(data[starts[row] : starts[row + 1] - 1].rstrip(b"\r"))
    return pa.array(sums, mask=~holds)


def _learn_late(schema: FastSchema, table: pa.Table, late: list[str]) -> None:
    """Learn known keys that first appeared in a table."""
    for key in late:
        kind = table[key].type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            schema.learn(key, number_kind(schema.source.roles.get(key, frozenset())))
        elif pa.types.is_boolean(kind):
            schema.learn(key, RawKind.FLAG)
        elif pa.types.is_string(kind) or pa.types.is_timestamp(kind):
            schema.learn(key, RawKind.STRING)


def _count_unknown(unknown: UnknownKeys, key: str, column: pa.Array, numbers: Integers) -> None:
    first = pc.index(pc.is_valid(column), value=True).as_py()
    unknown.add(key, len(column) - column.null_count, int(numbers[first]))


def _read_carefully(raw: RawBlock, lines: list[Line], source: Source) -> None:
    """Parse lines one by one; add one table, and name the refused ones."""
    rows: list[tuple[int, dict[str, Any]]] = []
    for line in lines:
        parsed = parse_line(line, source.watched)
        if isinstance(parsed, Refused):
            raw.faults.append(Fault(line.number, line.offset, line.size, parsed.code))
            continue
        for place, record in records_of(parsed, source):
            if record is None:
                raw.faults.append(Fault(line.number, line.offset, line.size, LineFault.CONFLICTING_KEY, place))
                continue
            row = _raw_row(record, source)
            if place is not None:
                row[ITEM] = place
            rows.append((line.number, row))
            unread = [key for key in keys_with_values(record) if not source.reads_whole(key)]
            if unread:
                row[LINE_CHECK] = zlib.crc32(line.data)
            for key in unread:
                if not source.knows(key):
                    raw.unknown.add(key, 1, line.number)
    if rows:
        raw.tables.append(_careful_table(rows))


def _raw_row(members: dict[str, Any], source: Source) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for key, get, roles in source.columns:
        value = get(members)
        if value is None:
            continue
        if type(value) is str:  # the most frequent
            row[raw_name(RawKind.STRING, key)] = value
        else:
            row.update(_raw_values(key, value, roles))
    for name, keys in source.private.items():
        text = next((value for key in keys if (value := source.getters[key](members)) is not None), None)
        if isinstance(text, str) and not isinstance(text, NumberText):
            row.update({column: array[0].as_py() for column, array in columns_of_text(name, pa.array([text]))})
    return row


def _raw_values(key: str, value: object, roles: frozenset[Kind]) -> dict[str, Any]:
    """Return the raw columns of one value; a number stands in one for each role of its key."""
    if isinstance(value, NumberText):
        return _raw_number(key, value, roles)
    if isinstance(value, str):
        return {raw_name(RawKind.STRING, key): value}
    if isinstance(value, bool):
        return {raw_name(RawKind.FLAG, key): value}
    return {raw_name(RawKind.OTHER, key): True}


def _raw_number(key: str, value: NumberText, roles: frozenset[Kind]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if Kind.TIME in roles:
        placed: Decimal | None = as_time_decimal(value)
        row |= {raw_name(RawKind.OTHER, key): True} if placed is None else {raw_name(RawKind.DECIMAL, key): placed}
    if Kind.TEXT in roles:
        row[raw_name(RawKind.NUMBER_TEXT, key)] = "0" if value == "-0" else str(value)
    if roles & _NUMERIC or not roles:
        row[raw_name(RawKind.NUMBER, key)] = as_float(value)
    return row


def _careful_table(rows: list[tuple[int, dict[str, Any]]]) -> pa.Table:
    names = dict.fromkeys(name for _, row in rows for name in row)
    arrays: list[pa.Array] = [pa.array([number for number, _ in rows], pa.int64())]
    for name in names:
        if name in (LINE_CHECK, ITEM):
            arrays.append(pa.array([row.get(name) for _, row in rows], pa.int64()))
            continue
        kind, key = name.split(":", 1)
        arrow = PRIVATE_TYPES[key] if kind == RawKind.PRIVATE else RAW_TYPES[RawKind(kind)]
        arrays.append(pa.array([row.get(name) for _, row in rows], arrow))
    return pa.table(arrays, names=["line", *names])
