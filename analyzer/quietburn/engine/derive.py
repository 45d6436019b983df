"""Derived columns of `events`: requests and verdicts. Made once, by views over the load.

Only attempts whose request has several need window functions; they are worked out in a small
table, and the view joins it. Definitions: usable-answers (units), what-counts (verdicts).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import duckdb

from quietburn.common.limits import MINUTE_US
from quietburn.engine.attempts import ALONE, attempts_select, empty_columns
from quietburn.engine.chains import CANDIDATES, OF_REQUEST, SEVERAL, chain_attempts, find_candidates
from quietburn.engine.clocks import Clocks, find_clocks
from quietburn.engine.settings import Settings, request_within, within
from quietburn.engine.verdict_columns import CRITERIA, WAS_ANSWERED, attempt_verdict, went_unanswered
from quietburn.traffic.other_ends import OTHER_ENDS
from quietburn.traffic.repeats import COUNTED_LINES, REPEATED_IDS

DERIVED = {
    "dialect": "VARCHAR", "kind": "VARCHAR", "event_id": "BIGINT", "file_id": "INTEGER", "line": "BIGINT", "item": "BIGINT",
    "request_key": "VARCHAR", "request_started_us": "BIGINT", "request_deadline_us": "BIGINT", "is_attempt": "BOOLEAN",
    "in_request": "BOOLEAN", "is_2xx": "BOOLEAN", "complete": "BOOLEAN", "non_empty": "BOOLEAN",
    "on_time": "BOOLEAN", "verdict": "VARCHAR", "decides": "BOOLEAN", "request_has_2xx": "BOOLEAN",
    "tokens": "DOUBLE", "usage_fault": "VARCHAR",
    "prefix_is_new": "BOOLEAN", "minute": "BIGINT", "nth": "BIGINT", "of_request": "BIGINT",
    "request_start_known": "BOOLEAN", "start_known": "BOOLEAN", "timed_out": "BOOLEAN",
    "outcome_known": "BOOLEAN", "caller_left": "BOOLEAN", "gave_up": "BOOLEAN", "is_late": "BOOLEAN",
    "time_left_us": "BIGINT", "not_an_answer": "BOOLEAN", "was_answered": "BOOLEAN", "went_unanswered": "BOOLEAN",
    "other_status": "DOUBLE",
    "clock_ahead_us": "BIGINT", "clock_error_us": "BIGINT", "clock_evidence_us": "BIGINT", "clock_skew_us": "BIGINT",
}


@dataclass(frozen=True)
class Stratum:
    """2xx attempts of requests that were logged alike: by dialect, and streamed, not streamed or nobody knows.

    `known` says for how many of the `answered` each criterion can be told.
    """

    dialect: str
    stream: bool | None
    answered: int
    known: dict[str, int]


def create_events(
    connection: duckdb.DuckDBPyConnection, columns: frozenset[str], settings: Settings
) -> tuple[list[Stratum], Clocks]:
    """Create the views `all_events` and `events` (within the asked span); return what is known of the answers and clocks."""
    carried = _carriers(connection, columns)
    telling = {
        column: tuple(dialect for dialect in dialects if dialect not in settings.weak.get(column, ()))
        for column, dialects in carried.items()
    }
    settings = replace(settings, carriers=telling)
    tells_prefixes = {"prefix_fp", "ts_us"} <= columns
    if tells_prefixes:
        _remember_prefixes(connection)
    connection.execute(f"CREATE OR REPLACE TEMP VIEW attempts AS {attempts_select(columns, settings)}")
    find_candidates(connection, attempts_select(columns, settings, where=f"row_id IN (SELECT row_id FROM {REPEATED_IDS})"))
    clocks = find_clocks(connection, CANDIDATES, columns)
    chain_attempts(connection, clocks)
    usual_ms = _usual_wait_ms(connection)
    every = _all_events(usual_ms, clocks, tells_prefixes=tells_prefixes)
    kept = _kept(connection, every, columns) if _are_few(connection) else every
    connection.execute(f"CREATE OR REPLACE TEMP VIEW all_events AS {kept}")
    connection.execute(f"CREATE OR REPLACE TEMP VIEW events AS SELECT * FROM all_events{within(settings, 'ts_us')}")
    return _strata(connection, settings), clocks


_FEW = 250_000  # events: kept they take about 150 MB


def _are_few(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether there are so few events that keeping them costs little memory, and planning their view again and again the most."""
    ((lines,),) = connection.execute(f"SELECT count(*) FROM {COUNTED_LINES}").fetchall()
    return bool(lines <= _FEW)


def _kept(connection: duckdb.DuckDBPyConnection, every: str, columns: frozenset[str]) -> str:
    """Keep the events in a table, without the columns that are NULL in each; return the SELECT of all their columns."""
    described = connection.execute(f"DESCRIBE {every}").fetchall()
    empty = empty_columns(columns)
    listed = ", ".join(name for name, *_ in described if name not in empty)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE kept_events AS SELECT {listed} FROM ({every})")
    named = (f"CAST(NULL AS {kind}) AS {name}" if name in empty else name for name, kind, *_ in described)
    return f"SELECT {', '.join(named)} FROM kept_events"


