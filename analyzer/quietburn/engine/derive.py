"""Derived columns of `events`: requests and verdicts. Made once, by views over the load.

Only attempts whose request has several need window functions; they are worked out in a small
table, and the view joins it. Definitions: usable-answers (units), what-counts (verdicts).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import duckdb

from quietburn.common.limits import MINUTE_US
from quietburn.engine.attempts import ALONE, attempts_select, microseconds, timing
from quietburn.engine.clocks import EVIDENCE, Clocks, find_clocks
from quietburn.engine.settings import Settings, request_within, within
from quietburn.engine.verdict_columns import CRITERIA, DECIDING_FIRST, WAS_ANSWERED, attempt_verdict, rank_of, went_unanswered
from quietburn.traffic.repeats import COUNTED_LINES, REPEATED_IDS

_HOUR_US = 3_600_000_000

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
    candidates = attempts_select(columns, settings, where=f"row_id IN (SELECT row_id FROM {REPEATED_IDS})")
    clocks = find_clocks(connection, candidates, columns)
    _chain_attempts(connection, candidates, clocks)
    _decide_requests(connection)
    usual_ms = _usual_wait_ms(connection)
    every = _all_events(usual_ms, clocks, tells_prefixes=tells_prefixes)
    connection.execute(f"CREATE OR REPLACE TEMP VIEW all_events AS {every}")
    connection.execute(f"CREATE OR REPLACE TEMP VIEW events AS SELECT * FROM all_events{within(settings, 'ts_us')}")
    return _strata(connection, settings), clocks


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


# What a request of several attempts needs to know of each, besides times: enough to judge and to order it.
_OF_ATTEMPT = (
    "row_id, in_request, is_2xx, complete, non_empty, ts_us, status, decision, reason, caller_left, outcome_known, "
    "answer_chars, tool_calls, completion_tokens, stream, ttft_ms"
)
# What an attempt takes over from its request where that has several.
_OF_REQUEST = (
    "request_key", "nth", "of_request", "request_started_us", "request_start_known", "request_deadline_us", "on_time",
    "time_left_us", "gave_up", "is_late", "clock_error_us", "clock_evidence_us",
)
# These may be unknown of a request of several attempts, though one of them alone knew.
_MAY_BE_UNKNOWN = ("request_deadline_us", "on_time", "time_left_us")


# Nobody knows whether an end of another writer's clock came in time where the clocks' difference is known no better.
_SURELY_TIMED = "request_start_known AND (nth = 1 OR clock_error_us = 0 OR abs(request_deadline_us - ts_us) > clock_error_us)"


def _chain_attempts(connection: duckdb.DuckDBPyConnection, candidates: str, clocks: Clocks) -> None:
    """Make `chained`: of some attempts those of requests that have several, in order, with their request's facts.

    Attempts of one id are one request while each starts within an hour of the end of those before.
    Their numbers order them where each has its own: times may be of several clocks. A request's
    start and deadline are given in the time of each attempt's own writer.
    """
    order = "started_us, attempt, ts_us, status, file_id, line, item"
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE chained AS
        WITH placed AS (
            SELECT {_OF_ATTEMPT}, request_key AS id, started_us, attempt, file_id, line, item, start_known, end_known,
                own_deadline_ms, deadline_ms, latency_ms, writer, backend, {clocks.ahead} AS ahead_us,
                max(ts_us) OVER (PARTITION BY id ORDER BY {order}
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ended_before
            FROM ({candidates}) WHERE in_request
        ),
        split AS (
            SELECT *, sum(CASE WHEN started_us > ended_before + {_HOUR_US} THEN 1 ELSE 0 END)
                OVER (PARTITION BY id ORDER BY {order} ROWS UNBOUNDED PRECEDING) AS session FROM placed
        ),
        counted AS (
            SELECT *, count(*) OVER (PARTITION BY id, session) AS of_request,
                attempt IS NULL OR count(*) OVER (PARTITION BY id, session, attempt) > 1 AS lacks_number FROM split
        ),
        told AS (
            SELECT *, CASE WHEN NOT max(lacks_number) OVER (PARTITION BY id, session) THEN attempt END AS number,
                {clocks.error('id, session')} AS clock_error_us FROM counted
        ),
        numbered AS (
            SELECT *, row_number() OVER (
                PARTITION BY id, session ORDER BY number, started_us - ahead_us, {order}) AS nth FROM told
        ),
        firsts AS (
            SELECT id, session, min(CASE WHEN nth = 1 THEN started_us - ahead_us END) AS first_started_us,
                max(CASE WHEN nth = 1 AND start_known THEN 1 ELSE 0 END) = 1 AS request_start_known,
                COALESCE(min(CASE WHEN own_deadline_ms IS NOT NULL THEN nth END),
                    min(CASE WHEN deadline_ms IS NOT NULL THEN nth END)) AS deadline_nth
            FROM numbered GROUP BY id, session
        ),
        deadlines AS (
            SELECT n.id, n.session, n.deadline_ms AS request_deadline_ms
            FROM numbered n JOIN firsts f ON n.id = f.id AND n.session = f.session AND n.nth = f.deadline_nth
        ),
        asked AS (
            SELECT n.*, n.id || '#' || CAST(n.session AS VARCHAR) AS request_key, f.request_start_known,
                COALESCE(f.first_started_us + n.ahead_us, n.started_us) AS request_started_us,
                COALESCE(f.first_started_us + n.ahead_us, n.started_us)
                    + {microseconds('d.request_deadline_ms')} AS request_deadline_us
            FROM numbered n
            JOIN firsts f ON n.id = f.id AND n.session = f.session
            LEFT JOIN deadlines d ON n.id = d.id AND n.session = d.session
        ),
        evident AS (SELECT row_id, max(by_us) AS clock_evidence_us FROM {EVIDENCE} GROUP BY row_id)
        SELECT a.{_OF_ATTEMPT}, request_key, nth, of_request, request_started_us, request_start_known, request_deadline_us,
            {timing(_SURELY_TIMED, 'request_deadline_us', 'of_request = 1')}, clock_error_us, e.clock_evidence_us
        FROM asked a LEFT JOIN evident e ON a.row_id = e.row_id
    """)


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


