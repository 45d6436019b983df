"""Decide whether a line is of a dialect: one definition, for a parsed line (sampling) and for a raw table (reading).

A key is present where it holds anything but null. Its text is a string as it is, a number as it was
written, `true` or `false`; a placeholder, an object and a list have none.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from quietburn.common.sql import literal
from quietburn.dialects.mapping import Recognise
from quietburn.dialects.rawcolumns import PLACEHOLDERS, RawColumns
from quietburn.records.exact import NumberText, resolve

_MOST_KEYS_NAMED = 6


@dataclass(frozen=True)
class Condition:
    """What a line must have: any of these keys present or, where `texts` is given, with such a text; `negated`: none of that."""

    keys: tuple[str, ...]
    texts: tuple[str, ...] | None = None
    negated: bool = False

    @property
    def words(self) -> str:
        """Return what a line lacks that does not meet it."""
        if self.texts is not None:
            return f"{self.keys[0]} being {'none' if self.negated else 'one'} of {', '.join(self.texts)}"
        if self.negated:
            return f"no {self.keys[0]}"
        more = ", …" if len(self.keys) > _MOST_KEYS_NAMED else ""
        return self.keys[0] if len(self.keys) == 1 else "any of " + ", ".join(self.keys[:_MOST_KEYS_NAMED]) + more


def conditions(wanted: Recognise) -> Iterator[Condition]:
    """Yield all that a line must meet."""
    yield from (Condition((key,)) for key in wanted.all)
    if wanted.any:
        yield Condition(wanted.any)
    yield from (Condition((key,), negated=True) for key in wanted.none)
    yield from (Condition((key,), texts) for key, texts in wanted.values.items())
    yield from (Condition((key,), texts, negated=True) for key, texts in wanted.not_values.items())


def missing(members: dict[str, Any], wanted: Recognise) -> Iterator[str]:
    """Yield what a parsed line lacks, in words."""
    return (condition.words for condition in conditions(wanted) if not _is_met(members, condition))


def _is_met(members: dict[str, Any], condition: Condition) -> bool:
    values = (resolve(members, key) for key in condition.keys)
    if condition.texts is None:
        found = any(value is not None for value in values)
    else:
        found = any(text_of(value) in condition.texts for value in values)
    return found is not condition.negated


def text_of(value: Any) -> str | None:
    """Return the text of a parsed value; None where it has none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, NumberText):
        return "0" if value == "-0" else str(value)
    return value if isinstance(value, str) and value not in PLACEHOLDERS else None


def meets(wanted: Recognise, raw_columns: list[str]) -> str:
    """Return the predicate over a raw table: this line has what is wanted."""
    keys = RawColumns(raw_columns)
    return " AND ".join(_met_sql(condition, keys) for condition in conditions(wanted)) or "TRUE"


def _met_sql(condition: Condition, keys: RawColumns) -> str:
    texts = condition.texts
    holds: Callable[[str], str] = keys.present if texts is None else lambda key: holds_text(keys.text_sql(key), texts)
    found = "(" + " OR ".join(holds(key) for key in condition.keys) + ")"
    return f"NOT {found}" if condition.negated else found


def holds_text(text: str, texts: tuple[str, ...]) -> str:
    """Return the predicate: an SQL text is one of these."""
    listed = ", ".join(literal(value) for value in texts)
    return f"COALESCE({text} IN ({listed}), FALSE)"
