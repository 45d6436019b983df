"""Rules over an engine: outcomes, and findings with bounded evidence."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa

from quietburn.engine.base import Engine, EngineError
from quietburn.engine.minutes import Reduction, flagged_minutes_sql, reduce_to_minutes
from quietburn.ledger.events import STORED_AS
from quietburn.ruleset.load import Values, bind
from quietburn.ruleset.model import Rule, window_minutes
from quietburn.ruleset.severity import Severity
from quietburn.ruleset.wording import Sentences

MAX_EVIDENCE = 20
_MINUTE_US = 60_000_000
_TOP = 3


class Outcome(StrEnum):
    """What became of a rule in a run; never fewer than these four."""

    FIRED = "fired"
    QUIET = "quiet"
    NOT_EVALUATED = "not_evaluated"
    ERRORED = "errored"


@dataclass(frozen=True)
class Evidence:
    """A line that counts against the subject."""

    file: str
    line: int


@dataclass(frozen=True)
class TopEntry:
    """Who stands behind a finding: the share of its evidence, and its tokens."""

    column: str
    value: str
    share: float
    tokens: float | None


@dataclass(frozen=True)
class Finding:
    """A maximal run of flagged minutes of one subject; times in UTC microseconds, half open."""

    rule: str
    severity: Severity
    subject: dict[str, str]
    start_us: int
    end_us: int
    first_flagged_us: int
    last_flagged_us: int
    observed: dict[str, float | bool | None]
    inference: str
    action: str
    count: int
    evidence: tuple[Evidence, ...]
    top: tuple[TopEntry, ...] = ()


@dataclass(frozen=True)
class RuleResult:
    """A rule's outcome; `missing` for what could not be evaluated, `problem` for what errored."""

    rule: Rule
    values: Values
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()
    problem: str | None = None


class _NoEvidenceError(Exception):
    """A run is flagged and no event counts against its subject: the rule contradicts itself."""


@dataclass
class _Run:
    """Consecutive flagged minutes of one subject."""

    subject: dict[str, str]
    rows: list[dict[str, Any]] = field(default_factory=list)


def classify(engine: Engine, rules: Iterable[tuple[Rule, Values]], cannot_tell: dict[str, str] | None = None) -> list[RuleResult]:
    """Evaluate every rule.

    `cannot_tell` names rules that the ledger's dialects can't tell although the fields are
    there, with the reason. A rule whose SQL fails is errored, never quiet.
    """
    rules = list(rules)
    results: dict[str, RuleResult] = {}
    ready: list[tuple[Rule, Values]] = []
    for rule, values in rules:
        missing = missing_fields(rule, values, engine)
        reason = (cannot_tell or {}).get(rule.id)
        if missing or reason:
            listed = missing or (f"not told by this dialect: {reason}",)
            results[rule.id] = RuleResult(rule, values, Outcome.NOT_EVALUATED, missing=listed)
        else:
            ready.append((rule, values))
    for rule, values, reduction in _reduced(engine, ready):
        if isinstance(reduction, EngineError):
            results[rule.id] = RuleResult(rule, values, Outcome.ERRORED, problem="its minute expressions can't be computed")
        else:
            results[rule.id] = _evaluate(engine, rule, values, reduction)
    return [results[rule.id] for rule, _ in rules]


def missing_fields(rule: Rule, values: Values, engine: Engine) -> tuple[str, ...]:
    """Return what the run lacks for a rule: fields as users log them, or `not configured: NAME`."""

    def carries(field_name: str) -> bool:
        return engine.carries(STORED_AS.get(field_name, field_name))

    missing = [name for name in rule.rule.needs if not carries(name)]
    for group in rule.rule.any_of:
        if not any(all(carries(name) for name in entry.split("+")) for entry in group):
            missing += [name for name in group[0].split("+") if not carries(name) and name not in missing]
    missing += [f"not configured: {n}" for n, p in rule.parameters.items() if p.required and values[n].number is None]
    return tuple(missing)


def _reduced(
    engine: Engine, ready: list[tuple[Rule, Values]]
) -> Iterator[tuple[Rule, Values, Reduction | EngineError]]:
    """Reduce for all rules at once; when that fails, rule by rule, so that one costs no other."""
    try:
        reduction = reduce_to_minutes(engine, ready)
    except EngineError:
        for rule, values in ready:
            try:
                yield rule, values, reduce_to_minutes(engine, [(rule, values)])
            except EngineError as problem:
                yield rule, values, problem
        return
    for rule, values in ready:
        yield rule, values, reduction


def _evaluate(engine: Engine, rule: Rule, values: Values, reduction: Reduction) -> RuleResult:
    try:
        rows = engine.select(flagged_minutes_sql(rule, values, reduction)).to_pylist()
        runs = list(_runs(rule, rows))
        findings = tuple(_findings(engine, rule, values, runs)) if runs else ()
    except EngineError:
        return RuleResult(rule, values, Outcome.ERRORED, problem="its SQL fails on this ledger")
    except _NoEvidenceError:
        problem = "it flags a window in which no event counts against the subject: flag and evidence contradict each other"
        return RuleResult(rule, values, Outcome.ERRORED, problem=problem)
    return RuleResult(rule, values, Outcome.FIRED if findings else Outcome.QUIET, findings)


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


def _worst(rule: Rule, run: _Run) -> dict[str, Any]:
    """Return the minute with the worst grade, of those the one with the most of what it is judged by."""

    def badness(row: dict[str, Any]) -> tuple[int, float]:
        value = _finite(row[rule.finding.worst_by])
        return rule.window.grades[row["grade"]].severity.rank, float("-inf") if value is None else float(value)

    return max(run.rows, key=badness)


