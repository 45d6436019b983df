"""Findings: episodes with bounded evidence, who stands behind them, and sentences."""

from collections.abc import Iterator
from dataclasses import dataclass

from quietburn.engine.base import Engine
from quietburn.episodes import Episode, Judged, Observed, finite
from quietburn.limits import MINUTE_US
from quietburn.ruleset.guard import RuleFault, running
from quietburn.ruleset.model import Rule
from quietburn.ruleset.severity import Severity
from quietburn.ruleset.wording import Sentences

MAX_EVIDENCE = 20
_TOP = 3
_WHO = ("client", "tenant", "model", "backend")  # who is named: the first of these that the run carries
_PART = "finding.evidence"  # its key in a rule file
_EVIDENCE = "rule_evidence"
_KEPT = "run, file_order, file, line, item, ts_us, tokens, measure"
_FACTS_SQL = (
    "SELECT run, count(*) AS hits, min(ts_us) AS first_us, max(ts_us) AS last_us, median(measure) AS p50 "
    f"FROM {_EVIDENCE} GROUP BY run"
)
_LINES_SQL = (
    "SELECT run, file, line, item FROM (SELECT run, file, line, item, row_number() OVER "
    f"(PARTITION BY run ORDER BY ts_us, file_order, line, item) AS place FROM {_EVIDENCE}) "
    f"WHERE place <= {MAX_EVIDENCE} ORDER BY run, place"
)
_TOP_SQL = (
    "SELECT run, who, n, tokens FROM (SELECT *, row_number() OVER (PARTITION BY run ORDER BY n DESC, who) AS place "
    f"FROM (SELECT run, who, count(*) AS n, sum(tokens) AS tokens FROM {_EVIDENCE} WHERE who IS NOT NULL GROUP BY run, who)) "
    f"WHERE place <= {_TOP} ORDER BY run, place"
)


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
    """One subject's episode; times in UTC microseconds, half open."""

    rule: str
    severity: Severity
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
    who = next((name for name in _WHO if engine.carries(name)), None)
    with running(rule, _PART):
        # Asked three times, and dear to find among all events.
        engine.make_table(_EVIDENCE, f"SELECT {_KEPT}, {who or 'NULL'} AS who FROM ({judged.evidence_sql})")
    facts = {row["run"]: row for row in engine.select(_FACTS_SQL).to_pylist()}
    lines: dict[int, list[Evidence]] = {}
    for row in engine.select(_LINES_SQL).to_pylist():
        lines.setdefault(row["run"], []).append(Evidence(row["file"], row["line"], row["item"]))
    top = _top(engine, who, {index: row["hits"] for index, row in facts.items()}) if who else {}
    sentences = Sentences(rule)
    for index, episode in enumerate(judged.episodes):
        fact = facts.get(index)
        if fact is None:
            raise RuleFault(rule, _PART, "no event counts against the subject in a window that is flagged")
        measured = {f"p50_{rule.finding.measure_name}": finite(fact["p50"])} if rule.finding.measure_name else {}
        observed = episode.observed | measured
        yield Finding(
            rule=rule.id,
            severity=episode.severity,
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


def _top(engine: Engine, column: str, hits: dict[int, int]) -> dict[int, tuple[TopEntry, ...]]:
    """Return for each episode the three who stand behind most of its evidence, each with a share and tokens."""
    found: dict[int, tuple[TopEntry, ...]] = {}
    for row in engine.select(_TOP_SQL).to_pylist():
        entry = TopEntry(column, row["who"], row["n"] / hits[row["run"]], finite(row["tokens"]))
        found[row["run"]] = (*found.get(row["run"], ()), entry)
    return found
