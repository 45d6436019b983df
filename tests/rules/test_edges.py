"""Every parameter of every rule on both sides of its threshold, and on it."""

import re

import pytest
from tests.rules.edges import EDGES, QUIET, Edge
from tests.rules.helpers import FIXTURES, RULE_IDS, Opened, expected, judged_again, rule

from quietburn.analysis.run import Analysis
from quietburn.evaluate.rules import Outcome, RuleResult


def edges_of(rule_id: str) -> tuple[Edge, ...]:
    """Return a rule's edges: those of its case, and of an older rule those of tests/rules/edges.py."""
    made = (FIXTURES / rule_id / "expected.json").is_file()
    return (*EDGES.get(rule_id, ()), *(expected(rule_id).edges if made else ()))


CASES = [
    pytest.param(rule_id, edge, id=f"{rule_id}-{edge.parameter}-{edge.scenario}")
    for rule_id in RULE_IDS
    for edge in edges_of(rule_id)
]


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
    found = {number: verdict(opened(rule_id, edge.ledger), edge, number) for number in wanted}

    assert len(wanted) >= 2
    assert found == wanted


def verdict(analysis: Analysis, edge: Edge, number: float) -> str:
    """Return the severity of an edge's scenario with the parameter set to this number."""
    moved = {**edge.settings, edge.parameter: number}
    result = judged_again(analysis, moved)
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