def _finite(value: Any) -> float | bool | None:
    """Return a number fit for a report: what can't be told is None, never NaN or infinity."""
    if value is None or isinstance(value, bool):
        return value
    number = float(value)
    return number if math.isfinite(number) else None


def _findings(engine: Engine, rule: Rule, values: Values, runs: list[_Run]) -> Iterator[Finding]:
    worst = [_worst(rule, run) for run in runs]
    engine.with_rows("flagged_runs", _run_table(rule, runs))
    facts = {row["run"]: row for row in engine.select(_facts_sql(rule, values)).to_pylist()}
    lines: dict[int, list[Evidence]] = {}
    for row in engine.select(_lines_sql(rule, values)).to_pylist():
        lines.setdefault(row["run"], []).append(Evidence(row["file"], row["line"]))
    top = _top(engine, rule, values, {index: row["hits"] for index, row in facts.items()})
    sentences = Sentences(rule)
    for index, (run, row) in enumerate(zip(runs, worst, strict=True)):
        fact = facts.get(index)
        if fact is None:
            raise _NoEvidenceError
        observed = {name: _finite(row[name]) for name in rule.window.observed}
        if rule.finding.measure_name:
            observed[f"p50_{rule.finding.measure_name}"] = _finite(fact["p50"])
        yield Finding(
            rule=rule.id,
            severity=rule.window.grades[row["grade"]].severity,
            subject={key: value for key, value in run.subject.items() if value != ""},
            start_us=fact["first_us"] // _MINUTE_US * _MINUTE_US,
            end_us=(fact["last_us"] // _MINUTE_US + 1) * _MINUTE_US,
            first_flagged_us=run.rows[0]["minute"] * _MINUTE_US,
            last_flagged_us=run.rows[-1]["minute"] * _MINUTE_US,
            observed=observed,
            inference=sentences.inference(observed),
            action=sentences.action(observed),
            count=fact["hits"],
            evidence=tuple(lines[index]),
            top=top.get(index, ()),
        )


def _run_table(rule: Rule, runs: list[_Run]) -> pa.Table:
    """Return the runs with the span of their evidence: (first flagged - window, last flagged]."""
    spans = [window_minutes(rule.window.grades[run.rows[0]["grade"]].window) for run in runs]
    columns: dict[str, Any] = {
        "run": pa.array(range(len(runs)), pa.int64()),
        "after_minute": pa.array([run.rows[0]["minute"] - span for run, span in zip(runs, spans, strict=True)], pa.int64()),
        "to_minute": pa.array([run.rows[-1]["minute"] for run in runs], pa.int64()),
    }
    for key in rule.rule.subject:
        columns[f"of_{key}"] = pa.array([run.subject[key] for run in runs], pa.string())
    return pa.table(columns)


def _evidence_sql(rule: Rule, values: Values) -> str:
    """Return the events that count against each run's subject."""
    measure = bind(rule.finding.measure, values) if rule.finding.measure else "CAST(NULL AS DOUBLE)"
    on = " AND ".join(f"COALESCE(e.{key}, '') = r.of_{key}" for key in rule.rule.subject)
    return (
        f"SELECT r.run, e.file_id, e.file, e.line, e.ts_us, e.tokens, e.client, e.tenant, e.model, e.backend, e.measure "
        f"FROM (SELECT *, {measure} AS measure FROM events WHERE {bind(rule.finding.evidence, values)}) e "
        f"JOIN flagged_runs r ON {on} AND e.minute > r.after_minute AND e.minute <= r.to_minute"
    )


def _facts_sql(rule: Rule, values: Values) -> str:
    return (
        "SELECT run, count(*) AS hits, min(ts_us) AS first_us, max(ts_us) AS last_us, median(measure) AS p50 "
        f"FROM ({_evidence_sql(rule, values)}) GROUP BY run"
    )


def _lines_sql(rule: Rule, values: Values) -> str:
    return (
        "SELECT run, file, line FROM (SELECT run, file, line, row_number() OVER "
        f"(PARTITION BY run ORDER BY ts_us, file_id, line) AS place FROM ({_evidence_sql(rule, values)})) "
        f"WHERE place <= {MAX_EVIDENCE} ORDER BY run, place"
    )


def _top(engine: Engine, rule: Rule, values: Values, hits: dict[int, int]) -> dict[int, tuple[TopEntry, ...]]:
    """Return for each run up to three clients, else tenants, else models, else backends, by their share."""
    column = next((name for name in ("client", "tenant", "model", "backend") if engine.carries(name)), None)
    if column is None:
        return {}
    rows = engine.select(
        f"SELECT run, name, n, tokens FROM (SELECT *, row_number() OVER (PARTITION BY run ORDER BY n DESC, name) AS place FROM "
        f"(SELECT run, {column} AS name, count(*) AS n, sum(tokens) AS tokens FROM ({_evidence_sql(rule, values)}) "
        f"WHERE {column} IS NOT NULL GROUP BY run, {column})) WHERE place <= {_TOP} ORDER BY run, place"
    ).to_pylist()
    found: dict[int, tuple[TopEntry, ...]] = {}
    for row in rows:
        entry = TopEntry(column, row["name"], row["n"] / hits[row["run"]], _finite(row["tokens"]))
        found[row["run"]] = (*found.get(row["run"], ()), entry)
    return found
