"""Derived columns of `events`: requests, criteria, verdicts. Made once, by views over the load.

Only attempts whose request has several need window functions; they are worked out in a small
table, and the view joins it. Definitions: usable-answers (units, three questions, verdicts).
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import duckdb

from quietburn.engine.verdicts import CRITERIA, DECIDING_FIRST, met, missed_by, not_missed, rank_of
from quietburn.ledger.events import BY_NAME, COLUMNS
from quietburn.ledger.repeats import COUNTED_LINES, repeated_ids
from quietburn.ledger.sql import any_of, literal

NATURAL_FINISH = (
    "stop", "end_turn", "stop_sequence", "eos", "complete", "tool_calls", "tool_use", "function_call",
    "content_filter", "refusal",
)
LENGTH_FINISH = ("length", "max_tokens")
TOOL_FINISH = ("tool_calls", "tool_use", "function_call")
MINUTE_US = 60_000_000
HOUR_US = 3_600_000_000
_MEASURED_FROM = 0.5  # a criterion counts when it can be answered for half of the 2xx attempts

DERIVED = {
    "dialect": "VARCHAR", "file": "VARCHAR", "line": "BIGINT", "item": "BIGINT", "request_key": "VARCHAR",
    "request_started_us": "BIGINT", "request_deadline_us": "BIGINT", "is_attempt": "BOOLEAN",
    "in_request": "BOOLEAN", "is_2xx": "BOOLEAN", "complete": "BOOLEAN", "non_empty": "BOOLEAN",
    "on_time": "BOOLEAN", "verdict": "VARCHAR", "decides": "BOOLEAN", "request_has_2xx": "BOOLEAN",
    "tokens": "DOUBLE", "prefix_is_new": "BOOLEAN", "minute": "BIGINT", "nth": "BIGINT", "of_request": "BIGINT",
    "request_start_known": "BOOLEAN", "start_known": "BOOLEAN", "timed_out": "BOOLEAN",
}


@dataclass(frozen=True)
class DeadlineDefault:
    """A deadline that the ledger doesn't carry: assumed for a dialect, or configured."""

    deadline_ms: float
    origin: str  # for the report: where the number comes from
    dialect: str | None = None  # only for lines of this dialect
    column: str | None = None  # only where this column ...
    value: str | None = None  # ... holds this value

    def condition(self, columns: Collection[str]) -> str | None:
        """Return the predicate over lines that carry no deadline: this one is for them; None where it is for none.

        A route is meant by the name that reports give it, or by the path that the log writes.
        """
        if self.dialect:
            return f"dialect = {literal(self.dialect)}"
        if not self.column:
            return "TRUE"
        asked = [name for name in _MEANT_BY.get(self.column, (self.column,)) if name in columns]
        return any_of(f"{name} = {literal(self.value or '')}" for name in asked) if asked else None


_MEANT_BY = {"route": ("route", "path")}


@dataclass(frozen=True)
class Settings:
    """What shapes the view besides the ledger: times in UTC microseconds, half open."""

    since_us: int | None = None
    until_us: int | None = None
    deadlines: tuple[DeadlineDefault, ...] = ()
    length_is_complete: bool = True
    file_labels: tuple[str, ...] = ()  # by file id
    carriers: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by column, dialects in which its absence tells
    weak: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by column, dialects in which its absence proves nothing

    def carrying(self, *columns: str) -> tuple[str, ...]:
        """Return the dialects in which the absence of any of these columns tells something."""
        return tuple(sorted({dialect for column in columns for dialect in self.carriers.get(column, ())}))


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
    _chain_attempts(connection, columns, settings)
    _remember_prefixes(connection, columns)
    connection.execute(f"CREATE OR REPLACE TEMP VIEW answers AS {_answers(columns, settings)}")
    coverage = _coverage(connection, settings)
    verdict = _attempt_verdict(coverage)
    connection.execute(f"CREATE OR REPLACE TEMP VIEW judged AS SELECT *, {verdict} AS attempt_verdict FROM answers")
    _decide_requests(connection)
    connection.execute(f"CREATE OR REPLACE TEMP VIEW all_events AS {_all_events()}")
    connection.execute(f"CREATE OR REPLACE TEMP VIEW events AS SELECT * FROM all_events{_within(settings, 'ts_us')}")
    return coverage


