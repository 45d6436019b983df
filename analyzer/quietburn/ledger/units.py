"""Settle the unit of durations whose name gives none, file by file, from the file's other fields.

In this order: what the configuration says; end - start, or a duration in a known unit, of the same
lines; else it stays unknown. What is stored stays as it came: the settled columns are worked out
where lines are counted.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import duckdb

from quietburn.common.columns import BY_NAME, UNSETTLED
from quietburn.common.sql import literal
from quietburn.dialects.names import Unit

FACTORS: dict[Unit, float] = {"s": 1000.0, "ms": 1.0, "us": 1e-3, "ns": 1e-6}  # to milliseconds
GivenUnits = Mapping[tuple[str, str], Unit]  # by column and key

GIVEN = "the configuration says so"
_NEARLY_ALL = 0.95
_LEAST_LINES = 3  # that tell the unit; of a file with fewer lines, all
# Durations of the same lines that may be the same span, in a known unit; end - start is the latency.
_SIBLINGS = {
    "latency_ms": ("latency_ms", "upstream_ms", "ttft_ms"),
    "ttft_ms": ("ttft_ms", "latency_ms"),
    "upstream_ms": ("upstream_ms", "latency_ms"),
}
_TOLERANCE = 0.05
_SLACK_MS = 5
_SECOND_MS = 1000  # the slack of ends that are written in whole seconds
_TELLING = 4  # a span tells a unit where it is longer than so many times the slack


@dataclass(frozen=True)
class Settled:
    """The unit of one file's values under one key; None where nothing tells it. `how` is what told it."""

    file_id: int
    column: str
    key: str
    values: int
    unit: Unit | None
    how: str


def settle_units(
    connection: duckdb.DuckDBPyConnection, columns: frozenset[str], lines: str, given: GivenUnits
) -> list[Settled]:
    """Return the unit of every key of every file whose durations came without one.

    `lines` is a subquery over `ledger_events`; `given` what the configuration says.
    """
    return [
        settled
        for column, (unitless, key) in UNSETTLED.items()
        if {unitless, key} <= columns
        for settled in _settle(connection, columns, lines, column, given)
    ]


def _settle(
    connection: duckdb.DuckDBPyConnection, columns: frozenset[str], lines: str, column: str, given: GivenUnits
) -> Iterator[Settled]:
    unitless, key = UNSETTLED[column]
    siblings = [name for name in _SIBLINGS.get(column, (column,)) if name in columns]
    told = ", ".join(part for sibling in siblings for part in _counts(unitless, sibling, columns))
    rows = connection.execute(
        f"SELECT file_id, {key}, count(*){', ' + told if told else ''} FROM {lines} "
        f"WHERE {unitless} IS NOT NULL GROUP BY ALL ORDER BY file_id, {key}"
    ).fetchall()
    for file_id, name, values, *counts in rows:
        if (column, name) in given:
            yield Settled(file_id, column, name, values, given[column, name], GIVEN)
            continue
        unit, how = None, ""
        per_sibling = 1 + len(FACTORS)
        for place, sibling in enumerate(siblings):
            telling, *fitting = counts[place * per_sibling : (place + 1) * per_sibling]
            unit = _unit_of(telling, fitting, values)
            if unit is not None:
                how = f"{max(fitting):,} of {telling:,} lines that show it agree with {_called(sibling, columns)}"
                break
        yield Settled(file_id, column, name, values, unit, how)


def _called(sibling: str, columns: frozenset[str]) -> str:
    return "end - start" if sibling == "latency_ms" and "started_us" in columns else sibling


def _counts(unitless: str, sibling: str, columns: frozenset[str]) -> list[str]:
    """Return the aggregates: lines on which a known duration tells the unit, and those on which each unit makes it equal."""
    slack = str(_SLACK_MS)
    if sibling == "latency_ms" and {"ts_us", "started_us"} <= columns:
        whole = "ts_us % 1000000 = 0 AND started_us % 1000000 = 0"
        slack = f"CASE WHEN {whole} THEN {_SECOND_MS} ELSE {_SLACK_MS} END"
    telling = f"{sibling} >= {_TELLING} * ({slack}) AND {unitless} > 0"
    fits = (f"abs({sibling} - {unitless} * {factor!r}) <= {_TOLERANCE} * {sibling} + {slack}" for factor in FACTORS.values())
    return [f"count(*) FILTER (WHERE {telling})", *(f"count(*) FILTER (WHERE {telling} AND {fit})" for fit in fits)]


def _unit_of(telling: int, fitting: list[int], values: int) -> Unit | None:
    if telling < min(_LEAST_LINES, values):
        return None
    found: list[Unit] = [unit for unit, count in zip(FACTORS, fitting, strict=True) if count >= _NEARLY_ALL * telling]
    return found[0] if len(found) == 1 else None


def settled_columns(columns: frozenset[str]) -> frozenset[str]:
    """Return the columns that lines have once units are settled."""
    gone = {name for pair in UNSETTLED.values() for name in pair}
    return (columns - gone) | {column for column, pair in UNSETTLED.items() if pair[0] in columns}


def select_settled(columns: frozenset[str], settled: Iterable[Settled], lines: str) -> str:
    """Return the select of lines in which durations of settled units stand in their own columns."""
    if settled_columns(columns) == columns:
        return f"SELECT * FROM {lines}"
    settled = list(settled)
    gone = [name for pair in UNSETTLED.values() for name in pair if name in columns]
    made = {column: _settled_value(column, columns, settled) for column, pair in UNSETTLED.items() if pair[0] in columns}
    if "latency_ms" in made and "started_us" in columns:
        made |= _ends(made["latency_ms"])
    replaced = ", ".join(f"{sql} AS {name}" for name, sql in made.items() if name in columns)
    added = "".join(f", {sql} AS {name}" for name, sql in made.items() if name not in columns)
    replace = f" REPLACE ({replaced})" if replaced else ""
    return f"SELECT * EXCLUDE ({', '.join(gone)}){replace}{added} FROM {lines}"


def _settled_value(column: str, columns: frozenset[str], settled: list[Settled]) -> str:
    unitless, key = UNSETTLED[column]
    files: dict[tuple[str, float], list[int]] = {}
    for found in settled:
        if found.column == column and found.unit is not None:
            files.setdefault((found.key, FACTORS[found.unit]), []).append(found.file_id)
    cases = "".join(
        f" WHEN {key} = {literal(name)} AND file_id IN ({', '.join(map(str, ids))}) THEN {unitless} * {factor!r}"
        for (name, factor), ids in files.items()
    )
    value = f"CASE{cases} END" if cases else f"CAST(NULL AS {BY_NAME[column].sql_type})"
    return f"COALESCE({column}, {value})" if column in columns else value


def _ends(latency: str) -> dict[str, str]:
    """Return the ends of lines that name their start and gave a latency without a unit instead of an end."""
    late = "(start_known AND NOT end_known)"
    span = f"CAST(round(({latency}) * 1000) AS BIGINT)"
    return {
        "ts_us": f"CASE WHEN {late} THEN COALESCE(started_us + {span}, ts_us) ELSE ts_us END",
        "end_known": f"CASE WHEN {late} THEN ({latency}) IS NOT NULL ELSE end_known END",
    }
