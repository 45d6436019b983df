"""Raw tables: the source's values by key and kind, made by the fast way or the careful way.

A raw column is named `<kind>:<key>`. Both ways make the same columns, so that one SQL
statement turns either into events.
"""

import re
import zlib
from collections.abc import Callable, Iterable
from collections.abc import Mapping as KeyMap
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from functools import cache, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from quietburn.fingerprint import analyze_prefix
from quietburn.ledger.blocks import Block, Line, SplitBlock, count_feeds, segment_lines, split_block
from quietburn.ledger.careful import NumberText, Refused, as_float, as_time_decimal, keys_with_values, parse_line, resolve
from quietburn.ledger.events import ANSWER_TEXT, PREFIX_TEXT, Kind
from quietburn.ledger.reasons import LineFault


class RawKind(StrEnum):
    """How a source value was written."""

    NUMBER = "n"  # double
    INTEGER = "i"  # 64 bits, for ids
    DECIMAL = "d"  # nine decimals, for times
    STRING = "s"
    NUMBER_TEXT = "t"  # a number as it was written
    FLAG = "b"
    OTHER = "o"  # an object, a list, or a number that can't be placed; only that it was there
    PRIVATE = "p"  # made from a raw text that is dropped here


_TIME_TYPE = pa.decimal128(38, 9)
RAW_TYPES = {
    RawKind.NUMBER: pa.float64(),
    RawKind.INTEGER: pa.int64(),
    RawKind.DECIMAL: _TIME_TYPE,
    RawKind.STRING: pa.string(),
    RawKind.NUMBER_TEXT: pa.string(),
    RawKind.FLAG: pa.bool_(),
    RawKind.OTHER: pa.bool_(),
}
PRIVATE_TYPES = {"prefix_fp": pa.string(), "prefix_noisy": pa.bool_(), "answer_chars": pa.float64()}
_NUMERIC = frozenset({Kind.COUNT, Kind.DURATION, Kind.NUMBER, Kind.PERCENT, Kind.FLAG})


_CAPITAL = re.compile(r"[A-Z^]")
LINE_CHECK = "line_check"  # a check sum of the line, where it holds keys that no dialect knows


def raw_name(kind: RawKind, key: str) -> str:
    """Return the raw column's name."""
    # DuckDB takes names that differ only in case for one; a mark before each capital keeps them apart.
    return f"{kind}:" + _CAPITAL.sub(lambda match: "^" + match[0].lower(), key)


@dataclass(frozen=True)
class Source:
    """What the dialects of a file want of its keys.

    `roles` holds for each key the kinds of columns that it feeds; `private` the keys of raw
    texts by the name of the text; `careful_only` that the fast way can't read this file.
    """

    roles: KeyMap[str, frozenset[Kind]]
    private: KeyMap[str, tuple[str, ...]]
    ignored: frozenset[str] = frozenset()
    careful_only: bool = False

    @property
    def private_keys(self) -> dict[str, str]:
        """Return the text's name by source key."""
        return {key: name for name, keys in self.private.items() for key in keys}

    def knows(self, key: str) -> bool:
        """Whether a top-level key belongs to the dialect."""
        return key in self.roles or key in self.ignored or key in self._roots

    @property
    def _roots(self) -> frozenset[str]:
        return frozenset(key[1:].split("/", 1)[0] for key in self.roles if key.startswith("/"))


@dataclass
class UnknownKeys:
    """Keys that the dialect doesn't know: lines that hold one, and the first of them."""

    counts: dict[str, int] = field(default_factory=dict)
    first_lines: dict[str, int] = field(default_factory=dict)

    def add(self, key: str, count: int, line: int) -> None:
        """Count lines that hold a key."""
        self.counts[key] = self.counts.get(key, 0) + count
        self.first_lines[key] = min(line, self.first_lines.get(key, line))


@dataclass(frozen=True, slots=True)
class Fault:
    """A refused line: where it stands and why, without its bytes."""

    line: int
    offset: int
    length: int
    code: LineFault


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


