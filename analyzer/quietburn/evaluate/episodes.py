"""Find where a rule is flagged: one function for each kind of rule, one result for both.

A windowed rule's episode is a maximal run of flagged minutes; an event rule's is a stretch of
events without a quiet hour. An episode starts with its first minute at its own severity: milder
minutes before it would date a page before its fault. What follows (findings) doesn't ask which it was.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from quietburn.engine.base import Engine
from quietburn.engine.hits import find_hits, of_stretches, stretches_sql
from quietburn.engine.minutes import Reduction, flagged_minutes_sql
from quietburn.ruleset.files import Values, bind
from quietburn.ruleset.guard import running
from quietburn.ruleset.rule import Rule, window_minutes
from quietburn.ruleset.severity import Severity

Observed = dict[str, float | bool | None]
_FLAGGED = "flagged_runs"
_OF_EVENT = (
    "e.event_id, e.file_id AS file_order, e.file, e.line, e.item, e.ts_us, e.tokens, e.client, e.tenant, e.model, e.backend, "
    "e.writer, e.in_request, e.request_key, e.verdict"
)


@dataclass(frozen=True)
class Episode:
    """One subject while it is flagged; minutes are the ends of minutes, counted since 1970."""

    subject: dict[str, str]
    severity: Severity
    observed: Observed
    first_flagged: int
    last_flagged: int


@dataclass(frozen=True)
class Judged:
    """A rule's episodes, and the SELECT of what counts against them.

    It returns run (the episode's place), event_id, file_order, file, line, item, ts_us, tokens, client, tenant,
    model, backend, writer, in_request, request_key, verdict and measure.
    """

    episodes: list[Episode]
    evidence_sql: str


def judge(engine: Engine, rule: Rule, values: Values, reduction: Reduction) -> Judged:
    """Return where a rule is flagged. Raises RuleFault."""
    by_kind = _by_events if rule.classify else _by_windows
    return by_kind(engine, rule, values, reduction)


def flagged_rows(engine: Engine, rule: Rule, values: Values, reduction: Reduction) -> list[dict[str, Any]]:
    """Return a rule's flagged minutes, ordered by subject and minute, whatever kind it is. Raises RuleFault."""
    if rule.classify:
        reduction = find_hits(engine, rule, values, reduction)
    return _flagged(engine, rule, values, reduction)


def _flagged(engine: Engine, rule: Rule, values: Values, reduction: Reduction) -> list[dict[str, Any]]:
    with running(rule, "classify.grades" if rule.classify else "window"):
        rows: list[dict[str, Any]] = engine.select(flagged_minutes_sql(rule, values, reduction)).to_pylist()
    return [row | {"minute": row["minute"] + later} for row in rows for later in range(row["lasts"])]


def _at_own_severity(rule: Rule, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an episode's flagged minutes from the first that is as severe as the worst of them."""
    ranks = [rule.grades[row["grade"]].severity.rank for row in rows]
    return rows[ranks.index(max(ranks)) :]


def finite(value: Any) -> float | bool | None:
    """Return a number fit for a report: what can't be told is None, never NaN or infinity."""
    if value is None or isinstance(value, bool):
        return value
    number = float(value)
    return number if math.isfinite(number) else None


# Windowed rules


@dataclass
class _Run:
    """Consecutive flagged minutes of one subject."""

    subject: dict[str, str]
    rows: list[dict[str, Any]] = field(default_factory=list)


def _by_windows(engine: Engine, rule: Rule, values: Values, reduction: Reduction) -> Judged:
    flagged = _runs(rule, flagged_rows(engine, rule, values, reduction))
    runs = [_Run(run.subject, _at_own_severity(rule, run.rows)) for run in flagged]
    if not runs:
        return Judged([], "")
    episodes = [_episode(rule, run) for run in runs]
    engine.with_rows(_FLAGGED, _run_table(rule, runs, episodes))
    return Judged(episodes, _evidence_in_windows(rule, values))


def _runs(rule: Rule, rows: list[dict[str, Any]]) -> Iterator[_Run]:
    """Yield maximal runs of consecutive minutes; rows come ordered by subject and minute."""
    run: _Run | None = None
    for row in rows:
        subject: dict[str, str] = {key: row[key] for key in rule.rule.subject}
        if run and run.subject == subject and row["minute"] == run.rows[-1]["minute"] + 1:
            run.rows.append(row)
            continue
        if run:
            yield run
        run = _Run(subject, [row])
    if run:
        yield run


def _episode(rule: Rule, run: _Run) -> Episode:
    row = _worst(rule, run)
    return Episode(
        subject=run.subject,
        severity=rule.grades[row["grade"]].severity,
        observed={name: finite(row[name]) for name in rule.observed_names},
        first_flagged=run.rows[0]["minute"],
        last_flagged=run.rows[-1]["minute"],
    )


def _worst(rule: Rule, run: _Run) -> dict[str, Any]:
    """Return the minute with the worst grade, of those the one with the most of what it is judged by."""

    def badness(row: dict[str, Any]) -> tuple[int, float]:
        value = finite(row[rule.finding.worst_by])
        return rule.grades[row["grade"]].severity.rank, float("-inf") if value is None else float(value)

    return max(run.rows, key=badness)


def _run_table(rule: Rule, runs: list[_Run], episodes: list[Episode]) -> pa.Table:
    """Return the runs with the span of their evidence, (first flagged - window, last flagged], and what it is compared with."""
    spans = [window_minutes(rule.grades[run.rows[0]["grade"]].window) for run in runs]
    columns: dict[str, Any] = {
        "run": pa.array(range(len(runs)), pa.int64()),
        "after_minute": pa.array([run.rows[0]["minute"] - span for run, span in zip(runs, spans, strict=True)], pa.int64()),
        "to_minute": pa.array([run.rows[-1]["minute"] for run in runs], pa.int64()),
    }
    for key in rule.rule.subject:
        columns[f"of_{key}"] = pa.array([run.subject[key] for run in runs], pa.string())
    for name in rule.evidence_reads:
        numbers = [None if (value := episode.observed[name]) is None else float(value) for episode in episodes]
        columns[f"observed_{name}"] = pa.array(numbers, pa.float64())
    return pa.table(columns)


def _evidence_in_windows(rule: Rule, values: Values) -> str:
    measure = bind(rule.finding.measure, values) if rule.finding.measure else "CAST(NULL AS DOUBLE)"
    on = " AND ".join(f"COALESCE(e.{key}, '') = r.of_{key}" for key in rule.rule.subject)
    on += " AND e.minute > r.after_minute AND e.minute <= r.to_minute"
    if rule.evidence_reads:
        compared = bind(rule.evidence_sql, values)
        return f"SELECT r.run, {_OF_EVENT}, {measure} AS measure FROM events e JOIN {_FLAGGED} r ON {on} WHERE {compared}"
    return (
        f"SELECT r.run, {_OF_EVENT}, e.measure "
        f"FROM (SELECT *, {measure} AS measure FROM events WHERE {bind(rule.evidence, values)}) e JOIN {_FLAGGED} r ON {on}"
    )


# Event rules


def _by_events(engine: Engine, rule: Rule, values: Values, reduction: Reduction) -> Judged:
    reduction = find_hits(engine, rule, values, reduction)
    flagged: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    # Asked for even where there is no hit: a flag that can't be computed must not read as quiet.
    for row in _flagged(engine, rule, values, reduction):
        flagged.setdefault(_subject_of(rule, row), []).append(row)
    stretches = engine.select(stretches_sql(rule)).to_pylist() if flagged else []
    kept = [
        (stretch, rows) for stretch in stretches
        if (rows := _minutes_of(rule, stretch, flagged.get(_subject_of(rule, stretch), [])))
    ]
    if not kept:
        return Judged([], "")
    engine.with_rows(_FLAGGED, _stretch_table(rule, kept))
    return Judged([_of_stretch(rule, stretch, rows) for stretch, rows in kept], _evidence_of_stretches(rule))


def _minutes_of(rule: Rule, stretch: dict[str, Any], flagged: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those of a subject's flagged minutes that are a stretch's."""
    until = stretch["last_minute"] + rule.longest_window
    return [row for row in flagged if stretch["first_minute"] <= row["minute"] < until]


def _subject_of(rule: Rule, row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(row[key] for key in rule.rule.subject)


def _of_stretch(rule: Rule, stretch: dict[str, Any], rows: list[dict[str, Any]]) -> Episode:
    """Return a stretch as an episode: as severe as its worst minute."""
    own = _at_own_severity(rule, rows)
    return Episode(
        subject={key: stretch[key] for key in rule.rule.subject},
        severity=rule.grades[own[0]["grade"]].severity,
        observed={name: finite(stretch[name]) for name in rule.observed_names},
        first_flagged=own[0]["minute"],
        last_flagged=own[-1]["minute"],
    )


def _evidence_after(rule: Rule, stretch: dict[str, Any], rows: list[dict[str, Any]]) -> int:
    """Return the minute after which a stretch's events count: all of them where no milder minute came before."""
    first = _at_own_severity(rule, rows)[0]
    if first is rows[0]:
        return int(stretch["first_minute"]) - 1
    return int(first["minute"]) - window_minutes(rule.grades[first["grade"]].window)


def _stretch_table(rule: Rule, kept: list[tuple[dict[str, Any], list[dict[str, Any]]]]) -> pa.Table:
    stretches = [stretch for stretch, _ in kept]
    columns: dict[str, Any] = {
        "run": pa.array(range(len(kept)), pa.int64()),
        "of_stretch": pa.array([stretch["stretch"] for stretch in stretches], pa.int64()),
        "after_minute": pa.array([_evidence_after(rule, stretch, rows) for stretch, rows in kept], pa.int64()),
    }
    for key in rule.rule.subject:
        columns[f"of_{key}"] = pa.array([stretch[key] for stretch in stretches], pa.string())
    return pa.table(columns)


def _evidence_of_stretches(rule: Rule) -> str:
    on = " AND ".join(f"h.{key} = r.of_{key}" for key in rule.rule.subject)
    return (
        f"SELECT r.run, {_OF_EVENT}, CAST(NULL AS DOUBLE) AS measure "
        f"FROM {of_stretches(rule)} h JOIN {_FLAGGED} r ON {on} AND h.stretch = r.of_stretch "
        "AND h.minute > r.after_minute JOIN events e ON e.event_id = h.event_id"
    )