def _carriers(connection: duckdb.DuckDBPyConnection, columns: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Return by column which dialects carry it: any line of theirs that may be a stream has a value.

    What stands in answers that were not streamed says nothing of the ends of streams.
    """
    asked = [name for name in ("terminal_seen", "stream_complete", "finish_reason") if name in columns]
    if not asked:
        return {}
    streamed = "stream IS DISTINCT FROM FALSE" if "stream" in columns else "TRUE"
    counts = ", ".join(f"count(CASE WHEN {streamed} THEN {name} END) > 0" for name in asked)
    rows = connection.execute(f"SELECT dialect, {counts} FROM {COUNTED_LINES} GROUP BY dialect").fetchall()
    return {name: tuple(row[0] for row in rows if row[1 + place]) for place, name in enumerate(asked)}


# These may be unknown of a request of several attempts, though one of them alone knew.
_MAY_BE_UNKNOWN = ("request_deadline_us", "on_time", "time_left_us")


def _remember_prefixes(connection: duckdb.DuckDBPyConnection) -> None:
    """Make `prefixes`: whether each fingerprint was not seen in the 15 minutes before."""
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE prefixes AS
        SELECT row_id, COALESCE(ts_us - seen_us > {15 * MINUTE_US}, TRUE) AS prefix_is_new
        FROM (SELECT row_id, ts_us, lag(ts_us) OVER (PARTITION BY prefix_fp ORDER BY ts_us, file_id, line, item) AS seen_us
              FROM {COUNTED_LINES} WHERE prefix_fp IS NOT NULL AND ts_us IS NOT NULL)
    """)


def _of_its_request(names: Collection[str], several: str) -> str:
    """Return columns that come from a table of requests of several attempts where the attempt stands in it, else from `a`.

    DuckDB sees through COALESCE: asked for `of_request > 1`, it looks at that table's attempts alone.
    """
    taken = {name: f"COALESCE({several}.{name}, {ALONE.get(name, f'a.{name}')})" for name in names}
    for name in _MAY_BE_UNKNOWN:
        taken[name] = f"CASE WHEN {several}.row_id IS NULL THEN a.{name} ELSE {several}.{name} END"
    return ", ".join(f"{sql} AS {name}" for name, sql in taken.items())


def _usual_wait_ms(connection: duckdb.DuckDBPyConnection) -> float | None:
    """Return how long a first answer usually takes (the median), where anybody left before one; else nobody needs to know."""
    if not connection.execute("SELECT 1 FROM attempts WHERE in_request AND caller_left LIMIT 1").fetchall():
        return None
    ((usual,),) = connection.execute(
        "SELECT median(COALESCE(ttft_ms, latency_ms)) FROM attempts WHERE in_request AND is_2xx AND NOT caller_left"
    ).fetchall()
    return None if usual is None else float(usual)


def _strata(connection: duckdb.DuckDBPyConnection, settings: Settings) -> list[Stratum]:
    known = ", ".join(f"count({criterion})" for criterion in CRITERIA)
    rows = connection.execute(
        f"SELECT dialect, stream, count(*), {known} FROM all_events "
        f"WHERE in_request AND is_2xx AND {request_within(settings)} GROUP BY dialect, stream ORDER BY dialect, stream"
    ).fetchall()
    return [
        Stratum(dialect, stream, total, dict(zip(CRITERIA, counts, strict=True))) for dialect, stream, total, *counts in rows
    ]


def _all_events(usual_ms: float | None, clocks: Clocks, *, tells_prefixes: bool) -> str:
    alone = f"SELECT *, {attempt_verdict()} AS attempt_verdict FROM attempts"
    itself = "COALESCE(in_request, FALSE) AS decides, COALESCE(in_request AND is_2xx, FALSE) AS request_has_2xx"
    taken = (*OF_REQUEST, "attempt_verdict", "verdict", "decides", "request_has_2xx")
    prefix, join = "CAST(NULL AS BOOLEAN)", f"LEFT JOIN {OTHER_ENDS} o ON a.row_id = o.row_id"
    if tells_prefixes:
        prefix, join = "p.prefix_is_new", f"{join} LEFT JOIN prefixes p ON a.row_id = p.row_id"
    return f"""
        SELECT *, {WAS_ANSWERED} AS was_answered, {went_unanswered(usual_ms)} AS went_unanswered,
            {clocks.ahead} AS clock_ahead_us, CAST({clocks.skew_us} AS BIGINT) AS clock_skew_us FROM (
            SELECT a.* REPLACE ({_of_its_request(taken, 's')}), {prefix} AS prefix_is_new, o.other_status
            FROM (SELECT *, attempt_verdict AS verdict, {itself} FROM ({alone})) a LEFT JOIN {SEVERAL} s ON a.row_id = s.row_id
            {join}
        )
    """
