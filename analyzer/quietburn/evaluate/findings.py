"""Findings: episodes with bounded evidence, who stands behind them, and sentences."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from quietburn.common.limits import MINUTE_US
from quietburn.engine.base import Engine
from quietburn.engine.verdict_columns import FALSE_SUCCESSES
from quietburn.evaluate.episodes import Episode, Judged, Observed, finite
from quietburn.ruleset.guard import RuleFault, running
from quietburn.ruleset.rule import Rule
from quietburn.ruleset.sentences import Sentences
from quietburn.ruleset.severity import Severity

MAX_EVIDENCE = 20
_TOP = 3
_WHO = ("client", "tenant", "model", "backend")  # who is named: the first of these that the run carries
_PART = "finding.evidence"  # its key in a rule file
_KEPT = "run, event_id, file_order, file, line, item, ts_us, tokens, measure"
# A caller's own fault and a caller that left early are no answer that we owed.
_NOT_SERVED = "('" + "', '".join((*FALSE_SUCCESSES, "refused", "failed")) + "')"
_UNSERVED = (
    f"CASE WHEN in_request AND verdict IN {_NOT_SERVED} "
    "THEN COALESCE('request ' || request_key, 'event ' || CAST(event_id AS VARCHAR)) END AS unserved"
)


def evidence_table(rule_id: str) -> str:
    """Return the table that keeps what counts in a rule's findings, until the run ends.

    Its columns: run (the finding's place among its rule's), event_id, ts_us, tokens, who, and `unserved`: which
    request was not served, NULL where it was.
    """
    return f"evidence_of_{rule_id.replace('-', '_')}"


def _facts_sql(table: str) -> str:
    return (
        "SELECT run, count(*) AS hits, min(ts_us) AS first_us, max(ts_us) AS last_us, median(measure) AS p50 "
        f"FROM {table} GROUP BY run"
    )


def _lines_sql(table: str) -> str:
    return (
        "SELECT run, file, line, item FROM (SELECT run, file, line, item, row_number() OVER "
        f"(PARTITION BY run ORDER BY ts_us, file_order, line, item) AS place FROM {table}) "
        f"WHERE place <= {MAX_EVIDENCE} ORDER BY run, place"
    )


def top_sql(table: str, key: str = "run", column: str = "who") -> str:
    """Return the SELECT of the three who stand behind most rows of each `key`: it, who, n, tokens."""
    told = f"SELECT {key}, {column} AS who, tokens FROM {table} WHERE {column} IS NOT NULL"
    counted = f"SELECT {key}, who, count(*) AS n, sum(tokens) AS tokens FROM ({told}) GROUP BY {key}, who"
    placed = f"SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY n DESC, who) AS place FROM ({counted})"
    return f"SELECT {key}, who, n, tokens FROM ({placed}) WHERE place <= {_TOP} ORDER BY {key}, place"


class Confidence(StrEnum):
    """Whether a finding's corroborating signals are there."""

    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True)
class Evidence:
    """A line that counts against the subject; `item` says which of its events, where it holds several."""

    file: str
    line: int
    item: int | None = None


@dataclass(frozen=True)
class TopEntry:
    """Who stands behind a finding: the share of its evidence, and its tokens."""

    column: str
    value: str
    share: float
    tokens: float | None


@dataclass(frozen=True)
class Finding:
    """One subject's episode; times in UTC microseconds, half open; `run` is its place among its rule's."""

    rule: str
    run: int
    severity: Severity
    confidence: Confidence
    subject: dict[str, str]
    start_us: int
    end_us: int
    first_flagged_us: int
    last_flagged_us: int
    observed: Observed
    inference: str
    action: str
    count: int
    evidence: tuple[Evidence, ...]
    top: tuple[TopEntry, ...] = ()


def findings(engine: Engine, rule: Rule, judged: Judged) -> Iterator[Finding]:
    """Yield a finding for each episode. Raises RuleFault."""
    if not judged.episodes:
        return
    who, asked, table = named_by(engine), named_by(engine, rule.finding.who), evidence_table(rule.id)
    with running(rule, _PART):
        # Asked several times, and dear to find among all events.
        named = f"{who or 'NULL'} AS who, {asked or 'NULL'} AS asked"  # incidents ask who, whatever the rule
        engine.make_table(table, f"SELECT {_KEPT}, {named}, {_UNSERVED} FROM ({judged.evidence_sql})")
    facts = {row["run"]: row for row in engine.select(_facts_sql(table)).to_pylist()}
    lines: dict[int, list[Evidence]] = {}
    for row in engine.select(_lines_sql(table)).to_pylist():
        lines.setdefault(row["run"], []).append(Evidence(row["file"], row["line"], row["item"]))
    hits = {index: row["hits"] for index, row in facts.items()}
    top = top_of(engine, asked, top_sql(table, column="asked"), hits) if asked else {}
    sentences = Sentences(rule)
    for index, episode in enumerate(judged.episodes):
        fact = facts.get(index)
        if fact is None:
            raise RuleFault(rule, _PART, "no event in a flagged window counts against the subject")
        measured = {f"p50_{rule.finding.measure_name}": finite(fact["p50"])} if rule.finding.measure_name else {}
        observed = episode.observed | measured
        yield Finding(
            rule=rule.id,
            run=index,
            severity=episode.severity,
            confidence=Confidence.LIKELY if sentences.corroborated(observed) else Confidence.POSSIBLE,
            subject=_known(episode),
            start_us=fact["first_us"] // MINUTE_US * MINUTE_US,
            end_us=(fact["last_us"] // MINUTE_US + 1) * MINUTE_US,
            first_flagged_us=episode.first_flagged * MINUTE_US,
            last_flagged_us=episode.last_flagged * MINUTE_US,
            observed=observed,
            inference=sentences.inference(observed),
            action=sentences.action(observed),
            count=fact["hits"],
            evidence=tuple(lines[index]),
            top=top.get(index, ()),
        )


def _known(episode: Episode) -> dict[str, str]:
    return {key: value for key, value in episode.subject.items() if value != ""}


def named_by(engine: Engine, asked: str | None = None) -> str | None:
    """Return the column that says who is behind an event: the first that the run carries, the asked one before all."""
    return next((name for name in (asked, *_WHO) if name and engine.carries(name)), None)


def top_of(engine: Engine, column: str, sql: str, hits: dict[int, int]) -> dict[int, tuple[TopEntry, ...]]:
    """Return who stands behind most of the evidence (`top_sql`), each with a share of the `hits` and tokens, by its key."""
    found: dict[int, tuple[TopEntry, ...]] = {}
    for row in engine.select(sql).to_pylist():
        key, who, count, tokens = row.values()
        found[key] = (*found.get(key, ()), TopEntry(column, who, count / hits[key], finite(tokens)))
    return found


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    """Return findings as reports list them: by severity, then by how much counts against the subject."""

    def badness(finding: Finding) -> tuple[int, int, int, str, tuple[tuple[str, str], ...]]:
        return -finding.severity.rank, -finding.count, finding.start_us, finding.rule, tuple(sorted(finding.subject.items()))

    return sorted(found, key=badness)
