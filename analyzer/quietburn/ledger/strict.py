"""The strict reader: lines of plain objects into columns of the announced types, or a refusal.

It never repairs: a value of another type, a broken line or two objects in one line refuse the
run, and the reader names the row where it can.
"""

import math
import re
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from quietburn.ledger.blocks import count_feeds
from quietburn.ledger.schema import FastSchema

_ROW = re.compile(r" in row (\d+)$")


def strict_table(data: bytes, rows: int, schema: FastSchema) -> pa.Table | int | None:
    """Parse lines strictly; return the table, the number of the first bad row, or None if unnamed."""
    if not schema.infer:
        try:
            return _parsed(data, rows, schema.arrow(), "error")
        except _REFUSAL as problem:
            if not _is_unexpected(problem, schema):
                return _row_of(problem, rows)
    found = _inferred(data, rows, schema)
    if isinstance(found, pa.Table):
        schema.meet(found)
    return found


# What is inferred costs memory for each row and each key that nobody announced: small pieces bound it.
_INFERRED_BYTES = 128 << 10
_REFUSAL = (pa.ArrowInvalid, UnicodeDecodeError)


_MOST_KEYS = 1024  # of one line; a table of as many columns costs more than to read the line by itself
_CELLS_A_BYTE = 2  # what lines that share their keys fill: a key, its value and punctuation take six bytes at least


def _inferred(data: bytes, rows: int, schema: FastSchema) -> pa.Table | int | None:
    """Parse lines that hold unannounced keys, piece by piece.

    A table has a cell for each line and key. Where nearly all would be empty, since lines hold keys
    that no other has, the schema is marked as scattered and nothing is returned.
    """
    announced = schema.arrow()
    keys: set[str] = set()
    tables: list[pa.Table] = []
    start = before = 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + _INFERRED_BYTES) + 1 or data.find(b"\n", start) + 1
        piece = data[start:end]
        count = count_feeds(piece)
        if count == 1 and piece.count(b'":') > _MOST_KEYS:
            return before
        try:
            table = _parsed(piece, count, announced, "infer")
        except _REFUSAL as problem:
            table = _row_of(problem, count)
        if not isinstance(table, pa.Table):
            return None if table is None else before + table
        keys.update(table.column_names)
        if len(keys) * rows > _CELLS_A_BYTE * len(data):
            schema.scattered = True
            return None
        tables.append(table)
        start, before = end, before + count
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None  # a key that nobody announced changes its type between pieces
    return whole if whole.num_rows == rows else None


@cache
def _pool() -> pa.MemoryPool:
    """Return the allocator that bears many short-lived blocks best, where this build has it."""
    try:
        return pa.jemalloc_memory_pool()
    except NotImplementedError:  # how Arrow says that it was built without jemalloc
        return pa.default_memory_pool()


def _parsed(data: bytes, rows: int, announced: pa.Schema, behavior: str) -> pa.Table | int | None:
    table = pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 64),
        parse_options=pj.ParseOptions(
            explicit_schema=announced, newlines_in_values=False, unexpected_field_behavior=behavior
        ),
        memory_pool=_pool(),
    )
    # Two objects in one line make two rows; then the lines must be told apart by hand.
    if table.num_rows != rows:
        return None
    foreign = _foreign_number(table, data)
    return table if foreign is None else foreign


def _is_unexpected(problem: Exception, schema: FastSchema) -> bool:
    """Whether lines were refused for a key that nobody knows: it was not announced, or as another type."""
    key = _changed_key(str(problem))
    return "unexpected field" in str(problem) if key is None else schema.give_up(key)


def _changed_key(message: str) -> str | None:
    """Return the key that Arrow says changed its type. A key is foreign text: a regular expression would be quadratic in it."""
    _, opening, rest = message.partition("Column(/")
    key, closing, _ = rest.rpartition(") changed from ")
    return key if opening and closing else None


_FOREIGN = re.compile(rb"Inf(?![a-z])|-NaN")


def _foreign_number(table: pa.Table, data: bytes) -> int | None:
    """Return the first row with a spelling that only the strict reader takes for a number (`Inf`, `-NaN`)."""
    if not any(_may_be_infinite(table[key]) for key in table.column_names):
        return None
    match = _FOREIGN.search(data) if b"Inf" in data or b"-NaN" in data else None
    return data.count(b"\n", 0, match.start()) if match else None


def _may_be_infinite(column: pa.ChunkedArray) -> bool:
    if pa.types.is_floating(column.type):
        return not math.isfinite(pc.sum(column).as_py() or 0.0)  # one infinity or NaN makes the sum one
    return bool(pa.types.is_nested(column.type))


def _row_of(problem: Exception, rows: int) -> int | None:
    match = _ROW.search(str(problem))
    row = int(match.group(1)) if match else rows
    return row if row < rows else None
