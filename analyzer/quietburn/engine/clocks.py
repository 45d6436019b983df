"""Detect clock skew between the writers of a ledger, from requests whose attempts contradict each other.

An attempt can't start before the attempt with the number below it, nor before the refusal that it
answers; and nobody hands a request on after its deadline because of an attempt that failed at once.
Where attempts of two writers say so and attempts of one writer don't, their clocks differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import duckdb

from quietburn.common.sql import literal

EVIDENCE = "clock_evidence"  # temporary: attempts that contradict the one before, and by how much
_PAIRS = "attempt_pairs"
_LEAST_US = 2_000_000  # clocks that differ by less are taken for one
_FEWEST = 3  # contradictions between two writers
_FEWEST_UNNAMED = 5  # contradictions where nothing tells who wrote a line
_SHARE_UNNAMED = 0.01  # of the pairs
_TIMES_OWN = 5  # as many, for each pair, as within one writer
_UNEXPLAINED = 0.2  # most contradictions that writers' clocks may leave over
_TICK_US = 50_000  # times are rounded, and a start follows from a rounded latency
_HOUR_US = 3_600_000_000
# What may tell who wrote a line, the most telling first; else it is told by nothing.
_WRITERS = {"writer": "writer", "file": "CAST(file_id AS VARCHAR)", "backend": "backend"}


@dataclass(frozen=True)
class Clocks:
    """By how much writers' clocks are ahead, in microseconds; nobody is where the ledger holds no contradiction.

    `told_by` names what tells the writers apart (writer, file, backend), None where nothing does.
    `error_us` bounds what a comparison of two writers' corrected times may be wrong by, `skew_us` is
    the largest difference of two clocks.
    """

    skew_us: int = 0
    error_us: int = 0
    told_by: str | None = None
    ahead_us: dict[str, int] = field(default_factory=dict)

    @property
    def writer(self) -> str:
        """Return the expression over an attempt's columns that tells its writer; NULL where nothing does."""
        return _WRITERS[self.told_by] if self.told_by else "CAST(NULL AS VARCHAR)"

    @property
    def ahead(self) -> str:
        """Return the expression that tells by how much the clock of an attempt's writer is ahead."""
        cases = " ".join(f"WHEN {literal(name)} THEN {ahead}" for name, ahead in sorted(self.ahead_us.items()) if ahead)
        return f"CAST(CASE {self.writer} {cases} ELSE 0 END AS BIGINT)" if cases else "CAST(0 AS BIGINT)"

    def error(self, one_writer: str) -> str:
        """Return what comparing two attempts' times may be wrong by; `one_writer` is the predicate that one wrote the request."""
        if self.told_by is None or not self.skew_us:
            return f"CAST({self.error_us if self.skew_us else 0} AS BIGINT)"
        return f"CAST(CASE WHEN {one_writer} THEN 0 ELSE {self.error_us} END AS BIGINT)"


@dataclass(frozen=True)
class _Told:
    """What pairs of attempts with one writer on one side tell of its clock."""

    contradictions: int
    backwards: int
    ahead_us: float | None
    spread_us: float
    share: float


def find_clocks(connection: duckdb.DuckDBPyConnection, candidates: str, columns: frozenset[str]) -> Clocks:
    """Return whose clock is ahead, told by a table of attempts that may be of one request; note the attempts that tell it."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {EVIDENCE} (row_id BIGINT, by_us BIGINT)")
    if not columns >= {"request_id", "attempt", "ts_us"}:
        return Clocks()
    _pair_attempts(connection, candidates)
    contradictions, named = _one_row(connection, f"SELECT count(by_us), count(COALESCE(from_writer, to_writer)) FROM {_PAIRS}")
    if contradictions < _FEWEST:
        return Clocks()
    for told_by in ("writer",) if named else ("file", "backend"):
        found = _between(connection, told_by)
        if found.skew_us:
            _note_evidence(connection, f"from_{told_by} <> to_{told_by}")
            return found
    return _unnamed(connection)


def _pair_attempts(connection: duckdb.DuckDBPyConnection, candidates: str) -> None:
    """Make the pairs: an attempt that failed, and the one with the next number of the same request.

    `gap_us` is the time between them beyond what the first named to wait, `by_us` by how much they
    contradict each other: backwards for certain, or (`is_long`) a start after the deadline though
    the first attempt hardly used any of it.
    """
    sides = "".join(f", b.by_{name} AS from_{name}, t.by_{name} AS to_{name}" for name in _WRITERS)
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE {_PAIRS} AS
        WITH placed AS (
            SELECT row_id, call, started_us, ts_us, attempt, start_known, is_2xx, status, latency_ms, deadline_ms,
                CAST(COALESCE(retry_after_s, 0) * 1000000 AS BIGINT) AS wait_us,
                {', '.join(f'{sql} AS by_{name}' for name, sql in _WRITERS.items())}
            FROM {candidates} WHERE attempt IS NOT NULL AND started_us IS NOT NULL
        ),
        single AS (SELECT min(row_id) AS row_id FROM placed GROUP BY call, attempt HAVING count(*) = 1),
        told AS (SELECT * FROM placed WHERE start_known AND row_id IN (SELECT row_id FROM single)),
        pairs AS (
            SELECT t.row_id, t.started_us - b.ts_us - b.wait_us AS gap_us,
                t.started_us < b.started_us - {_TICK_US}
                    OR (b.status IN (429, 503) AND t.started_us < b.ts_us - {_TICK_US}) AS is_backwards,
                COALESCE(t.started_us - b.started_us > b.deadline_ms * 1000 AND b.latency_ms * 20 < b.deadline_ms
                    AND b.wait_us = 0, FALSE) AS is_long{sides}
            FROM told t JOIN told b ON t.call = b.call AND t.attempt = b.attempt + 1
            WHERE NOT b.is_2xx AND abs(t.started_us - b.started_us) < {_HOUR_US}
        )
        SELECT *, CASE WHEN is_backwards OR is_long THEN abs(gap_us) END AS by_us FROM pairs
    """)


