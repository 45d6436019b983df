"""Incidents: findings that overlap in time and share a cause, and what they cost together.

Two findings within ten minutes share a cause where one's rule explains the other's, where they share
evidence, or where they are of one rule and nothing explains them. Incidents are what such pairs connect.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from quietburn.common.limits import MINUTE_US
from quietburn.engine.base import Engine
from quietburn.evaluate.episodes import finite
from quietburn.evaluate.findings import Finding, TopEntry, evidence_table, named_by, top_of, top_sql
from quietburn.ruleset.explains import Explained
from quietburn.ruleset.severity import Severity

_NEAR_US = 10 * MINUTE_US
_LEAST_SHARED = 0.5  # of the flagged attempts of the smaller finding
_PLACES, _EVENTS, _OF_INCIDENT, _TOGETHER = "finding_places", "finding_events", "incident_findings", "incident_events"
Pair = tuple[int, int]  # places in the list of findings, the lower one first


@dataclass(frozen=True)
class Cost:
    """What an incident cost: requests that were not served, tokens (None where no event says), and who was behind it."""

    requests: int = 0
    tokens: float | None = None
    who: tuple[TopEntry, ...] = ()


@dataclass(frozen=True)
class Incident:
    """Findings with one cause, by their places in the list of findings, the cause first; times in UTC microseconds, half open."""

    places: tuple[int, ...]
    severity: Severity
    start_us: int
    end_us: int
    cost: Cost = field(default_factory=Cost)

    @property
    def cause(self) -> int:
        """Return the place of the finding that explains most of the others."""
        return self.places[0]


def incidents(engine: Engine, findings: Sequence[Finding], explained: Explained) -> list[Incident]:
    """Return the incidents of some findings, the worst first, each with its cost."""
    if not findings:
        return []
    _gather_evidence(engine, findings)
    groups = group(findings, explained, _shared(engine) if len(findings) > 1 else {})
    costs = _costs(engine, groups)
    found = [_incident(findings, places, cost) for places, cost in zip(groups, costs, strict=True)]
    return sorted(found, key=lambda i: (-i.severity.rank, -i.cost.requests, -(i.cost.tokens or 0), i.start_us, i.places))


def group(findings: Sequence[Finding], explained: Explained, shared: Mapping[Pair, int]) -> list[tuple[int, ...]]:
    """Return which findings are one incident, by their places, the cause first.

    `shared` counts the attempts that two findings have in common.
    """
    reasons: set[Pair] = set()  # cause and consequence
    alike: list[Pair] = []
    links: list[Pair] = []
    for a, b in _near(findings):
        found = {(x, y) for x, y in ((a, b), (b, a)) if _explains(findings[x], findings[y], explained)}
        reasons |= found
        if found or shared.get((a, b), 0) >= _LEAST_SHARED * min(findings[a].count, findings[b].count):
            links.append((a, b))
        elif findings[a].rule == findings[b].rule:
            alike.append((a, b))
    # What has a cause of its own says nothing about the cause of the next finding of its rule.
    consequences = {effect for _, effect in reasons}
    links += [pair for pair in alike if not consequences.intersection(pair)]
    return [_cause_first(findings, places, reasons) for places in _connected(len(findings), links)]


def _near(findings: Sequence[Finding]) -> Iterator[Pair]:
    """Yield the pairs that overlap within ten minutes."""
    open_places: list[int] = []
    for place in sorted(range(len(findings)), key=lambda place: findings[place].start_us):
        start = findings[place].start_us
        open_places = [other for other in open_places if findings[other].end_us + _NEAR_US >= start]
        yield from ((min(place, other), max(place, other)) for other in open_places)
        open_places.append(place)


def _explains(cause: Finding, effect: Finding, explained: Explained) -> bool:
    """Whether a finding explains another: its rule does, both are about one place, and it came in time.

    What is over can't follow from what begins later.
    """
    in_time = cause.start_us <= effect.end_us
    return in_time and _of_one_place(cause, effect) and effect.rule in explained.get(cause.rule, frozenset())


def _of_one_place(a: Finding, b: Finding) -> bool:
    """Whether two findings name one backend, whatever it is asked for, or agree on all that both name of their subjects."""
    backend = a.subject.get("backend")
    if backend is not None and backend == b.subject.get("backend"):
        return True
    return all(b.subject.get(key, value) == value for key, value in a.subject.items())


def _connected(count: int, links: Iterable[Pair]) -> list[list[int]]:
    """Return the connected components of places that links join, in order of their first."""
    leader = list(range(count))

    def first(place: int) -> int:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    for a, b in links:
        low, high = sorted((first(a), first(b)))
        leader[high] = low
    groups: dict[int, list[int]] = {}
    for place in range(count):
        groups.setdefault(first(place), []).append(place)
    return list(groups.values())


def _cause_first(findings: Sequence[Finding], places: list[int], reasons: set[Pair]) -> tuple[int, ...]:
    """Return places with the cause in front: what explains most of the others, or what explains that in turn.

    Ties go to severity, then to the start.
    """

    def rank(place: int) -> tuple[int, int, int, int]:
        explains = sum((place, other) in reasons for other in places)
        return -explains, -findings[place].severity.rank, findings[place].start_us, place

    cause = min(places, key=rank)
    passed = {cause}
    while above := [place for place in places if (place, cause) in reasons and place not in passed]:
        cause = min(above, key=rank)
        passed.add(cause)
    return cause, *(place for place in places if place != cause)


def _incident(findings: Sequence[Finding], places: tuple[int, ...], cost: Cost) -> Incident:
    own = [findings[place] for place in places]
    return Incident(
        places=places,
        severity=max((finding.severity for finding in own), key=lambda severity: severity.rank),
        start_us=min(finding.start_us for finding in own),
        end_us=max(finding.end_us for finding in own),
        cost=cost,
    )


# What the engine is asked


def _gather_evidence(engine: Engine, findings: Sequence[Finding]) -> None:
    """Make a table of what counts in each finding: finding (its place), event_id, tokens, who, unserved."""
    places = range(len(findings))
    columns = {"finding": places, "rule": [f.rule for f in findings], "run": [f.run for f in findings]}
    engine.with_rows(_PLACES, pa.table({name: pa.array(values) for name, values in columns.items()}))
    parts = (
        f"SELECT p.finding, e.event_id, e.tokens, e.who, e.unserved FROM {evidence_table(rule)} e "
        f"JOIN {_PLACES} p ON p.rule = '{rule}' AND p.run = e.run"
        for rule in sorted({finding.rule for finding in findings})
    )
    engine.make_table(_EVENTS, " UNION ALL ".join(parts))


def _shared(engine: Engine) -> dict[Pair, int]:
    """Return how many attempts two findings have in common, where they have any."""
    rows = engine.select(
        f"SELECT a.finding AS a, b.finding AS b, count(*) AS n FROM {_EVENTS} a JOIN {_EVENTS} b "
        "ON a.event_id = b.event_id AND a.finding < b.finding GROUP BY a.finding, b.finding"
    ).to_pylist()
    return {(row["a"], row["b"]): row["n"] for row in rows}


def _costs(engine: Engine, groups: Sequence[tuple[int, ...]]) -> list[Cost]:
    """Return what each group cost, over all its events, each counted once."""
    of_incident = [(incident, place) for incident, places in enumerate(groups) for place in places]
    incidents_of, places_of = zip(*of_incident, strict=True)
    engine.with_rows(_OF_INCIDENT, pa.table({"incident": pa.array(incidents_of), "finding": pa.array(places_of)}))
    engine.make_table(
        _TOGETHER,
        f"SELECT DISTINCT i.incident, e.event_id, e.tokens, e.who, e.unserved FROM {_EVENTS} e "
        f"JOIN {_OF_INCIDENT} i ON i.finding = e.finding",
    )
    rows = engine.select(
        "SELECT incident, count(*) AS hits, count(DISTINCT unserved) AS requests, sum(tokens) AS tokens "
        f"FROM {_TOGETHER} GROUP BY incident ORDER BY incident"
    ).to_pylist()
    column = named_by(engine)
    who = top_of(engine, column, top_sql(_TOGETHER, "incident"), {row["incident"]: row["hits"] for row in rows}) if column else {}
    return [Cost(row["requests"], finite(row["tokens"]), who.get(row["incident"], ())) for row in rows]
