"""What the tests of rules share: fixtures from disk, reports reduced to what is promised, binding."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from fixtures.rules.edges import Edge

from quietburn.analysis.run import Analysis, Request, analyze
from quietburn.common.resources import rule_files
from quietburn.dialects.mapping import Mapping as Dialect
from quietburn.evaluate.rules import RuleResult, classify
from quietburn.report.model import FindingReport, Report
from quietburn.ruleset.files import Values, load_rule, parameter_values, parse_settings
from quietburn.ruleset.rule import Rule

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "rules"
FIXTURES = ROOT / "fixtures" / "rules"
RULE_IDS = [path.stem for path in rule_files()]


@dataclass(frozen=True)
class Expected:
    """A rule's expected.json."""

    findings: dict[str, list[dict[str, Any]]]
    scenarios: dict[str, dict[str, tuple[int, int]]]
    flips: list[dict[str, Any]]
    settings: dict[str, float]
    edges: tuple[Edge, ...]


@cache
def rule(rule_id: str) -> Rule:
    return load_rule(RULES / f"{rule_id}.toml")


@cache
def expected(rule_id: str) -> Expected:
    content = json.loads((FIXTURES / rule_id / "expected.json").read_text(encoding="utf-8"))
    scenarios = {name: {s: (a, b) for s, (a, b) in places.items()} for name, places in content["scenarios"].items()}
    edges = tuple(Edge(**edge | {"number": Fraction(edge["number"])}) for edge in content.get("edges", ()))
    return Expected(content["findings"], scenarios, content["flips"], content["settings"], edges)


def ledger_path(rule_id: str, ledger: str) -> Path:
    return FIXTURES / rule_id / f"{ledger}.jsonl"


def ledger_lines(rule_id: str, ledger: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ledger_path(rule_id, ledger).read_text(encoding="utf-8").splitlines()]


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def only(rule_id: str, settings: tuple[str, ...] = (), mapping: Dialect | None = None) -> Request:
    """Return the request for one rule with the numbers that its ledgers take for granted."""
    usual = tuple(f"{rule_id}.{name}={number}" for name, number in expected(rule_id).settings.items())
    return Request(only=(rule_id,), settings=(*usual, *settings), mapping=mapping)


@cache
def report_on(rule_id: str, ledger: str) -> Report:
    """Judge a fixture by its rule alone."""
    return analyze([str(ledger_path(rule_id, ledger))], only(rule_id))


Opened = Callable[[str, str], Analysis]


def judged_again(analysis: Analysis, numbers: Mapping[str, float]) -> RuleResult:
    """Judge an open ledger of one rule again, with these numbers in place of the usual ones."""
    ((judged, usual),) = analysis.rules
    settings = parse_settings((f"{judged.id}.{name}={number!r}" for name, number in numbers.items()), (judged,))
    (result,) = classify(analysis.engine, [(judged, usual | settings.get(judged.id, {}))])
    return result


def in_time(report: Report) -> list[FindingReport]:
    """Return the findings of a report from the first to the last."""
    return sorted(report.findings, key=lambda f: (f.alert_window.start, sorted(f.subject.items())))


def by_scenario(ledger: str, result: RuleResult) -> list[tuple[str, str]]:
    """Return (scenario, severity) of each finding, by where its evidence lies."""
    places = expected(result.rule.id).scenarios[ledger]
    found = []
    for finding in result.findings:
        names = {name for e in finding.evidence for name, (first, last) in places.items() if first <= e.line <= last}
        found.append((" and ".join(sorted(names)), finding.severity.value))
    return sorted(found)


def without(fields: tuple[str, ...], lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key not in fields} for line in lines]


def defaults(judged: Rule) -> Values:
    """Return the numbers that a rule takes where nothing is configured."""
    return parameter_values(judged, dialects=frozenset(), configured={}, given={})
