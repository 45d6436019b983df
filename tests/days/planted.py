"""A healthy day with a fault planted into it, analyzed by every rule."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fixtures.days.faults import FAULTS
from fixtures.days.healthy import Event, healthy_day

from quietburn.analysis.run import Request, analyze
from quietburn.report.model import FindingReport, Report
from quietburn.ruleset.severity import Severity
from tests.days.test_healthy_day import CONFIG

SEED = 1
# What is kept of the day around a fault: longer than any rule looks back, and what comes after.
BEFORE_S, AFTER_S = 7 * 3600, 3600


@dataclass(frozen=True)
class Found:
    """What the rules found on a day, and the lines of the ledger that a fault was planted into."""

    report: Report
    planted: frozenset[int]

    def worst(self) -> dict[str, Severity]:
        """Return the worst severity of each rule that fired."""
        by_rule: dict[str, Severity] = {}
        for finding in self.report.findings:
            severity = Severity(finding.severity)
            by_rule[finding.rule] = max(severity, by_rule.get(finding.rule, severity), key=lambda each: each.rank)
        return by_rule

    def raised(self) -> dict[str, Severity]:
        """Return the worst severity of each rule that would wake somebody or lie on their desk."""
        return {rule_id: severity for rule_id, severity in self.worst().items() if severity is not Severity.INFO}

    def of(self, rule_id: str) -> list[FindingReport]:
        """Return a rule's findings above info."""
        return [finding for finding in self.report.findings if finding.rule == rule_id and finding.severity != "info"]


@cache
def _healthy() -> tuple[list[Event], list[str]]:
    """Return the healthy events and their lines; nobody may change them."""
    events = healthy_day(SEED)
    return events, [json.dumps(event) for event in events]


def planted_day(rule_id: str | None, folder: Path) -> Found:
    """Plant a rule's fault into the day and analyze the hours around it; None plants nothing, and the day stays whole."""
    healthy, lines = _healthy()
    events = [dict(event) for event in healthy]
    unchanged = {id(event): place for place, event in enumerate(events)}
    kept = list(events)  # an event that a fault removes must live on, or another could get its id
    planted = {id(event) for event in FAULTS[rule_id](events)} if rule_id else set()
    events = _around(planted, sorted(events, key=lambda event: event["ts"]))
    path = folder / "day.jsonl"
    with path.open("w", encoding="utf-8") as ledger:
        for event in events:
            place = unchanged.get(id(event))
            same = place is not None and kept[place] == healthy[place]
            ledger.write((lines[place] if same and place is not None else json.dumps(event)) + "\n")
    report = analyze([str(path)], Request(config=CONFIG, threads=1))
    path.unlink()
    return Found(report, frozenset(line for line, event in enumerate(events, 1) if id(event) in planted))


def _around(planted: set[int], events: list[Event]) -> list[Event]:
    """Return the events around the planted ones; all where nothing is planted."""
    times = [event["ts"] for event in events if id(event) in planted]
    if not times:
        return events
    return [event for event in events if min(times) - BEFORE_S <= event["ts"] <= max(times) + AFTER_S]