def _decide_requests(connection: duckdb.DuckDBPyConnection) -> None:
    """Make `several`: the attempts of requests that have several, with the verdict and who gives it."""
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE several AS
        WITH judged AS (SELECT *, {attempt_verdict()} AS attempt_verdict FROM chained),
        ranked AS (SELECT *, {rank_of('attempt_verdict')} AS rank FROM judged),
        ordered AS (
            SELECT *, row_number() OVER (PARTITION BY request_key ORDER BY {DECIDING_FIRST}) AS place,
                max(CASE WHEN is_2xx THEN 1 ELSE 0 END) OVER (PARTITION BY request_key) = 1 AS request_has_2xx
            FROM ranked
        )
        SELECT o.row_id, {', '.join(f'o.{name}' for name in _OF_REQUEST)}, o.attempt_verdict, f.attempt_verdict AS verdict,
            o.place = 1 AS decides, o.request_has_2xx
        FROM ordered o JOIN ordered f ON o.request_key = f.request_key AND f.place = 1
    """)


def _all_events(usual_ms: float | None, clocks: Clocks, *, tells_prefixes: bool) -> str:
    alone = f"SELECT *, {attempt_verdict()} AS attempt_verdict FROM attempts"
    itself = "COALESCE(in_request, FALSE) AS decides, COALESCE(in_request AND is_2xx, FALSE) AS request_has_2xx"
    taken = (*_OF_REQUEST, "attempt_verdict", "verdict", "decides", "request_has_2xx")
    prefix, join = "CAST(NULL AS BOOLEAN)", ""
    if tells_prefixes:
        prefix, join = "p.prefix_is_new", "LEFT JOIN prefixes p ON a.row_id = p.row_id"
    return f"""
        SELECT *, {WAS_ANSWERED} AS was_answered, {went_unanswered(usual_ms)} AS went_unanswered,
            {clocks.ahead} AS clock_ahead_us, CAST({clocks.skew_us} AS BIGINT) AS clock_skew_us FROM (
            SELECT a.* REPLACE ({_of_its_request(taken, 's')}), {prefix} AS prefix_is_new
            FROM (SELECT *, attempt_verdict AS verdict, {itself} FROM ({alone})) a LEFT JOIN several s ON a.row_id = s.row_id
            {join}
        )
    """
