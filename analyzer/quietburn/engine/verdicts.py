"""How verdicts follow from the three questions, as SQL: one place for the table of usable-answers.

Columns that these expressions read: the criteria, is_2xx, ts_us, nth, and a `rank` made by `rank_of`.
"""

from collections.abc import Collection

CRITERIA = ("on_time", "complete", "non_empty")
# What an answered attempt is when it fails a criterion; the first that fails names it.
_MISSED = (("complete", "truncated"), ("non_empty", "empty"), ("on_time", "late"))
FALSE_SUCCESSES = ("late", "truncated", "empty")

# The attempt that decides its request comes first: of those that ended somehow good the earliest, else the last.
DECIDING_FIRST = "rank, CASE WHEN rank < 5 THEN ts_us END, CASE WHEN rank < 5 THEN nth ELSE -nth END"


def met(criteria: Collection[str]) -> str:
    """Return the predicate that every criterion is known to be met."""
    return " AND ".join(f"COALESCE({name}, FALSE)" for name in CRITERIA if name in criteria) or "TRUE"


def not_missed(criteria: Collection[str]) -> str:
    """Return the predicate that no criterion is known to be missed."""
    return " AND ".join(f"{name} IS DISTINCT FROM FALSE" for name in CRITERIA if name in criteria) or "TRUE"


def missed_by(criteria: Collection[str]) -> str:
    """Return the CASE that names an answered attempt by the criterion that it misses; NULL where it misses none."""
    known = [f"WHEN {name} = FALSE THEN '{verdict}'" for name, verdict in _MISSED if name in criteria]
    return f"CASE {' '.join(known)} END" if known else "CAST(NULL AS VARCHAR)"


def rank_of(verdict: str) -> str:
    """Return the CASE that ranks an attempt's verdict (a column) among those of its request, 1 the best."""
    misses = ", ".join(f"'{name}'" for name in FALSE_SUCCESSES)
    return (
        f"CASE WHEN {verdict} = 'usable' THEN 1 WHEN {verdict} = 'unknown' THEN 2 WHEN {verdict} = 'abandoned' THEN 3 "
        f"WHEN {verdict} IN ({misses}) THEN 4 ELSE 5 END"
    )