def _carriers(connection: duckdb.DuckDBPyConnection, columns: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Return by column which dialects carry it: any line of theirs has a value."""
    asked = [name for name in ("terminal_seen", "stream_complete", "finish_reason") if name in columns]
    if not asked:
        return {}
    counts = ", ".join(f"count({name}) > 0" for name in asked)
    rows = connection.execute(f"SELECT dialect, {counts} FROM {COUNTED_LINES} GROUP BY dialect").fetchall()
    return {name: tuple(row[0] for row in rows if row[1 + place]) for place, name in enumerate(asked)}


def _within(settings: Settings, column: str) -> str:
    limits = []
    if settings.since_us is not None:
        limits.append(f"{column} >= {settings.since_us}")
    if settings.until_us is not None:
        limits.append(f"{column} < {settings.until_us}")
    return " WHERE " + " AND ".join(limits) if limits else ""


def request_within(settings: Settings) -> str:
    """Return the predicate: the event's request started within the asked span."""
    within = _within(settings, "request_started_us")
    return within.removeprefix(" WHERE ") or "TRUE"


def _base(columns: frozenset[str], settings: Settings) -> str:
    """Return the select that gives every canonical column, NULL where no ledger brought it."""
    given = [f"{'deadline_ms' if 'deadline_ms' in columns else 'CAST(NULL AS DOUBLE)'} AS own_deadline_ms"]
    for column in COLUMNS:
        if column.name == "deadline_ms":
            continue
        if column.name in _FOLLOWING:
            given.append(_following(column.name, columns))
            continue
        given.append(column.name if column.name in columns else f"CAST(NULL AS {column.sql_type}) AS {column.name}")
    files = "[" + ", ".join(literal(label) for label in settings.file_labels) + "]"
    file = f"{files}[file_id + 1]" if settings.file_labels else "CAST(NULL AS VARCHAR)"
    return (
        f"SELECT row_id, file_id, {file} AS file, line, item, dialect, {', '.join(given)}, "
        f"{_deadline(columns, settings)} AS deadline_ms FROM {COUNTED_LINES}"
    )


# What follows from other columns is stored only where a ledger says it, or where it was inferred.
_FOLLOWING = {
    "started_us": ("COALESCE({ts_us} - CAST(round({latency_ms} * 1000) AS BIGINT), {ts_us})", ("ts_us", "latency_ms")),
    "start_known": ("{latency_ms} IS NOT NULL AND {ts_us} IS NOT NULL", ("ts_us", "latency_ms")),
    "end_known": ("{ts_us} IS NOT NULL", ("ts_us",)),
    "traffic_source": ("CASE WHEN {traffic} IS NOT NULL THEN 'label' END", ("traffic",)),
}


def _following(name: str, columns: frozenset[str]) -> str:
    template, sources = _FOLLOWING[name]
    known = {source: source if source in columns else f"CAST(NULL AS {BY_NAME[source].sql_type})" for source in sources}
    follows = template.format(**known)
    return f"COALESCE({name}, {follows}) AS {name}" if name in columns else f"{follows} AS {name}"


def _deadline(columns: frozenset[str], settings: Settings) -> str:
    parts = ["deadline_ms"] if "deadline_ms" in columns else []
    for default in settings.deadlines:
        condition = default.condition(columns)
        if condition is None:
            continue
        number = f"CAST({default.deadline_ms!r} AS DOUBLE)"
        parts.append(number if condition == "TRUE" else f"CASE WHEN {condition} THEN {number} END")
    if not parts:
        return "CAST(NULL AS DOUBLE)"
    return parts[0] if len(parts) == 1 else f"COALESCE({', '.join(parts)})"


_IN_REQUEST = "(route = 'complete' AND traffic IS DISTINCT FROM 'probe')"
# An id and a key that happen to be spelt alike are still two things.
_KEY = "COALESCE(request_id, 'key:' || idempotency_key)"


# Nobody knows whether the server did the work. Without a connection it did not.
_TIMED_OUT = """COALESCE((lower(error) LIKE '%timeout%' OR lower(error) LIKE '%timed out%'
        OR lower(error) LIKE '%deadline%exceeded%')
    AND NOT lower(error) LIKE '%connect%' AND NOT lower(error) LIKE '%pool%', FALSE) OR COALESCE(status IN (408, 504), FALSE)"""


def _chain_attempts(connection: duckdb.DuckDBPyConnection, columns: frozenset[str], settings: Settings) -> None:
    """Make `chained`: the attempts of requests that have several, in order, with their request's facts.

    Attempts of one id are one request while each starts within an hour of the end of those before.
    """
    base = _base(columns, settings)
    rows = f"SELECT *, {_KEY} AS id FROM ({base}) WHERE {_IN_REQUEST} AND ({repeated_ids(columns)})"
    order = "started_us, attempt, ts_us, status, file_id, line"
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE chained AS
        WITH attempts AS ({rows}),
        placed AS (
            SELECT *, max(ts_us) OVER (PARTITION BY id ORDER BY {order}
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ended_before FROM attempts
        ),
        split AS (
            SELECT *, sum(CASE WHEN started_us > ended_before + {HOUR_US} THEN 1 ELSE 0 END)
                OVER (PARTITION BY id ORDER BY {order} ROWS UNBOUNDED PRECEDING) AS session FROM placed
        ),
        numbered AS (
            SELECT *, row_number() OVER (PARTITION BY id, session ORDER BY {order}) AS nth,
                count(*) OVER (PARTITION BY id, session) AS of_request FROM split
        ),
        firsts AS (
            SELECT id, session, min(CASE WHEN nth = 1 THEN started_us END) AS request_started_us,
                max(CASE WHEN nth = 1 AND start_known THEN 1 ELSE 0 END) = 1 AS request_start_known,
                COALESCE(min(CASE WHEN own_deadline_ms IS NOT NULL THEN nth END),
                    min(CASE WHEN deadline_ms IS NOT NULL THEN nth END)) AS deadline_nth
            FROM numbered GROUP BY id, session
        ),
        deadlines AS (
            SELECT n.id, n.session, n.deadline_ms AS request_deadline_ms
            FROM numbered n JOIN firsts f ON n.id = f.id AND n.session = f.session AND n.nth = f.deadline_nth
        )
        SELECT n.row_id AS chained_row, n.id || '#' || CAST(n.session AS VARCHAR) AS request_key, n.nth,
            n.of_request, f.request_started_us, f.request_start_known, d.request_deadline_ms
        FROM numbered n
        JOIN firsts f ON n.id = f.id AND n.session = f.session
        LEFT JOIN deadlines d ON n.id = d.id AND n.session = d.session
    """)


def _remember_prefixes(connection: duckdb.DuckDBPyConnection, columns: frozenset[str]) -> None:
    """Make `prefixes`: whether each fingerprint was not seen in the 15 minutes before."""
    if not {"prefix_fp", "ts_us"} <= columns:
        connection.execute("CREATE OR REPLACE TEMP TABLE prefixes (prefix_row BIGINT, prefix_is_new BOOLEAN)")
        return
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE prefixes AS
        SELECT row_id AS prefix_row, COALESCE(ts_us - seen_us > {15 * MINUTE_US}, TRUE) AS prefix_is_new
        FROM (SELECT row_id, ts_us, lag(ts_us) OVER (PARTITION BY prefix_fp ORDER BY ts_us, file_id, line) AS seen_us
              FROM {COUNTED_LINES} WHERE prefix_fp IS NOT NULL AND ts_us IS NOT NULL)
    """)


def _answers(columns: frozenset[str], settings: Settings) -> str:
    """Return the select of attempts with their request's facts and the three questions."""
    timed = "request_start_known AND end_known AND request_deadline_us IS NOT NULL"
    untimed = "ts_us IS NULL AND of_request = 1"
    told = {"prefix_fp", "ts_us"} <= columns
    prefix = "p.prefix_is_new" if told else "CAST(NULL AS BOOLEAN)"
    join = "LEFT JOIN prefixes p ON b.row_id = p.prefix_row" if told else ""
    return f"""
        SELECT *, {_complete(settings)} AS complete, {_non_empty()} AS non_empty,
            CASE WHEN {timed} THEN ts_us <= request_deadline_us
                 WHEN {untimed} THEN latency_ms <= deadline_ms END AS on_time
        FROM (
            SELECT b.*, {prefix} AS prefix_is_new, route = 'complete' AS is_attempt, {_IN_REQUEST} AS in_request,
                COALESCE(status BETWEEN 200 AND 299 AND error IS NULL, FALSE) AS is_2xx,
                {_TIMED_OUT} AS timed_out,
                COALESCE(c.request_key, {_KEY}) AS request_key,
                COALESCE(c.of_request, 1) AS of_request, COALESCE(c.nth, 1) AS nth,
                COALESCE(c.request_started_us, started_us) AS request_started_us,
                COALESCE(c.request_start_known, start_known, FALSE) AS request_start_known,
                COALESCE(c.request_started_us, started_us) + CAST(round(
                    CASE WHEN c.chained_row IS NULL THEN deadline_ms ELSE c.request_deadline_ms END * 1000) AS BIGINT)
                    AS request_deadline_us,
                COALESCE(actual_tokens, prompt_tokens + completion_tokens) AS tokens,
                (ts_us + {MINUTE_US - 1}) // {MINUTE_US} AS minute
            FROM ({_base(columns, settings)}) b
            LEFT JOIN chained c ON b.row_id = c.chained_row
            {join}
        )
    """


def _listed(names: tuple[str, ...]) -> str:
    return "(" + (", ".join(literal(name) for name in names) or "NULL") + ")"


def _complete(settings: Settings) -> str:
    """Did the whole answer arrive? NULL is unknown.

    A missing finish reason tells something only where lines of that dialect carry one, or an end
    marker.
    """
    natural = NATURAL_FINISH + (LENGTH_FINISH if settings.length_is_complete else ())
    markers = _listed(settings.carrying("terminal_seen", "stream_complete"))
    ended_somehow = _listed(settings.carrying("terminal_seen", "stream_complete", "finish_reason"))
    streamed = f"COALESCE(stream, dialect IN {markers})"
    cut = f"WHEN {streamed} AND finish_reason IS NULL AND dialect IN {ended_somehow} THEN FALSE"
    # The usual reason goes first: DuckDB compares what is left only, and a list costs a comparison for each entry.
    return f"""CASE WHEN stream_complete = FALSE THEN FALSE
        WHEN finish_reason = 'stop' THEN TRUE
        WHEN lower(finish_reason) IN {_listed(natural)} THEN TRUE
        WHEN terminal_seen OR stream_complete THEN TRUE
        WHEN client_closed THEN FALSE
        {cut}
        WHEN stream = FALSE THEN TRUE END"""


def _non_empty() -> str:
    return f"""CASE WHEN answer_chars > 0 OR tool_calls > 0 THEN TRUE
        WHEN finish_reason <> 'stop' AND lower(finish_reason) IN {_listed(TOOL_FINISH)} THEN TRUE
        WHEN answer_chars = 0 THEN FALSE END"""


def _coverage(connection: duckdb.DuckDBPyConnection, settings: Settings) -> Coverage:
    known = ", ".join(f"count({criterion})" for criterion in CRITERIA)
    rows = connection.execute(
        f"SELECT dialect, count(*), {known} FROM answers "
        f"WHERE in_request AND is_2xx AND {request_within(settings)} GROUP BY dialect"
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
        # Without a measured deadline nobody can call an answer usable.
        by_dialect[dialect] = met(wanted) if "on_time" in wanted else "FALSE"
    clauses = " ".join(f"WHEN {literal(dialect)} THEN {condition}" for dialect, condition in by_dialect.items())
    all_met = f"CASE dialect {clauses} ELSE FALSE END" if clauses else "FALSE"
    if len(by_dialect) == 1:
        ((_, all_met),) = by_dialect.items()
    return f"""CASE WHEN NOT in_request THEN NULL
        WHEN is_2xx AND {not_missed(CRITERIA)} THEN CASE WHEN {all_met} THEN 'usable' ELSE 'unknown' END
        WHEN COALESCE(client_closed OR status = 499, status = 499, FALSE)
             AND NOT COALESCE(ts_us > request_deadline_us, FALSE) THEN 'abandoned'
        WHEN is_2xx THEN {missed_by(CRITERIA)}
        WHEN COALESCE(decision = 'reject', FALSE) OR COALESCE(status = 429, FALSE)
             OR COALESCE(status = 503 AND reason IS NOT NULL, FALSE) THEN 'refused'
        WHEN status BETWEEN 400 AND 499 AND status NOT IN (408, 425, 429, 499) THEN 'invalid'
        WHEN status IS NULL AND error IS NULL THEN 'unknown'
        ELSE 'failed' END"""


def _decide_requests(connection: duckdb.DuckDBPyConnection) -> None:
    """Make `decided`: for attempts of requests that have several, the verdict and who gives it."""
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE decided AS
        WITH ranked AS (
            SELECT row_id, request_key, attempt_verdict, is_2xx, nth, ts_us, {rank_of('attempt_verdict')} AS rank
            FROM judged WHERE in_request AND of_request > 1
        ),
        ordered AS (
            SELECT *, row_number() OVER (PARTITION BY request_key ORDER BY {DECIDING_FIRST}) AS place,
                max(CASE WHEN is_2xx THEN 1 ELSE 0 END) OVER (PARTITION BY request_key) = 1 AS request_has_2xx
            FROM ranked
        )
        SELECT o.row_id AS decided_row, o.place = 1 AS decides, o.request_has_2xx, f.attempt_verdict AS verdict
        FROM ordered o JOIN ordered f ON o.request_key = f.request_key AND f.place = 1
    """)


def _all_events() -> str:
    return """
        SELECT j.*, COALESCE(d.verdict, attempt_verdict) AS verdict,
            CASE WHEN in_request THEN COALESCE(d.decides, TRUE) ELSE FALSE END AS decides,
            CASE WHEN in_request THEN COALESCE(d.request_has_2xx, is_2xx) ELSE FALSE END AS request_has_2xx
        FROM judged j LEFT JOIN decided d ON j.row_id = d.decided_row
    """
