"""Whether a rule declares what it reads: its SQL is bound against empty tables that hold just that."""

import re

from quietburn.common import temporary
from quietburn.common.columns import BY_NAME, STORED_AS, logged_name
from quietburn.engine.connection import connect
from quietburn.engine.derive import DERIVED
from quietburn.engine.hits import hits_select
from quietburn.ruleset.files import Values, bind
from quietburn.ruleset.lint import Issue
from quietburn.ruleset.rule import Rule

# What each derived column is made from, as users log it.
_REQUEST = frozenset({"ts", "latency_ms", "deadline_ms"})
_CHAIN = frozenset({"request_id", "ts", "latency_ms"})
_COMPLETE = frozenset({"finish_reason", "terminal_seen", "stream_complete"})
_CLOCKS = frozenset({"request_id", "attempt", "ts", "latency_ms", "writer"})
_VERDICT = frozenset({"status", "answer_chars"}) | _REQUEST | _COMPLETE
MADE_FROM: dict[str, frozenset[str]] = {
    "is_2xx": frozenset({"status"}),
    "request_has_2xx": frozenset({"status"}),
    "on_time": _REQUEST,
    "is_late": _REQUEST | {"client_closed"},
    "gave_up": _REQUEST | {"client_closed"},
    "caller_left": frozenset({"status", "client_closed"}),
    "time_left_us": _REQUEST,
    "traffic_source": frozenset({"traffic"}),
    "was_answered": frozenset({"status", "client_closed"}),
    "went_unanswered": frozenset({"status", "client_closed"}) | _REQUEST,
    "outcome_known": frozenset({"status", "error", "decision", "client_closed"}),
    "request_started_us": frozenset({"ts", "latency_ms"}),
    "request_start_known": frozenset({"ts", "latency_ms"}),
    "start_known": frozenset({"ts", "latency_ms"}),
    "request_deadline_us": _REQUEST,
    "request_key": _CHAIN,
    "nth": _CHAIN,
    "of_request": _CHAIN,
    "timed_out": frozenset({"error"}),
    "non_empty": frozenset({"answer_chars"}),
    "complete": _COMPLETE,
    "verdict": _VERDICT,
    "decides": _VERDICT,
    "tokens": frozenset({"actual_tokens", "prompt_tokens", "completion_tokens"}),
    "usage_fault": frozenset({"actual_tokens", "prompt_tokens", "completion_tokens"}),
    "prefix_is_new": frozenset({"ts", "prefix_fp"}),
    "minute": frozenset({"ts"}),
    "other_status": frozenset({"request_id", "ts", "status", "proxy_side"}),
    "clock_ahead_us": _CLOCKS,
    "clock_error_us": _CLOCKS,
    "clock_evidence_us": _CLOCKS,
    "clock_skew_us": _CLOCKS,
}


def undeclared(rule: Rule, values: Values) -> list[Issue]:
    """Return the columns that a rule reads and doesn't declare, and those that it declares and doesn't read."""
    declared = {STORED_AS.get(name, name) for name in rule.rule.fields}
    refused = _refused(rule, values, declared)
    if refused is not None:
        named = re.search(r'column (?:named )?"([a-z_0-9]+)"', refused)
        column = named[1] if named and named[1] in BY_NAME else None
        said = f"reads {logged_name(column)!r} and doesn't declare it" if column else "doesn't bind to the events' columns"
        return [Issue("rule.needs", f"{said}; name it in needs, any_of or optional")]
    return [
        Issue("rule.needs", f"declares {logged_name(name)!r} and doesn't read it")
        for name in sorted(declared)
        if not _is_read(rule, values, declared, name)
    ]


def _is_read(rule: Rule, values: Values, declared: set[str], name: str) -> bool:
    derived = reads(rule) | {"minute"}  # every finding stands on minutes
    if any(logged_name(name) in MADE_FROM.get(column, ()) for column in derived):
        return True
    return _refused(rule, values, declared - {name}) is not None


def reads(rule: Rule) -> frozenset[str]:
    """Return the columns of `events`, given or derived, that a rule's SQL names."""
    words = set(re.findall(r"[a-z_][a-z0-9_]*", " ".join(_texts(rule))))
    return frozenset(words & (set(BY_NAME) | set(DERIVED)))


def _texts(rule: Rule) -> list[str]:
    flags = [grade.flag for grade in rule.grades]
    selects = rule.classify.selects if rule.classify else [rule.evidence]
    counted = [*rule.reduced_columns.values(), *rule.minute_columns.values()]
    return [*counted, *flags, *rule.window_observed.values(), *selects, rule.finding.measure or ""]


def _refused(rule: Rule, values: Values, columns: set[str]) -> str | None:
    """Return the engine's words when a rule's SQL doesn't bind against these and the derived columns."""
    import duckdb

    connection, spill = connect(threads=1)
    try:
        for statement in _bound(rule, values, columns):
            connection.execute(statement)
    except duckdb.Error as problem:
        return str(problem)
    finally:
        connection.close()
        temporary.remove(spill)
    return None


def _bound(rule: Rule, values: Values, columns: set[str]) -> list[str]:
    """Return statements that compute every expression of a rule on empty tables."""
    # Of every event that an event rule returns the engine asks route and backend, whether the rule looks at them or not.
    given = columns | ({"route", "backend"} - {STORED_AS.get(n, n) for n in rule.rule.fields} if rule.classify else set())
    types = {name: BY_NAME[name].sql_type for name in sorted(given)} | DERIVED
    made = [f"CREATE TABLE events ({', '.join(f'{name} {kind}' for name, kind in types.items())})"]
    minutes = "".join(f", {bind(text, values)} AS {name}" for name, text in rule.reduced_columns.items())
    if rule.classify:
        if rule.minutes:
            by_minute = f"SELECT route, COALESCE(backend, '') AS backend, minute{minutes} FROM events GROUP BY ALL"
            made.append(f"CREATE VIEW minutes AS {by_minute}")
        if rule.classify.suspects:
            made.append(f"CREATE VIEW suspects AS {bind(rule.classify.suspects, values)}")
        made.append(f"SELECT * FROM ({hits_select(rule, values)})")
    else:
        made.append(f"SELECT minute{minutes} FROM events GROUP BY minute")
        measure = bind(rule.finding.measure, values) if rule.finding.measure else "NULL"
        observed = "".join(f", CAST(NULL AS DOUBLE) AS observed_{name}" for name in rule.evidence_reads)
        made.append(f"SELECT {measure} FROM (SELECT *{observed} FROM events) WHERE {bind(rule.evidence_sql, values)}")
    made += [bind(grade.minutes, values) for grade in rule.alert.grades if grade.minutes]
    rolled = ", ".join(f"{name} DOUBLE" for name in rule.rolled)
    over_windows = [*(grade.flag for grade in rule.grades), *rule.window_observed.values()]
    made.append(f"CREATE TABLE windows (grade INTEGER, {rolled})")
    made.append(f"SELECT {', '.join(bind(text, values) for text in over_windows)} FROM windows")
    return made
