"""The view `told_lines`: the lines that count, with the kind of each call and what follows from it.

A ledger names few routes many times: each combination of route, operation, path and method is told
once, by the table of routes, and the lines join it.
"""

from collections.abc import Collection, Iterable

import duckdb
import pyarrow as pa

from quietburn.common.callkinds import CallKind
from quietburn.common.columns import BY_NAME
from quietburn.common.sql import literal
from quietburn.dialects.routes import RouteTable, own_name, pattern_of
from quietburn.traffic.repeats import COUNTED_LINES

TOLD_LINES = "told_lines"
# Columns that every line of the view has, whatever its ledger brought.
TOLD_COLUMNS = frozenset({"route", "path", "traffic", "traffic_source"})

_TOLD_BY = ("route", "operation", "path", "method")
_ROUTES = "told_routes"
_READY = literal(CallKind.READY)


def tell_kinds(
    connection: duckdb.DuckDBPyConnection, columns: Collection[str], table: RouteTable, first_byte: Iterable[str],
    lines: str = COUNTED_LINES,
) -> None:
    """Make the view `told_lines`: some lines (a table or subquery) with kind, route and path told, checks labelled as probes.

    `first_byte` names the dialects whose time to the first token is that to the first byte of any response.
    """
    keys = [name for name in _TOLD_BY if name in columns]
    _tell_routes(connection, keys, table, lines)
    join = " AND ".join(f"l.{key} IS NOT DISTINCT FROM r.said_{key}" for key in keys) or "TRUE"
    dropped = [name for name in sorted(TOLD_COLUMNS) if name in columns]
    kept = f"* EXCLUDE ({', '.join(dropped)})" if dropped else "*"
    source = _absent("traffic_source", columns)
    label = _absent("traffic", columns)
    connection.execute(f"""
        CREATE OR REPLACE TEMP VIEW {TOLD_LINES} AS
        SELECT * EXCLUDE (label, label_source),
            COALESCE(label, CASE WHEN kind = {_READY} THEN 'probe' END) AS traffic,
            CASE WHEN label IS NOT NULL THEN COALESCE(label_source, 'label') WHEN kind = {_READY} THEN 'path' END
                AS traffic_source
        FROM (
            SELECT l.{kept}, r.path, r.pattern, {label} AS label, {source} AS label_source,
                {_either('kind', columns, first_byte)} AS kind, {_either('route', columns, first_byte)} AS route
            FROM {lines} l JOIN {_ROUTES} r ON {join}
        )
    """)


def _absent(name: str, columns: Collection[str]) -> str:
    return f"l.{name}" if name in columns else f"CAST(NULL AS {BY_NAME[name].sql_type})"


def _either(name: str, columns: Collection[str], first_byte: Iterable[str]) -> str:
    """Return a told column: where nothing but the line can tell it, by whether that shows generation."""
    shown = f"r.{name} <> r.{name}_if_shown AND ({_shows(columns, first_byte)})"
    return f"CASE WHEN {shown} THEN r.{name}_if_shown ELSE r.{name} END"


def _shows(columns: Collection[str], first_byte: Iterable[str]) -> str:
    """Return the predicate: the line shows that something was generated, or at least begun."""
    bytes_only = ", ".join(literal(name) for name in sorted(first_byte))
    told = {
        "completion_tokens": "l.completion_tokens > 0",
        "ttft_ms": "l.ttft_ms IS NOT NULL" + (f" AND l.dialect NOT IN ({bytes_only})" if bytes_only else ""),
        "finish_reason": "l.finish_reason IS NOT NULL",
        "answer_chars": "l.answer_chars > 0",
        "stream": "l.stream",
    }
    return " OR ".join(f"COALESCE({sql}, FALSE)" for name, sql in told.items() if name in columns) or "FALSE"


def _tell_routes(connection: duckdb.DuckDBPyConnection, keys: list[str], table: RouteTable, lines: str) -> None:
    """Make `told_routes`: each combination of what the lines say of their route, and what it means."""
    said: list[dict[str, str | None]] = [{}]
    if keys:
        found = connection.execute(f"SELECT DISTINCT {', '.join(keys)} FROM {lines}").fetchall()
        said = [dict(zip(keys, row, strict=True)) for row in found]
    rows = [_row(one, table) for one in said]
    columns = [*(f"said_{key}" for key in keys), "kind", "kind_if_shown", "route", "route_if_shown", "path", "pattern"]
    made = pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in columns})
    connection.register("routes_told_here", made)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {_ROUTES} AS SELECT * FROM routes_told_here")
    connection.unregister("routes_told_here")


def _row(said: dict[str, str | None], table: RouteTable) -> dict[str, str | None]:
    route, path = said.get("route"), said.get("path")
    told = table.tell(**said)
    name, where = own_name(route), path or (route if route and own_name(route) is None else None)
    raw = name or where or said.get("operation")
    return {
        **{f"said_{key}": value for key, value in said.items()},
        "kind": told.kind, "kind_if_shown": told.if_shown,
        "route": _route(name, raw, told.kind), "route_if_shown": _route(name, raw, told.if_shown),
        "path": where, "pattern": name or (pattern_of(where) if where else said.get("operation")),
    }


def _route(name: str | None, raw: str | None, kind: CallKind) -> str:
    """Return the route as reports name it: one name for all that generate, unless their owner named them, and for all checks."""
    if kind is CallKind.READY:
        return "ready"
    return name or "complete" if kind is CallKind.GENERATE else raw or str(kind)
