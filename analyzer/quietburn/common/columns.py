"""The canonical event: every column of the table `events`, once."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a column may hold; a value outside of it becomes NULL and is counted."""

    TIME = "time"  # a point in time, UTC epoch microseconds
    TEXT = "text"
    COUNT = "count"  # integral, not negative
    DURATION = "duration"  # not negative
    NUMBER = "number"  # any finite number
    PERCENT = "percent"  # 0 to 100
    FLAG = "flag"


SQL_TYPES = {
    Kind.TIME: "BIGINT",
    Kind.TEXT: "VARCHAR",
    Kind.COUNT: "DOUBLE",
    Kind.DURATION: "DOUBLE",
    Kind.NUMBER: "DOUBLE",
    Kind.PERCENT: "DOUBLE",
    Kind.FLAG: "BOOLEAN",
}


@dataclass(frozen=True)
class Column:
    """One column of a canonical event; `unit` is the suffix's meaning, "" where there is none."""

    name: str
    kind: Kind
    meaning: str
    unit: str = ""
    given: bool = True  # may come from a ledger (else it is made by us)

    @property
    def sql_type(self) -> str:
        """Return the DuckDB type."""
        return SQL_TYPES[self.kind]


def _text(name: str, meaning: str) -> Column:
    return Column(name, Kind.TEXT, meaning)


def _count(name: str, meaning: str) -> Column:
    return Column(name, Kind.COUNT, meaning)


def _ms(name: str, meaning: str) -> Column:
    return Column(name, Kind.DURATION, meaning, "ms")


def _flag(name: str, meaning: str, *, given: bool = True) -> Column:
    return Column(name, Kind.FLAG, meaning, given=given)


COLUMNS: tuple[Column, ...] = (
    Column("ts_us", Kind.TIME, "end of the attempt, when its line was written", "us"),
    Column("started_us", Kind.TIME, "start of the attempt", "us"),
    _flag("start_known", "whether the start was given or follows from a latency", given=False),
    _flag("end_known", "whether the end was given or follows from a latency", given=False),
    _text("route", "the route's name in the log; otherwise complete (it generates), ready, or the path"),
    _text("path", "the path, if the log names the route by a path"),
    _text("operation", "operation as the log names it: chat, embeddings, ..."),
    _text("method", "HTTP method"),
    _text("traffic", "user, probe, eval, batch, canary, loadtest, a configured class, or other"),
    Column("traffic_source", Kind.TEXT, "the label, or what it was inferred from", given=False),
    _text("user_agent", "class of the user agent"),
    _text("request_id", "id of one logical request of a caller"),
    _count("attempt", "number of the attempt within its request"),
    _text("idempotency_key", "idempotency key that makes a replay safe"),
    _text("client", "the caller"),
    _flag("sent", "whether the request reached the server at all"),
    _text("decision", "allow or reject, by the gate"),
    _text("reason", "the gate's own reason"),
    _count("status", "HTTP status; NULL when there was no response"),
    _text("error", "error instead of, or within, a response"),
    _text("content_type", "media type of the response's body"),
    _flag("client_closed", "whether the caller closed the connection first"),
    _text("backend", "the backend that did the work"),
    _text("writer", "the gateway instance or host whose clock the line's times come from"),
    _text("proxy_side", "the end of the call that a mesh proxy logged: outbound (caller) or inbound (callee)"),
    _text("model", "requested model"),
    _text("tenant", "tenant on whose behalf the call was made"),
    _count("backends_available", "number of other backends that could have been tried"),
    _count("backends_tried", "number of backends the gateway tried for this attempt; more than one is a failover"),
    _ms("queue_age_ms", "queue wait"),
    _count("queue_depth", "requests waiting"),
    _count("inflight", "requests running"),
    _ms("latency_ms", "start to end of the attempt"),
    _ms("ttft_ms", "start to first token"),
    _ms("upstream_ms", "time spent in the backend"),
    _ms("deadline_ms", "time the caller waits, from the start of the first attempt"),
    _ms("read_timeout_ms", "longest silence the caller accepts; its deadline if none is declared"),
    Column("deadline_slack_ms", Kind.NUMBER, "time left when admitted", "ms"),
    _ms("ready_ms", "time to answer a readiness check"),
    Column("retry_after_s", Kind.DURATION, "wait that the response asked for (Retry-After)", "s"),
    Column("cpu_pct", Kind.PERCENT, "CPU use", "%"),
    _count("prompt_tokens", "tokens of the prompt"),
    _count("completion_tokens", "tokens generated, including reasoning"),
    _count("reasoning_tokens", "tokens of reasoning"),
    _count("cached_tokens", "prompt tokens served from a cache"),
    _count("est_tokens", "estimate of all tokens"),
    _count("actual_tokens", "all tokens as billed"),
    _count("prompt_tokens_est", "estimate of the prompt's tokens"),
    _count("answer_chars", "characters of the answer that the caller can read"),
    _count("tool_calls", "tool calls in the answer"),
    _flag("stream", "whether the answer was streamed"),
    _text("finish_reason", "why generation ended"),
    _flag("terminal_seen", "whether the stream's end marker arrived"),
    _flag("stream_complete", "the gateway's own judgement of the stream"),
    _text("prefix_fp", "fingerprint of the instruction prefix"),
    _flag("prefix_noisy", "whether a timestamp or an id was found in the prefix"),
    _flag("unreadable", "whether a value that the verdict rests on was written and can't be read", given=False),
)

