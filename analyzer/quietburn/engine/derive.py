"""Derived columns of `events`: requests and verdicts. Made once, by views over the load.

Only attempts whose request has several need window functions; they are worked out in a small
table, and the view joins it. Definitions: usable-answers (units, verdicts).
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import duckdb

from quietburn.engine.attempts import ALONE, attempts_select, microseconds, on_time
from quietburn.engine.settings import Settings, request_within, within
from quietburn.engine.verdicts import CRITERIA, DECIDING_FIRST, met, missed_by, not_missed, rank_of
from quietburn.ledger.repeats import COUNTED_LINES, REPEATED_IDS
from quietburn.ledger.sql import literal
from quietburn.limits import MINUTE_US

_HOUR_US = 3_600_000_000
_MEASURED_FROM = 0.5  # a criterion counts when it can be answered for half of the 2xx attempts

DERIVED = {
    "dialect": "VARCHAR", "event_id": "BIGINT", "file_id": "INTEGER", "line": "BIGINT", "item": "BIGINT",
    "request_key": "VARCHAR", "request_started_us": "BIGINT", "request_deadline_us": "BIGINT", "is_attempt": "BOOLEAN",
    "in_request": "BOOLEAN", "is_2xx": "BOOLEAN", "complete": "BOOLEAN", "non_empty": "BOOLEAN",
    "on_time": "BOOLEAN", "verdict": "VARCHAR", "decides": "BOOLEAN", "request_has_2xx": "BOOLEAN",
    "tokens": "DOUBLE", "prefix_is_new": "BOOLEAN", "minute": "BIGINT", "nth": "BIGINT", "of_request": "BIGINT",
    "request_start_known": "BOOLEAN", "start_known": "BOOLEAN", "timed_out": "BOOLEAN",
}


@dataclass
class Coverage:
    """For how many 2xx attempts of requests each criterion can be answered, by dialect."""

    answered: dict[str, int] = field(default_factory=dict)
    known: dict[str, dict[str, int]] = field(default_factory=dict)

    def measured(self, dialect: str, criterion: str) -> bool:
        """Whether the criterion counts for lines of the dialect (with no 2xx at all, it does)."""
        total = self.answered.get(dialect, 0)
        return total == 0 or self.known[dialect][criterion] >= _MEASURED_FROM * total


def create_events(connection: duckdb.DuckDBPyConnection, columns: frozenset[str], settings: Settings) -> Coverage:
    """Create the views `all_events` and `events` (within the asked span); return the coverage."""
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
    _chain_attempts(connection, attempts_select(columns, settings, where=f"row_id IN (SELECT row_id FROM {REPEATED_IDS})"))
    coverage = _coverage(connection, settings)
    verdict = _attempt_verdict(coverage)
    _decide_requests(connection, verdict)
    connection.execute(f"CREATE OR REPLACE TEMP VIEW all_events AS {_all_events(verdict, tells_prefixes=tells_prefixes)}")
    connection.execute(f"CREATE OR REPLACE TEMP VIEW events AS SELECT * FROM all_events{within(settings, 'ts_us')}")
    return coverage


def _carriers(connection: duckdb.DuckDBPyConnection, columns: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Return by column which dialects carry it: any line of theirs has a value."""
    asked = [name for name in ("terminal_seen", "stream_complete", "finish_reason") if name in columns]
    if not asked:
        return {}
    counts = ", ".join(f"count({name}) > 0" for name in asked)
    rows = connection.execute(f"SELECT dialect, {counts} FROM {COUNTED_LINES} GROUP BY dialect").fetchall()
    return {name: tuple(row[0] for row in rows if row[1 + place]) for place, name in enumerate(asked)}


# What a request of several attempts needs to know of each, besides times: enough to judge and to order it.
_OF_ATTEMPT = (
    "row_id, dialect, in_request, is_2xx, complete, non_empty, ts_us, status, error, decision, reason, client_closed"
)
# What an attempt takes over from its request where that has several.
_OF_REQUEST = (
    "request_key", "nth", "of_request", "request_started_us", "request_start_known", "request_deadline_us", "on_time",
)
_MAY_BE_UNKNOWN = ("request_deadline_us", "on_time")  # of a request of several attempts, though one of them alone knew


