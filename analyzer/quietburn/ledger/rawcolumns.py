"""The columns of a raw table: one for each key and each kind in which its values were written.

A raw column is named `<kind>:<key>`. The fast and the careful way make the same columns, so
that one SQL statement turns either into events.
"""

import re
from enum import StrEnum

import pyarrow as pa

from quietburn.ledger.sql import coalesce, literal, quote


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
_CAPITAL = re.compile(r"[A-Z^]")
LINE_CHECK = "line_check"  # a check sum of the line, where it holds keys that no dialect knows


def raw_name(kind: RawKind, key: str) -> str:
    """Return the raw column's name."""
    # DuckDB takes names that differ only in case for one; a mark before each capital keeps them apart.
    return f"{kind}:" + _CAPITAL.sub(lambda match: "^" + match[0].lower(), key)


class RawColumns:
    """The raw columns that a table has, as SQL by key; `trusted` that their values need no check."""

    def __init__(self, raw_columns: list[str], *, trusted: bool = False) -> None:
        self._names = set(raw_columns)
        self.trusted = trusted

    @property
    def has_line_check(self) -> bool:
        """Whether the table has check sums of its lines."""
        return LINE_CHECK in self._names

    def column(self, kind: RawKind, key: str) -> str | None:
        """Return the column of one kind, None where the table has none."""
        name = raw_name(kind, key)
        return quote(name) if name in self._names else None

    def kinds(self, key: str) -> dict[RawKind, str]:
        """Return the columns that the key has, by kind."""
        found = {kind: self.column(kind, key) for kind in RawKind if kind is not RawKind.PRIVATE}
        return {kind: sql for kind, sql in found.items() if sql is not None}

    def present(self, key: str) -> str:
        """Return the predicate: the key has a value."""
        columns = list(self.kinds(key).values())
        if not columns:
            return "FALSE"
        return "(" + " OR ".join(f"{sql} IS NOT NULL" for sql in columns) + ")"

    def text(self, key: str) -> str:
        """Return the key's value as text, NULL where it holds none or an empty one."""
        kinds = self.kinds(key)
        parts = [_without_placeholder(kinds[RawKind.STRING])] if RawKind.STRING in kinds else []
        if RawKind.NUMBER_TEXT in kinds:
            parts.append(kinds[RawKind.NUMBER_TEXT])
        if RawKind.INTEGER in kinds:
            parts.append(f"CAST({kinds[RawKind.INTEGER]} AS VARCHAR)")
        if RawKind.FLAG in kinds:
            parts.append(f"CAST({kinds[RawKind.FLAG]} AS VARCHAR)")
        return coalesce(parts)


# What loggers write where there is nothing; as an id it would make one request of a whole night.
_PLACEHOLDERS = ("", "-", "null", "NULL", "none", "None")


def _without_placeholder(text: str) -> str:
    listed = ", ".join(literal(placeholder) for placeholder in _PLACEHOLDERS)
    return f"CASE WHEN strlen({text}) > 4 THEN {text} WHEN {text} NOT IN ({listed}) THEN {text} END"