def _between(connection: duckdb.DuckDBPyConnection, told_by: str) -> Clocks:
    """Return by how much clocks differ between writers that a column tells apart, where that explains the contradictions.

    The writer with the most contradictions is taken for the one that is wrong; then the next, among the others.
    """
    first, second = f"from_{told_by}", f"to_{told_by}"
    within = f"{first} IS NOT DISTINCT FROM {second} OR {first} IS NULL OR {second} IS NULL"
    own, own_contradictions, contradictions = _one_row(
        connection,
        f"SELECT count(CASE WHEN {within} THEN 1 END), count(CASE WHEN {within} THEN by_us END), count(by_us) FROM {_PAIRS}",
    )
    if own_contradictions > _UNEXPLAINED * contradictions:
        return Clocks()
    ahead: dict[str, int] = {}
    error_us, left = 0.0, contradictions
    while worst := _worst(connection, first, second, ahead):
        told = _told_of(connection, first, second, worst, ahead)
        if told_by == "backend" and told.backwards < _FEWEST:  # one that is asked late is no clock
            break
        if not _is_skew(told, own_contradictions / max(1, own)):
            break
        ahead[worst] = round(told.ahead_us or 0)
        error_us, left = max(error_us, told.spread_us), left - told.contradictions
    skew_us = max([0, *ahead.values()]) - min([0, *ahead.values()])
    if left > _UNEXPLAINED * contradictions or skew_us <= _LEAST_US:
        return Clocks()
    return Clocks(skew_us, round(error_us) + _TICK_US, told_by, ahead)


def _one_row(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    (row,) = connection.execute(sql).fetchall()
    return row


def _others(first: str, second: str, settled: Iterable[str]) -> str:
    """Return the predicate of pairs of two writers of which none is settled."""
    listed = ", ".join(literal(name) for name in settled) or "NULL"
    return f"{first} <> {second} AND COALESCE({first} NOT IN ({listed}) AND {second} NOT IN ({listed}), TRUE)"


def _worst(connection: duckdb.DuckDBPyConnection, first: str, second: str, settled: Iterable[str]) -> str | None:
    """Return the writer that stands on either side of the most contradictions between those that are not settled."""
    found = connection.execute(
        f"WITH apart AS (SELECT {first} AS one, {second} AS other FROM {_PAIRS} "
        f"WHERE by_us IS NOT NULL AND {_others(first, second, settled)}) "
        "SELECT who, count(*) FROM (SELECT one AS who FROM apart UNION ALL SELECT other FROM apart) "
        "GROUP BY who ORDER BY 2 DESC, 1 DESC LIMIT 1"
    ).fetchall()
    return str(found[0][0]) if found else None


def _told_of(connection: duckdb.DuckDBPyConnection, first: str, second: str, name: str, settled: Iterable[str]) -> _Told:
    """Return what the handovers to and from a writer tell of its clock: its lead is of those that contradict."""
    who = literal(name)
    mine = f"({first} = {who} OR {second} = {who}) AND {_others(first, second, settled)}"
    usual = f"SELECT COALESCE(median(gap_us), 0) FROM {_PAIRS} WHERE by_us IS NULL AND {first} <> {who} AND {second} <> {who}"
    return _Told(*_one_row(
        connection,
        f"SELECT count(by_us), count(CASE WHEN is_backwards THEN 1 END), median(CASE WHEN by_us IS NOT NULL THEN lead_us END), "
        f"quantile_cont(lead_us, 0.95) - quantile_cont(lead_us, 0.05), count(by_us) / count(*) FROM ("
        f"SELECT *, (gap_us - ({usual})) * CASE WHEN {second} = {who} THEN 1 ELSE -1 END AS lead_us FROM {_PAIRS} WHERE {mine})",
    ))


def _is_skew(told: _Told, own_share: float) -> bool:
    """Whether contradictions are a clock's: enough, more than within one writer, and of one size unless time ran backwards."""
    if told.contradictions < _FEWEST or told.ahead_us is None or told.share <= _TIMES_OWN * own_share:
        return False
    return told.backwards > 0 or told.spread_us <= _LEAST_US / 2 + abs(told.ahead_us) / 10


def _unnamed(connection: duckdb.DuckDBPyConnection) -> Clocks:
    """Return a skew between writers that nothing names: numbers contradict starts, and nobody knows whose time is wrong."""
    pairs, backwards, skew_us = _one_row(
        connection,
        "SELECT count(*), count(CASE WHEN is_backwards THEN 1 END), "
        f"quantile_cont(CASE WHEN is_backwards THEN abs(gap_us) END, 0.95) FROM {_PAIRS}",
    )
    if backwards < max(_FEWEST_UNNAMED, _SHARE_UNNAMED * pairs) or skew_us <= _LEAST_US:
        return Clocks()
    _note_evidence(connection, "is_backwards")
    return Clocks(round(skew_us), round(skew_us * 1.1) + _TICK_US)


def _note_evidence(connection: duckdb.DuckDBPyConnection, which: str) -> None:
    connection.execute(f"INSERT INTO {EVIDENCE} SELECT row_id, by_us FROM {_PAIRS} WHERE by_us IS NOT NULL AND {which}")