class FastSchema:
    """Which key is read as which type in one file; learns keys that first appear after the sample.

    Shared by the threads that parse blocks of the file: entries are only ever added, and what is
    read does not depend on them (a line that fits no entry goes the careful way).
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.kinds: dict[str, RawKind] = {}
        self.infer = False

    def learn(self, key: str, kind: RawKind) -> None:
        """Note that the fast way reads a key as this kind, unless it already has another."""
        if not self.source.knows(key) or key in self.source.ignored:
            return
        if kind is RawKind.STRING or key not in self.source.private_keys:
            self.kinds.setdefault(key, kind)

    def learn_value(self, key: str, value: object) -> None:
        """Learn from a value that the careful way has read."""
        roles = self.source.roles.get(key, frozenset())
        if isinstance(value, NumberText):
            self.learn(key, number_kind(roles))
        elif isinstance(value, str):
            self.learn(key, RawKind.STRING)
        elif isinstance(value, bool):
            self.learn(key, RawKind.FLAG)

    def arrow(self) -> pa.Schema:
        """Return the explicit schema for the reader."""
        known = list(self.kinds.items())  # in one step: another thread may learn a key meanwhile
        return pa.schema([(key, RAW_TYPES[kind]) for key, kind in known])


def number_kind(roles: frozenset[Kind]) -> RawKind:
    """Return how the fast way reads a number in a key with these roles."""
    if Kind.TIME in roles:
        return RawKind.DECIMAL
    return RawKind.INTEGER if Kind.TEXT in roles else RawKind.NUMBER


def read_block(block: Block, schema: FastSchema) -> RawBlock:
    """Turn a block into raw tables: the fast way where a line allows it, else the careful way."""
    split = split_block(block)
    raw = RawBlock(block, lines=split.lines, blank=split.blank, leading_nuls=split.leading_nuls)
    odd = list(split.odd)
    if split.plain is not None:
        odd += _read_plain(raw, split, schema)
    if odd:
        _read_carefully(raw, sorted(odd, key=lambda line: line.number), schema.source)
    return raw


def _read_plain(raw: RawBlock, split: SplitBlock, schema: FastSchema) -> list[Line]:
    """Add the plain lines' tables; return the lines that the strict reader refused."""
    segment = split.plain
    if segment is None:
        return []
    if schema.source.careful_only or not schema.kinds:
        return segment_lines(segment, raw.block.offset)
    table = _strict_table(segment.data, len(segment.numbers), schema)
    if isinstance(table, pa.Table):
        _add_fast(raw, table, segment.data, segment.numbers, schema)
        return []
    lines = segment_lines(segment, raw.block.offset)
    refused: list[Line] = []
    _read_around(raw, lines, table, schema, refused)
    return refused


_ROW = re.compile(r" in row (\d+)$")
_MANY_REFUSALS = 400
_SMALL = 48


def _read_around(raw: RawBlock, lines: list[Line], bad_row: int | None, schema: FastSchema, refused: list[Line]) -> None:
    """Read what the strict reader accepts and collect what it refuses.

    The reader names the row of a syntax or type error; where it names none the run is halved.
    """
    pending: list[tuple[list[Line], int | None]] = [(lines, bad_row)]
    while pending:
        run, row = pending.pop()
        if row is None and len(run) > _SMALL:
            parts = [run[: len(run) // 2], run[len(run) // 2 :]]
        elif row is None or len(refused) > _MANY_REFUSALS:
            refused.extend(run)
            continue
        else:
            refused.append(run[row])
            parts = [run[:row], run[row + 1 :]]
        for part in parts:
            if not part:
                continue
            data = b"\n".join(line.data for line in part) + b"\n"
            table = _strict_table(data, len(part), schema)
            if isinstance(table, pa.Table):
                _add_fast(raw, table, data, [line.number for line in part], schema)
            else:
                pending.append((part, table))


def _strict_table(data: bytes, rows: int, schema: FastSchema) -> pa.Table | int | None:
    """Parse lines strictly; return the table, the number of the first bad row, or None if unnamed."""
    if not schema.infer:
        table = _parsed(data, rows, schema, "error")
        if table is not _UNEXPECTED:
            return table
        schema.infer = True
    if len(data) <= _INFERRED_BYTES:
        return _parsed(data, rows, schema, "infer")
    return _inferred(data, rows, schema)


# What is inferred costs memory for each row and each key that nobody announced: small pieces bound it.
_INFERRED_BYTES = 128 << 10
_UNEXPECTED = -1


def _inferred(data: bytes, rows: int, schema: FastSchema) -> pa.Table | int | None:
    """Parse lines that hold unannounced keys, piece by piece."""
    tables: list[pa.Table] = []
    start = before = 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + _INFERRED_BYTES) + 1 or data.find(b"\n", start) + 1
        piece = data[start:end]
        count = count_feeds(piece)
        table = _parsed(piece, count, schema, "infer")
        if not isinstance(table, pa.Table):
            return None if table is None else before + table
        tables.append(table)
        start, before = end, before + count
    try:
        whole = pa.concat_tables(tables, promote_options="default")
    except pa.ArrowInvalid:
        return None  # a key that nobody announced changes its type between pieces
    return whole if whole.num_rows == rows else None


@cache
def _pool() -> pa.MemoryPool:
    """Return the allocator that bears many short-lived blocks best, where this build has it."""
    try:
        return pa.jemalloc_memory_pool()
    except NotImplementedError:
        return pa.default_memory_pool()


def _parsed(data: bytes, rows: int, schema: FastSchema, behavior: str) -> pa.Table | int | None:
    try:
        table = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 64),
            parse_options=pj.ParseOptions(
                explicit_schema=schema.arrow(), newlines_in_values=False, unexpected_field_behavior=behavior
            ),
            memory_pool=_pool(),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError) as problem:
        return _UNEXPECTED if behavior == "error" and "unexpected field" in str(problem) else _row_of(problem, rows)
    # Two objects in one line make two rows; then the lines must be told apart by hand.
    if table.num_rows != rows:
        return None
    foreign = _foreign_number(table, data)
    return table if foreign is None else foreign


