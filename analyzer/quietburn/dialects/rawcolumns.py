"""The columns of a raw table: one for each key and each kind in which its values were written.

A raw column is named `<kind>:<key>`; one SQL statement turns them into events.
"""

import re
from enum import StrEnum
from functools import lru_cache

from quietburn.common.sql import coalesce, literal, quote
from quietburn.dialects.durations import suffixed_ms


class RawKind(StrEnum):
    """How a source value was written."""

    NUMBER = "n"  # double
    DECIMAL = "d"  # nine decimals, for times
    STRING = "s"
    NUMBER_TEXT = "t"  # a number as it was written
    FLAG = "b"
    OTHER = "o"  # an object, a list, or a number that can't be placed; only that it was there
    PRIVATE = "p"  # made from a raw text that is dropped there


_CAPITAL = re.compile(r"[A-Z^]")
OFFSET, LENGTH = "byte_offset", "length"  # of the line on which a record starts
LINE_CHECK = "line_check"  # a check sum of the line (or the event packed in it), where not all its keys become columns
ITEM = "item"  # place of the event in its line, where a line holds several


@lru_cache(maxsize=8192)
def raw_name(kind: str, key: str) -> str:
    """Return the raw column's name."""
    # DuckDB takes names that differ only in case for one; a mark before each capital keeps them apart.
    return f"{kind}:" + _CAPITAL.sub(lambda match: "^" + match[0].lower(), key)


class RawColumns:
    """The raw columns that a table has, as SQL by key.

    What is asked for often is worked out once, in stages before all else, since DuckDB works out an
    expression again wherever it stands in a CASE.
    """

    def __init__(self, raw_columns: list[str]) -> None:
        self._names = set(raw_columns)
        self.end_us = "CAST(NULL AS BIGINT)"  # the attempt's end, once that is known
        self._stages: tuple[dict[str, str], ...] = ({}, {}, {})

    @property
    def has_line_check(self) -> bool:
        """Whether the table has check sums of its lines."""
        return LINE_CHECK in self._names

    @property
    def has_item(self) -> bool:
        """Whether the table says which event of its line a row is."""
        return ITEM in self._names

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
        """Return the column of the key's value as text, NULL where it holds none or a placeholder."""
        return self.stage(0, raw_name("text", key), self.text_sql(key))

    def text_sql(self, key: str) -> str:
        """Return what `text` is made of."""
        kinds = self.kinds(key)
        parts = [_without_placeholder(kinds[RawKind.STRING])] if RawKind.STRING in kinds else []
        if RawKind.NUMBER_TEXT in kinds:
            parts.append(kinds[RawKind.NUMBER_TEXT])
        if RawKind.FLAG in kinds:
            parts.append(f"CAST({kinds[RawKind.FLAG]} AS VARCHAR)")
        return coalesce(parts)

    def suffixed(self, key: str) -> str:
        """Return the column of what the key's text says in milliseconds where it is a duration with its units."""
        return self.stage(0, raw_name("suffixed", key), suffixed_ms(quote(raw_name(RawKind.STRING, key))))

    def path(self, key: str) -> str:
        """Return the column of the key's text without query, fragment and closing slash: all name the same route."""
        return self.stage(1, raw_name("path", key), _without_query(self.text(key)))

    def stage(self, level: int, name: str, sql: str) -> str:
        """Return a column that is made before all else, of raw columns and of those of lower levels."""
        self._stages[level][quote(name)] = sql
        return quote(name)

    def staged(self, source: str) -> str:
        """Return a raw table or subquery with the columns that were staged."""
        for stage in self._stages:
            if stage:
                source = "(SELECT *, " + ", ".join(f"{sql} AS {name}" for name, sql in stage.items()) + f" FROM {source})"
        return source


# What loggers write where there is nothing; as an id it would make one request of a whole night.
PLACEHOLDERS = ("", "-", "null", "NULL", "none", "None")


def _without_placeholder(text: str) -> str:
    listed = ", ".join(literal(placeholder) for placeholder in PLACEHOLDERS)
    return f"CASE WHEN strlen({text}) > 4 THEN {text} WHEN {text} NOT IN ({listed}) THEN {text} END"


def _without_query(route: str) -> str:
    path = f"split_part(split_part({route}, '?', 1), '#', 1)"
    cut = f"CASE WHEN {path} IN ('', '/') THEN NULLIF({path}, '') ELSE rtrim({path}, '/') END"
    return f"CASE WHEN contains({route}, '?') OR contains({route}, '#') OR suffix({route}, '/') THEN {cut} ELSE {route} END"