def _chain_attempts(connection: duckdb.DuckDBPyConnection, candidates: str) -> None:
    """Make `chained`: of some attempts those of requests that have several, in order, with their request's facts.

    Attempts of one id are one request while each starts within an hour of the end of those before.
    """
    order = "started_us, attempt, ts_us, status, file_id, line, item"
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE chained AS
        WITH placed AS (
            SELECT {_OF_ATTEMPT}, request_key AS id, started_us, attempt, file_id, line, item, start_known, end_known,
                own_deadline_ms, deadline_ms, latency_ms,
                max(ts_us) OVER (PARTITION BY id ORDER BY {order}
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ended_before
            FROM ({candidates}) WHERE in_request
        ),
        split AS (
            SELECT *, sum(CASE WHEN started_us > ended_before + {_HOUR_US} THEN 1 ELSE 0 END)
                OVER (PARTITION BY id ORDER BY {order} ROWS UNBOUNDED PRECEDING) AS session FROM placed
        ),
        numbered AS (
            SELECT *, row_number() OVER (PARTITION BY id, session ORDER BY {order}) AS nth,
                count(*) OVER (PARTITION BY id, session) AS of_request FROM split
        ),
        firsts AS (
            SELECT id, session, min(CASE WHEN nth = 1 THEN started_us END) AS first_started_us,
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
                COALESCE(f.first_started_us, n.started_us) AS request_started_us,
                COALESCE(f.first_started_us, n.started_us) + {microseconds('d.request_deadline_ms')} AS request_deadline_us
            FROM numbered n
            JOIN firsts f ON n.id = f.id AND n.session = f.session
            LEFT JOIN deadlines d ON n.id = d.id AND n.session = d.session
        )
        SELECT {_OF_ATTEMPT}, request_key, nth, of_request, request_started_us, request_start_known, request_deadline_us,
            {on_time('request_start_known', 'request_deadline_us', 'of_request = 1')} AS on_time FROM asked
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


def _coverage(connection: duckdb.DuckDBPyConnection, settings: Settings) -> Coverage:
    known = ", ".join(f"count({criterion})" for criterion in CRITERIA)
    rows = connection.execute(
        f"SELECT dialect, count(*), {known} FROM (SELECT a.* REPLACE ({_of_its_request(_OF_REQUEST, 'c')}) "
        f"FROM attempts a LEFT JOIN chained c ON a.row_id = c.row_id WHERE a.in_request AND a.is_2xx) "
        f"WHERE {request_within(settings)} GROUP BY dialect"
    ).fetchall()
    coverage = Coverage()
    for dialect, total, *counts in rows:
        coverage.answered[dialect] = total
        coverage.known[dialect] = dict(zip(CRITERIA, counts, strict=True))
    return coverage


def _attempt_verdict(coverage: Coverage) -> str:
    """Return the verdict that this attempt would give its request; the table of usable-answers.md."""
    by_dialect: dict[str, str] = {}
    for dialect in coverage.answered:
        wanted = [c for c in CRITERIA if coverage.measured(dialect, c)]
        others = [c for c in CRITERIA if c not in wanted]
        # Without a measured deadline nobody can call an answer usable.
        by_dialect[dialect] = f"{met(wanted)} AND {not_missed(others)}" if "on_time" in wanted else "FALSE"
    clauses = " ".join(f"WHEN {literal(dialect)} THEN {condition}" for dialect, condition in by_dialect.items())
    usable = f"CASE dialect {clauses} ELSE FALSE END" if clauses else "FALSE"
    if len(by_dialect) == 1:
        ((_, usable),) = by_dialect.items()
    # The usual verdict goes first and asks each criterion once.
    return f"""CASE WHEN NOT in_request THEN NULL
        WHEN is_2xx AND {usable} THEN 'usable'
        WHEN is_2xx AND {not_missed(CRITERIA)} THEN 'unknown'
        WHEN COALESCE(client_closed OR status = 499, status = 499, FALSE)
             AND NOT COALESCE(ts_us > request_deadline_us, FALSE) THEN 'abandoned'
        WHEN is_2xx THEN {missed_by(CRITERIA)}
        WHEN COALESCE(decision = 'reject', FALSE) OR COALESCE(status = 429, FALSE)
             OR COALESCE(status = 503 AND reason IS NOT NULL, FALSE) THEN 'refused'
        WHEN status BETWEEN 400 AND 499 AND status NOT IN (408, 425, 429, 499) THEN 'invalid'
        WHEN status IS NULL AND error IS NULL THEN 'unknown'
        ELSE 'failed' END"""


def _decide_requests(connection: duckdb.DuckDBPyConnection, verdict: str) -> None:
    """Make `several`: the attempts of requests that have several, with the verdict and who gives it."""
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE several AS
        WITH judged AS (SELECT *, {verdict} AS attempt_verdict FROM chained),
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


def _all_events(verdict: str, *, tells_prefixes: bool) -> str:
    alone = f"SELECT *, {verdict} AS attempt_verdict FROM attempts"
    itself = "COALESCE(in_request, FALSE) AS decides, COALESCE(in_request AND is_2xx, FALSE) AS request_has_2xx"
    taken = (*_OF_REQUEST, "attempt_verdict", "verdict", "decides", "request_has_2xx")
    prefix, join = "CAST(NULL AS BOOLEAN)", ""
    if tells_prefixes:
        prefix, join = "p.prefix_is_new", "LEFT JOIN prefixes p ON a.row_id = p.row_id"
    return f"""
        SELECT a.* REPLACE ({_of_its_request(taken, 's')}), {prefix} AS prefix_is_new
        FROM (SELECT *, attempt_verdict AS verdict, {itself} FROM ({alone})) a LEFT JOIN several s ON a.row_id = s.row_id
        {join}
    """