_FOREIGN = re.compile(rb"Inf(?![a-z])|-NaN")


def _foreign_number(table: pa.Table, data: bytes) -> int | None:
    """Return the first row with a spelling that only the strict reader takes for a number (`Inf`, `-NaN`)."""
    if not any(_may_be_infinite(table[key]) for key in table.column_names):
        return None
    match = _FOREIGN.search(data) if b"Inf" in data or b"-NaN" in data else None
    return data.count(b"\n", 0, match.start()) if match else None


def _may_be_infinite(column: pa.ChunkedArray) -> bool:
    if pa.types.is_floating(column.type):
        return pc.all(pc.is_finite(column)).as_py() is False
    return bool(pa.types.is_nested(column.type))


def _row_of(problem: Exception, rows: int) -> int | None:
    match = _ROW.search(str(problem))
    row = int(match.group(1)) if match else rows
    return row if row < rows else None


def _add_fast(raw: RawBlock, table: pa.Table, data: bytes, numbers: list[int] | range, schema: FastSchema) -> None:
    """Rename a strict table's columns to raw ones, count unknown keys, and drop private texts."""
    source = schema.source
    private = source.private_keys
    # A line of a later block may bring a key while this one was read: the schema only grows.
    names, arrays = ["line"], [_numbers_array(numbers)]
    texts: dict[str, Any] = {}
    late: list[str] = []
    unknown: list[pa.Array] = []
    for key in table.column_names:
        column = _one_array(table[key])
        kind = schema.kinds.get(key)
        if kind is None or column.type != RAW_TYPES[kind]:
            if source.knows(key) and key not in source.ignored:
                late.append(key)
            elif not source.knows(key):
                _count_unknown(raw.unknown, key, column, numbers)
                unknown.append(pc.is_valid(column))
        elif key in private:
            texts[key] = column
        else:
            names.append(raw_name(kind, key))
            arrays.append(column)
    if any(table[key].null_count < table.num_rows for key in late):
        _learn_late(raw, table, numbers, schema, late)
        return
    for name, array in _private_columns(texts, source):
        names.append(name)
        arrays.append(array)
    if unknown:
        names.append(LINE_CHECK)
        arrays.append(_line_checks(data, unknown))
    raw.tables.append(pa.table(arrays, names=names))


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; the usual one is that already, and combining would copy it."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _line_checks(data: bytes, unknown: list[pa.Array]) -> pa.Array:
    """Return a check sum for each line that holds any of the unknown keys."""
    holds = reduce(pc.or_, unknown).to_pylist()
    lines = data.split(b"\n")
    return pa.array([zlib.crc32(line) if held else None for line, held in zip(lines, holds, strict=False)], pa.int64())


def _numbers_array(numbers: list[int] | range) -> pa.Array:
    if isinstance(numbers, range):
        return pa.array(np.arange(numbers.start, numbers.stop, dtype=np.int64))
    return pa.array(numbers, pa.int64())


