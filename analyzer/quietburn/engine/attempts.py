"""What an attempt says by itself: its canonical columns and the three questions, as if it were its whole request.

All of it stands below any join: there DuckDB knows which columns no ledger brought, and drops
what is asked of them. Definitions: usable-answers (units, three questions).
"""

from quietburn.common.callkinds import CallKind
from quietburn.common.columns import BY_NAME, COLUMNS
from quietburn.common.limits import MINUTE_US
from quietburn.common.sql import literal
from quietburn.engine.settings import Settings
from quietburn.engine.usage import prompt_tokens, usage
from quietburn.traffic.kinds import TOLD_COLUMNS, TOLD_LINES

NATURAL_FINISH = (
    "stop", "end_turn", "stop_sequence", "eos", "complete", "tool_calls", "tool_use", "function_call",
    "content_filter", "refusal",
)
LENGTH_FINISH = ("length", "max_tokens")
TOOL_FINISH = ("tool_calls", "tool_use", "function_call")
# Of an attempt that is its whole request.
ALONE = {"nth": "1", "of_request": "1", "clock_error_us": "0", "clock_evidence_us": "NULL"}


def _base(columns: frozenset[str], settings: Settings) -> str:
    """Return the select that gives every canonical column, NULL where no ledger brought it."""
    columns |= TOLD_COLUMNS
    empty = empty_columns(columns)
    given = [f"{_first_of(_own_deadlines(columns))} AS own_deadline_ms"]
    for column in COLUMNS:
        if column.name == "deadline_ms":
            continue
        if column.name == "prompt_tokens":
            given.append(f"{prompt_tokens(columns)} AS prompt_tokens")
            continue
        if column.name in _FOLLOWING:
            given.append(_following(column.name, columns))
            continue
        given.append(f"CAST(NULL AS {column.sql_type}) AS {column.name}" if column.name in empty else column.name)
    files = "[" + ", ".join(literal(label) for label in settings.file_labels) + "]"
    file = f"{files}[file_id + 1]" if settings.file_labels else "CAST(NULL AS VARCHAR)"
    return (
        f"SELECT row_id, row_id AS event_id, file_id, {file} AS file, line, item, dialect, kind, pattern, {', '.join(given)}, "
        f"{_deadline(columns, settings)} AS deadline_ms FROM {TOLD_LINES}"
    )


# What follows from other columns is stored only where a ledger says it, or where it was inferred.
_FOLLOWING = {
    "started_us": ("COALESCE({ts_us} - CAST(round({latency_ms} * 1000) AS BIGINT), {ts_us})", ("ts_us", "latency_ms")),
    "start_known": ("{latency_ms} IS NOT NULL AND {ts_us} IS NOT NULL", ("ts_us", "latency_ms")),
    "end_known": ("{ts_us} IS NOT NULL", ("ts_us",)),
}


def empty_columns(columns: frozenset[str]) -> frozenset[str]:
    """Return the canonical columns that are NULL in every event: no ledger brought them, and nothing makes them."""
    return frozenset(BY_NAME) - columns - TOLD_COLUMNS - _FOLLOWING.keys() - {"deadline_ms", "prompt_tokens"}


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
        if "read_timeout_ms" in columns:  # neither is this call's declared deadline: late is what is past both
            number = f"greatest({number}, COALESCE({_SET_TIMEOUT}, 0.0))"
        parts.append(number if condition == "TRUE" else f"CASE WHEN {condition} THEN {number} END")
    return _first_of([*parts, *(["read_timeout_ms"] if "read_timeout_ms" in columns else [])])


# OpenAI's and Anthropic's SDKs send their default of 600 s with every call: nobody's word on a deadline.
_SET_TIMEOUT = "CASE WHEN read_timeout_ms <> 600000 THEN read_timeout_ms END"


def _own_deadlines(columns: frozenset[str]) -> list[str]:
    """Return what a line says of its deadline by itself: a declared one, else a read timeout that somebody set."""
    ways = {"deadline_ms": "deadline_ms", "read_timeout_ms": _SET_TIMEOUT}
    return [sql for name, sql in ways.items() if name in columns]


def _first_of(parts: list[str]) -> str:
    if not parts:
        return "CAST(NULL AS DOUBLE)"
    return parts[0] if len(parts) == 1 else f"COALESCE({', '.join(parts)})"


_IS_ATTEMPT = f"kind = {literal(CallKind.GENERATE)}"
_IN_REQUEST = f"({_IS_ATTEMPT} AND traffic IS DISTINCT FROM 'probe')"
# An id and a key that happen to be spelt alike are still two things.
_KEY = "COALESCE(request_id, 'key:' || idempotency_key)"


