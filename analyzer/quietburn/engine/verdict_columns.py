"""How verdicts follow from the three questions, as SQL: one place for the table of verdicts.

Columns that these expressions read: those of attempts (`attempts_select`), and a `rank` made by `rank_of`.
"""

from collections.abc import Collection

CRITERIA = ("on_time", "complete", "non_empty")
# What an answered attempt is when it fails a criterion; the first that fails names it.
_MISSED = (("complete", "truncated"), ("non_empty", "empty"), ("on_time", "late"))
FALSE_SUCCESSES = ("late", "truncated", "empty")

# The attempt that decides its request comes first: of those that ended somehow good the earliest, else the last.
DECIDING_FIRST = "rank, CASE WHEN rank < 5 THEN ts_us END, CASE WHEN rank < 5 THEN nth ELSE -nth END"


# Of a 2xx without error that no criterion speaks against. What was written and can't be read might.
_USABLE = "on_time AND unreadable IS NOT TRUE"


def not_missed(criteria: Collection[str]) -> str:
    """Return the predicate that no criterion is known to be missed."""
    return " AND ".join(f"{name} IS DISTINCT FROM FALSE" for name in CRITERIA if name in criteria) or "TRUE"


def missed_by(criteria: Collection[str]) -> str:
    """Return the CASE that names an answered attempt by the criterion that it misses; NULL where it misses none.

    A caller that gave up at its deadline was late, whatever else its answer lacked.
    """
    known = ["WHEN gave_up THEN 'late'"] if "on_time" in criteria else []
    known += [f"WHEN {name} = FALSE THEN '{verdict}'" for name, verdict in _MISSED if name in criteria]
    return f"CASE {' '.join(known)} END" if known else "CAST(NULL AS VARCHAR)"


def answered_verdict(criteria: Collection[str]) -> str:
    """Return the CASE that says what a 2xx attempt is by some criteria: usable, unknown, or what it misses.

    Only on time must be known to be met: an answer that comes too late is none, whereas what no log
    tells of an answer's end or text is no reason to doubt it. What it tells and nobody can read is.
    """
    usable = f"COALESCE({_USABLE}, FALSE)" if "on_time" in criteria else "FALSE"
    right = f"CASE WHEN {usable} THEN 'usable' ELSE 'unknown' END"
    return f"CASE WHEN {not_missed(criteria)} THEN {right} ELSE {missed_by(criteria)} END"


_GOT_PART = """is_2xx AND COALESCE(answer_chars > 0 OR tool_calls > 0 OR completion_tokens > 0
            OR (stream IS DISTINCT FROM FALSE AND ttft_ms IS NOT NULL), FALSE)"""
_LEFT_WITH_NOTHING = f"(caller_left AND NOT ({_GOT_PART}) AND NOT (is_2xx AND COALESCE(complete, FALSE)))"
_OWN_FAULT = "COALESCE(status BETWEEN 400 AND 499 AND status NOT IN (408, 425, 429, 499), FALSE)"
WAS_ANSWERED = f"COALESCE(in_request AND is_2xx AND NOT {_LEFT_WITH_NOTHING}, FALSE)"
# Without a known deadline impatience and a hang look the same, unless part of an answer had come.
_LEFT = f"CASE WHEN time_left_us IS NOT NULL OR {_GOT_PART} THEN 'abandoned' ELSE 'unknown' END"


def attempt_verdict() -> str:
    """Return the CASE of the verdict that an attempt would give its request; the table of verdicts, in its order."""
    # The usual verdict goes first and asks each criterion once.
    return f"""CASE WHEN NOT in_request THEN NULL
        WHEN is_2xx AND {not_missed(CRITERIA)} THEN CASE WHEN {_USABLE} THEN 'usable' ELSE 'unknown' END
        WHEN caller_left AND NOT gave_up AND NOT (is_2xx AND COALESCE(complete, FALSE)) THEN {_LEFT}
        WHEN is_2xx THEN {missed_by(CRITERIA)}
        WHEN COALESCE(decision = 'reject', FALSE) OR COALESCE(status = 429, FALSE)
             OR COALESCE(status = 503 AND reason IS NOT NULL, FALSE) THEN 'refused'
        WHEN {_OWN_FAULT} THEN 'invalid'
        WHEN NOT outcome_known THEN 'unknown'
        ELSE 'failed' END"""


def went_unanswered(usual_ms: float | None) -> str:
    """Return the predicate: an attempt was owed an answer and got none.

    Callers' own faults are owed none; whoever left early with nothing is owed one that had waited
    longer than the usual time to a first answer (None: nobody knows it).
    """
    waited = "FALSE" if usual_ms is None else f"COALESCE(latency_ms > {usual_ms!r}, FALSE)"
    owed = f"outcome_known AND NOT {_OWN_FAULT} AND (NOT {_LEFT_WITH_NOTHING} OR gave_up OR {waited})"
    return f"COALESCE(in_request AND NOT {WAS_ANSWERED} AND {owed}, FALSE)"


def rank_of(verdict: str) -> str:
    """Return the CASE that ranks an attempt's verdict (a column) among those of its request, 1 the best."""
    misses = ", ".join(f"'{name}'" for name in FALSE_SUCCESSES)
    return (
        f"CASE WHEN {verdict} = 'usable' THEN 1 WHEN {verdict} = 'unknown' THEN 2 WHEN {verdict} = 'abandoned' THEN 3 "
        f"WHEN {verdict} IN ({misses}) THEN 4 ELSE 5 END"
    )
