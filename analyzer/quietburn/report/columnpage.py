"""The page of columns: what every column of `events` means, as Markdown."""

from collections.abc import Iterable

from quietburn.common.columns import COLUMNS, SETTLED_AS, Column, logged_name
from quietburn.engine.binding import MADE_FROM
from quietburn.engine.derive import DERIVED
from quietburn.engine.meanings import MEANINGS, NOT_FOR_RULES, Meaning
from quietburn.report.rulebook import escaped

COLUMNS_PAGE = "columns.md"
_INTRO = """# Columns of `events`

Made by `quietburn columns --out docs`. One row of `events` is one attempt or other call. Rules read these columns, and so
does `quietburn.open(...).sql("...")`. Values that a ledger doesn't carry are NULL."""
_GIVEN = """## From the ledger

A rule lists the columns it reads in `needs`, `any_of` or `optional`, by the name in the first column. If the column in
`events` has a different name, the second column gives it; SQL uses that one."""
_DERIVED = """## Derived

Computed once for all rules. A rule doesn't declare a derived column but the columns that it is made from."""
_OTHERS = """## Not for rules

Rules can't read these; queries from Python can."""


def columns_markdown() -> str:
    """Return the page: columns from the ledger, derived ones, and those that rules can't read."""
    given = [_given(column) for column in COLUMNS if column.given and column.name not in SETTLED_AS]
    made = [
        (column.name, column.sql_type, Meaning(column.meaning, column.unit))
        for column in COLUMNS if not column.given and column.name not in DERIVED
    ]
    derived = [_derived(*row) for row in (*((name, kind, MEANINGS[name]) for name, kind in DERIVED.items()), *made)]
    others = [_row(f"`{name}`", kind, meaning.unit, escaped(meaning.text)) for name, (kind, meaning) in NOT_FOR_RULES.items()]
    parts = [
        [_INTRO, ""],
        [_GIVEN, "", *_head("name in rules and ledgers", "in `events`", "type", "unit", "meaning"), *given, ""],
        [_DERIVED, "", *_head("column", "type", "unit", "meaning", "made from"), *derived, ""],
        [_OTHERS, "", *_head("column", "type", "unit", "meaning"), *others],
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def _given(column: Column) -> str:
    logged = logged_name(column.name)
    stored = f"`{column.name}`" if logged != column.name else "same"
    return _row(f"`{logged}`", stored, column.sql_type, column.unit, escaped(column.meaning))


def _derived(name: str, kind: str, meaning: Meaning) -> str:
    made_from = ", ".join(f"`{source}`" for source in sorted(MADE_FROM.get(name, ())))
    return _row(f"`{name}`", kind, meaning.unit, escaped(meaning.text), made_from)


def _head(*titles: str) -> Iterable[str]:
    return _row(*titles), _row(*("---" for _ in titles))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