# Nobody knows whether the server did the work. Without a connection it did not.
_TIMED_OUT = """COALESCE((lower(error) LIKE '%timeout%' OR lower(error) LIKE '%timed out%'
        OR lower(error) LIKE '%deadline%exceeded%')
    AND NOT lower(error) LIKE '%connect%' AND NOT lower(error) LIKE '%pool%', FALSE) OR COALESCE(status IN (408, 504), FALSE)"""


def microseconds(milliseconds: str) -> str:
    """Return milliseconds as whole microseconds, NULL where they are."""
    return f"CAST(round({milliseconds} * 1000) AS BIGINT)"


# A caller that leaves so shortly before its deadline has run out of patience: its own clock started a little earlier.
_JUST_BEFORE_US = 250_000
_JUST_BEFORE_SHARE = 20  # one twentieth of its patience, where that is more


def timing(start_known: str, deadline_us: str, alone: str) -> str:
    """Return the columns that tell whether an answer came by its request's deadline, for a SELECT that has the attempt's.

    `time_left_us` is what the deadline still allowed at the attempt's end; without times an attempt
    that is alone tells it by its latency. NULL where no deadline or no start is known.
    """
    left = (
        f"CASE WHEN {start_known} AND end_known AND {deadline_us} IS NOT NULL THEN {deadline_us} - ts_us "
        f"WHEN ts_us IS NULL AND {alone} THEN {microseconds('(deadline_ms - latency_ms)')} END"
    )
    patience = f"CASE WHEN ts_us IS NULL THEN {microseconds('deadline_ms')} ELSE {deadline_us} - request_started_us END"
    gave_up = (
        "COALESCE(caller_left AND NOT (is_2xx AND COALESCE(complete, FALSE)) "
        f"AND (time_left_us < {_JUST_BEFORE_US} OR time_left_us * {_JUST_BEFORE_SHARE} < {patience}), FALSE)"
    )
    return (
        f"{left} AS time_left_us, {gave_up} AS gave_up, COALESCE(gave_up OR time_left_us < 0, FALSE) AS is_late, "
        "CASE WHEN time_left_us IS NOT NULL THEN NOT is_late END AS on_time"
    )


# Whoever was answered with another status than a 2xx may leave: that says nothing.
_CALLER_LEFT = """(COALESCE(client_closed, FALSE) OR COALESCE(status = 499, FALSE))
        AND COALESCE(status BETWEEN 200 AND 299 OR status = 499, TRUE)"""
_NO_API_TYPES = ("text/html", "application/xhtml+xml")


def attempts_select(columns: frozenset[str], settings: Settings, where: str = "TRUE") -> str:
    """Return the select of attempts (lines that are `where`) with the three questions, each as if it were its whole request."""
    return f"""
        SELECT *, status IS NOT NULL OR error IS NOT NULL OR caller_left OR COALESCE(decision = 'reject', FALSE) AS outcome_known,
            {timing('request_start_known', 'request_deadline_us', 'TRUE')}, {usage()}
        FROM (
            SELECT *, {_IS_ATTEMPT} AS is_attempt, {_IN_REQUEST} AS in_request,
                COALESCE(status BETWEEN 200 AND 299 AND error IS NULL, FALSE) AS is_2xx, {_CALLER_LEFT} AS caller_left,
                {_TIMED_OUT} AS timed_out, {_complete(settings)} AS complete, {_non_empty()} AS non_empty,
                {_not_an_answer()} AS not_an_answer,
                {_KEY} AS request_key, {", ".join(f"CAST({number} AS BIGINT) AS {name}" for name, number in ALONE.items())},
                started_us AS request_started_us, COALESCE(start_known, FALSE) AS request_start_known,
                started_us + {microseconds('deadline_ms')} AS request_deadline_us,
                (ts_us + {MINUTE_US - 1}) // {MINUTE_US} AS minute
            FROM ({_base(columns, settings)}) WHERE {where}
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
    return f"""CASE WHEN {_not_an_answer()} THEN FALSE
        WHEN answer_chars > 0 OR tool_calls > 0 THEN TRUE
        WHEN finish_reason <> 'stop' AND lower(finish_reason) IN {_listed(TOOL_FINISH)} THEN TRUE
        WHEN answer_chars = 0 THEN FALSE END"""


def _not_an_answer() -> str:
    """Return the predicate: a 2xx whose content type no answer of this API has, such as a login page."""
    kind = "lower(trim(split_part(content_type, ';', 1)))"
    return f"COALESCE(status BETWEEN 200 AND 299 AND {kind} IN {_listed(_NO_API_TYPES)}, FALSE)"