# What can speak against an answer or group it with others: an event in which one of these was written
# and can't be read is never usable. A lost finish reason or tool call takes only something that
# speaks for it; without a time, a duration or a status nothing is usable anyway.
VERDICT_RESTS_ON = frozenset({
    "request_id", "idempotency_key", "attempt", "proxy_side", "route", "path", "operation", "method", "traffic", "user_agent",
    "error", "client_closed", "content_type", "stream", "stream_complete", "terminal_seen", "answer_chars", "started_us",
    "deadline_ms", "read_timeout_ms",
})  # fmt: skip

# A duration under a name that tells no unit is stored as it came, with the name of its key, beside
# the column that it belongs to; the unit is settled over whole files (units.py).
UNSETTLED = {
    name: (f"{name.removesuffix('_ms')}_unitless", f"{name.removesuffix('_ms')}_key")
    for name in ("latency_ms", "ttft_ms", "upstream_ms", "deadline_ms", "queue_age_ms", "ready_ms")
}
SETTLED_AS = {unitless: name for name, (unitless, _) in UNSETTLED.items()}


def _unsettled(name: str, unitless: str, key: str) -> tuple[Column, Column]:
    return (
        Column(unitless, Kind.DURATION, f"{name} as logged, in a unit that its name doesn't show", "unknown", given=False),
        Column(key, Kind.TEXT, f"the key of {unitless}", given=False),
    )


_STORED_ONLY = (column for name, pair in UNSETTLED.items() for column in _unsettled(name, *pair))
BY_NAME = {column.name: column for column in (*COLUMNS, *_STORED_ONLY)}

# What an error field says, in any case, where there was no error.
NO_ERROR = ("", "-", "0", "false", "none", "null", "ok", "success")

# Source texts that are read only to compute other columns and are dropped in the same step.
PREFIX_TEXT = "prefix_text"
ANSWER_TEXT = "answer_text"
PRIVATE_TEXTS = {PREFIX_TEXT: ("prefix_fp", "prefix_noisy"), ANSWER_TEXT: ("answer_chars",)}

# Names under which a ledger gives what is stored under another name.
LOGGED_AS = {"ts_us": "ts", "started_us": "started_at"}
STORED_AS = {logged: stored for stored, logged in LOGGED_AS.items()}


def logged_name(column: str) -> str:
    """Return the name under which users log a column (`ts` for `ts_us`)."""
    return LOGGED_AS.get(column, column)


_WEEK_MS = 7 * 86_400_000.0


def ceiling(kind: Kind, unit: str) -> float:
    """Return the largest magnitude that a value may have: what lies beyond is another unit or no measurement.

    Durations: a week (an epoch time given as a deadline lies beyond), in nanoseconds where the unit
    is unknown. Counts: 2^53, up to which a double holds every integer.
    """
    if kind is Kind.PERCENT:
        return 100.0
    if kind is Kind.COUNT:
        return 2.0**53
    return _WEEK_MS * {"s": 1e-3, "unknown": 1e6}.get(unit, 1.0)
