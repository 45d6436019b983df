"""Every parameter of every rule on both sides of its threshold, and on it."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from tests.rules.edges import EDGES, QUIET, Edge
from tests.rules.helpers import FIXTURES, RULE_IDS, expected, ledger_path, only, rule

from quietburn.analysis.run import Analysis, analyzing
from quietburn.evaluate.rules import Outcome, RuleResult, classify
from quietburn.ruleset.files import parse_settings

Opened = Callable[[str, str], Analysis]


def edges_of(rule_id: str) -> tuple[Edge, ...]:
    """Return a rule's edges: those of its case, and of an older rule those of tests/rules/edges.py."""
    made = (FIXTURES / rule_id / "expected.json").is_file()
    return (*EDGES.get(rule_id, ()), *(expected(rule_id).edges if made else ()))


CASES = [
    pytest.param(rule_id, edge, id=f"{rule_id}-{edge.parameter}-{edge.scenario}")
    for rule_id in RULE_IDS
    for edge in edges_of(rule_id)
]


@pytest.fixture(scope="module")
def opened() -> Iterator[Opened]:
    """Reads a rule's ledger once for all numbers that are tried on it."""
    with ExitStack() as stack:
        kept: dict[tuple[str, str], Analysis] = {}

        def open_once(rule_id: str, ledger: str) -> Analysis:
            if (rule_id, ledger) not in kept:
                request = replace(only(rule_id), threads=1)
                kept[rule_id, ledger] = stack.enter_context(analyzing([str(ledger_path(rule_id, ledger))], request))
            return kept[rule_id, ledger]

        yield open_once


def turned_by(rule_id: str, parameter: str) -> set[str]:
    """Return the severities whose flag names a parameter; none where the rule's events alone depend on it."""
    flags = {grade.severity.value: grade.flag for grade in rule(rule_id).grades}
    return {severity for severity, flag in flags.items() if re.search(rf"\${parameter}\b", flag)}


@pytest.mark.parametrize("rule_id", RULE_IDS)
def test_every_parameter_of_every_rule_has_an_edge_and_one_in_each_grade_that_names_it(rule_id: str) -> None:
    edges = edges_of(rule_id)
    missing = set(rule(rule_id).parameters) - {edge.parameter for edge in edges}

    assert not missing, f"give fixtures/rules/cases/{rule_id.replace('-', '_')}.py an edge for {', '.join(sorted(missing))}"
    assert {edge.parameter for edge in edges} == set(rule(rule_id).parameters)
    for parameter in rule(rule_id).parameters:
        turned = {severity for e in edges if e.parameter == parameter for severity in {e.below} ^ {e.above}}
        assert turned
        assert turned_by(rule_id, parameter) <= turned, parameter


@pytest.mark.parametrize(("rule_id", "edge"), CASES)
def test_a_verdict_turns_exactly_where_a_parameter_passes_what_the_ledger_holds(
    rule_id: str, edge: Edge, opened: Opened
) -> None:
    least, most = rule(rule_id).parameters[edge.parameter].range
    wanted = {number: then for number, then in edge.verdicts.items() if least <= number <= most}  # no share is above 1
    found = {number: verdict(opened(rule_id, edge.ledger), rule_id, edge, number) for number in wanted}

    assert len(wanted) >= 2
    assert found == wanted


def verdict(analysis: Analysis, rule_id: str, edge: Edge, number: float) -> str:
    """Return the severity of an edge's scenario with the parameter set to this number."""
    moved = {**edge.settings, edge.parameter: number}
    settings = parse_settings((f"{rule_id}.{name}={value!r}" for name, value in moved.items()), (rule(rule_id),))
    ((judged, usual),) = analysis.rules
    (result,) = classify(analysis.engine, [(judged, usual | settings[rule_id])])
    assert result.outcome in {Outcome.FIRED, Outcome.QUIET}
    severities = severities_in(result, edge.scenario, edge.ledger)
    assert len(severities) <= 1
    return next(iter(severities), QUIET)


def severities_in(result: RuleResult, scenario: str, ledger: str) -> set[str]:
    """Return the severities of the findings that name lines of a scenario."""
    first, last = expected(result.rule.id).scenarios[ledger][scenario]
    return {
        finding.severity.value
        for finding in result.findings
        if any(first <= evidence.line <= last for evidence in finding.evidence)
    }
