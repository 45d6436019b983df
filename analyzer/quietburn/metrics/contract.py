"""The metrics contract: every name that alerts and exporters use, once, and what a ledger makes of it.

Each counter is a sum over `events`; labels are SQL expressions, empty where nothing is known.
The contract's page is metrics-and-alerts; names never change their meaning.
"""

from dataclasses import dataclass

_ANSWERED = "status BETWEEN 200 AND 299"
_CODE = "COALESCE(CAST(CAST(status AS INTEGER) AS VARCHAR), '')"
# Generating routes are few; the paths of all others are as many as callers think of, and told by their kind.
_ROUTE = ("route", "CASE WHEN kind IN ('generate', 'ready') THEN route ELSE kind END")
_KIND = ("kind", "kind")
_BACKEND = ("backend", "COALESCE(backend, '')")
_TRAFFIC = ("traffic", "COALESCE(traffic, '')")

CPU_RATIO = "quietburn_cpu_ratio"
HOURLY_TOKEN_CAP = "quietburn_hourly_token_cap"  # noqa: S105 - a metric, not a secret
LEDGER_LINES = "quietburn_ledger_lines_total"
NEWEST_EVENT = "quietburn_newest_event_timestamp_seconds"
ATTEMPTS = "quietburn_attempts_total"
REQUESTS = "quietburn_requests_total"
EVENTS = "quietburn_events_total"


@dataclass(frozen=True)
class Count:
    """One way in which events count: which ones, by how much, under which fixed labels, out of what."""

    where: str
    value: str = "1"
    fixed: tuple[tuple[str, str], ...] = ()
    source: str = "events"


@dataclass(frozen=True)
class Counter:
    """A counter: its labels as (name, SQL), and what counts."""

    name: str
    help: str
    labels: tuple[tuple[str, str], ...]
    counts: tuple[Count, ...]


@dataclass(frozen=True)
class Histogram:
    """A histogram over a column in milliseconds, exported in seconds."""

    name: str
    help: str
    labels: tuple[tuple[str, str], ...]
    column_ms: str


@dataclass(frozen=True)
class Gauge:
    """A gauge: the mean of a minute by backend, or a configured number."""

    name: str
    help: str
    labels: tuple[str, ...] = ()


def _tokens(kind: str, value: str, where: str) -> Count:
    return Count(where, value, (("type", kind),))


# What single attempts are flagged for as they happen, by the value of the label `rule`. What a rule
# file names itself (`[events]`, `[classify] event`) comes beside it: metrics/rule_events.py.
ATTEMPT_EVENTS = {
    "noisy-prefix": "is_attempt AND prefix_noisy",
    "answered": "was_answered",
    "unanswered": "went_unanswered",
    "outcome-unknown": "in_request AND NOT outcome_known",
    "any-outcome-unknown": "is_attempt AND NOT outcome_known",  # checks among them, as in the success rate
}

COUNTERS = (
    Counter(
        ATTEMPTS, "Calls of every kind, when they ended.",
        (_ROUTE, _KIND, _BACKEND, _TRAFFIC, ("decision", "COALESCE(decision, '')"), ("code", _CODE)), (Count("TRUE"),),
    ),
    Counter(
        REQUESTS, "Caller requests by verdict, when they ended.",
        (_ROUTE, _KIND, ("verdict", "COALESCE(verdict, '')")), (Count("decides"),),
    ),
    Counter(
        "quietburn_late_answers_total", "2xx attempts that ended after their request's deadline, or whose caller gave up at it.",
        (_ROUTE, _KIND, _BACKEND), (Count("in_request AND is_2xx AND is_late"),),
    ),
    Counter(
        "quietburn_tokens_total", "Tokens by type; unsplit is the part of a total beyond prompt and completion.",
        (_ROUTE, _KIND, _BACKEND, _TRAFFIC),
        (
            _tokens("prompt", "prompt_tokens", "prompt_tokens > 0"),
            _tokens("completion", "completion_tokens", "completion_tokens > 0"),
            _tokens("cached", "cached_tokens", "cached_tokens > 0"),
            _tokens("reasoning", "reasoning_tokens", "reasoning_tokens > 0"),
            _tokens(
                "unsplit", "tokens - COALESCE(prompt_tokens, 0) - COALESCE(completion_tokens, 0)",
                "tokens > COALESCE(prompt_tokens, 0) + COALESCE(completion_tokens, 0)",
            ),
            _tokens("prompt_estimated", "prompt_tokens_est", "prompt_tokens IS NULL AND prompt_tokens_est > 0"),
        ),
    ),
    Counter(
        EVENTS, "Flagged attempts, by rule.", (_ROUTE, _BACKEND),
        tuple(Count(where, "1", (("rule", name),)) for name, where in ATTEMPT_EVENTS.items()),
    ),
)

HISTOGRAMS = (
    Histogram("quietburn_queue_age_seconds", "Queue wait.", (_ROUTE, _BACKEND), "queue_age_ms"),
    Histogram(
        "quietburn_deadline_slack_seconds", "Time left when admitted.",
        (_ROUTE, ("decision", "COALESCE(decision, '')")), "deadline_slack_ms",
    ),
    Histogram(
        "quietburn_attempt_duration_seconds", "Duration of an attempt.",
        (_ROUTE, _BACKEND, ("code", f"substr({_CODE}, 1, 1)")), "latency_ms",
    ),
    Histogram("quietburn_ready_duration_seconds", "Time to answer a readiness check.", (), "ready_ms"),
)

# Bucket bounds of an exporter in seconds, besides those that alerts ask for.
BOUNDS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)

GAUGES = (
    Gauge(CPU_RATIO, "CPU use, 0 to 1.", ("backend",)),
    Gauge("quietburn_inflight", "Requests running.", ("backend",)),
    Gauge("quietburn_queue_depth", "Requests waiting.", ("backend",)),
    Gauge(HOURLY_TOKEN_CAP, "Configured hourly token cap."),
    Gauge("quietburn_inflight_cap", "Configured cap on running requests."),
)

# What an exporter says of its own reading.
READING = (
    Counter(LEDGER_LINES, "Lines of the ledger by what became of them.", (("result", ""),), ()),
    Gauge(NEWEST_EVENT, "Time of the newest event, in seconds since 1970."),
)

# Series that are read from a histogram, by what they end in.
HISTOGRAM_SUFFIXES = ("_bucket", "_count", "_sum")


def counter_named(name: str) -> Counter | None:
    """Return the counter of this name."""
    return next((counter for counter in COUNTERS if counter.name == name), None)


def canonical_bound(milliseconds: float) -> str:
    """Return a bucket bound in seconds as Prometheus writes it (`0.25`, `2.0`)."""
    return repr(float(milliseconds) / 1000)