def _learn_late(raw: RawBlock, table: pa.Table, numbers: list[int] | range, schema: FastSchema, late: list[str]) -> None:
    """Learn known keys that first appeared here, and read these lines carefully this once."""
    for key in late:
        roles = schema.source.roles.get(key, frozenset())
        kind = table[key].type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            schema.learn(key, number_kind(roles))
        elif pa.types.is_boolean(kind):
            schema.learn(key, RawKind.FLAG)
        elif pa.types.is_string(kind) or pa.types.is_timestamp(kind):
            schema.learn(key, RawKind.STRING)
    wanted = set(numbers)
    split = _split_again(raw.block)
    _read_carefully(raw, [line for line in split if line.number in wanted], schema.source, count_unknown=False)


def _split_again(block: Block) -> list[Line]:
    split = split_block(block)
    return segment_lines(split.plain, block.offset) if split.plain is not None else []


def _count_unknown(unknown: UnknownKeys, key: str, column: pa.Array, numbers: list[int] | range) -> None:
    held = len(column) - column.null_count
    if held:
        first = pc.index(pc.is_valid(column), value=True).as_py()
        unknown.add(key, held, numbers[first])


def _private_columns(texts: dict[str, Any], source: Source) -> Iterable[tuple[str, pa.Array]]:
    for name, keys in source.private.items():
        columns = [texts[key] for key in keys if key in texts]
        if columns:
            yield from _from_text(name, pc.coalesce(*columns) if len(columns) > 1 else columns[0])


def _from_text(name: str, texts: pa.Array) -> Iterable[tuple[str, pa.Array]]:
    """Return the columns made from raw texts: each distinct text is looked at once."""
    encoded = texts.dictionary_encode()
    values = encoded.dictionary.to_pylist()

    def column(make: Callable[[str], object], kind: pa.DataType) -> pa.Array:
        made = pa.array([None if text is None else make(text) for text in values], kind)
        return made.take(encoded.indices)

    if name == PREFIX_TEXT:
        seen = {text: analyze_prefix(text) for text in values if text is not None}
        yield raw_name(RawKind.PRIVATE, "prefix_fp"), column(lambda text: seen[text][0], pa.string())
        yield raw_name(RawKind.PRIVATE, "prefix_noisy"), column(lambda text: seen[text][1], pa.bool_())
    elif name == ANSWER_TEXT:
        yield raw_name(RawKind.PRIVATE, "answer_chars"), column(lambda text: float(len(text)), pa.float64())


def _read_carefully(raw: RawBlock, lines: list[Line], source: Source, *, count_unknown: bool = True) -> None:
    """Parse lines one by one; add one table, and name the refused ones."""
    rows: list[tuple[int, dict[str, Any]]] = []
    for line in lines:
        parsed = parse_line(line, source.roles)
        if isinstance(parsed, Refused):
            raw.faults.append(Fault(line.number, line.offset, len(line.data), parsed.code))
            continue
        row = _raw_row(parsed, source)
        rows.append((line.number, row))
        unknown = [key for key in keys_with_values(parsed) if not source.knows(key)]
        if unknown:
            row[LINE_CHECK] = zlib.crc32(line.data)
        for key in unknown if count_unknown else ():
            raw.unknown.add(key, 1, line.number)
    if rows:
        raw.tables.append(_careful_table(rows))


def _raw_row(members: dict[str, Any], source: Source) -> dict[str, Any]:
    row: dict[str, Any] = {}
    private = source.private_keys
    for key, roles in source.roles.items():
        if key in private:
            continue
        value = resolve(members, key)
        if value is not None:
            row.update(_raw_values(key, value, roles))
    for name, keys in source.private.items():
        text = next((value for key in keys if (value := resolve(members, key)) is not None), None)
        if isinstance(text, str) and not isinstance(text, NumberText):
            row.update({column: array[0].as_py() for column, array in _from_text(name, pa.array([text]))})
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
        if name == LINE_CHECK:
            arrays.append(pa.array([row.get(name) for _, row in rows], pa.int64()))
            continue
        kind, key = name.split(":", 1)
        arrow = PRIVATE_TYPES[key] if kind == RawKind.PRIVATE else RAW_TYPES[RawKind(kind)]
        arrays.append(pa.array([row.get(name) for _, row in rows], arrow))
    return pa.table(arrays, names=["line", *names])
