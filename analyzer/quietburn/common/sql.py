"""Pieces of SQL text: identifiers, literals, and lists of predicates."""

from collections.abc import Iterable

Scalar = str | int | float | bool


def quote(name: str) -> str:
    """Return an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: Scalar) -> str:
    """Return an SQL literal."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def coalesce(parts: list[str]) -> str:
    """Return the first of several texts that is not NULL."""
    if not parts:
        return "CAST(NULL AS VARCHAR)"
    return parts[0] if len(parts) == 1 else "COALESCE(" + ", ".join(parts) + ")"


def any_of(predicates: Iterable[str]) -> str:
    """Return the predicate that holds where any of several does; NULL counts as no."""
    return " OR ".join(f"COALESCE({predicate}, FALSE)" for predicate in predicates) or "FALSE"


def count_where(predicate: str) -> str:
    """Return the aggregate: rows for which the predicate holds."""
    return f"sum(CASE WHEN {predicate} THEN 1 ELSE 0 END)"


def how_many(predicates: Iterable[str]) -> str:
    """Return the expression: how many of the predicates hold for a row."""
    return " + ".join(f"CASE WHEN {predicate} THEN 1 ELSE 0 END" for predicate in predicates) or "0"
