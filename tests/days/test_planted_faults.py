"""Each fault, planted into one healthy day, is found by its rule, and by no other but for a stated cause."""

from pathlib import Path

import pytest
from fixtures.days.faults import FAULTS

from quietburn.ruleset.files import shipped_rules
from tests.days.planted import planted_day

# Which rule fires besides (above info), by fault, and why it has to.
ALLOWED: dict[str, dict[str, str]] = {
    "tokens-without-users": {"probe-spend-share": "tokens that checks alone spend are tokens that checks spend"},
    "queue-wait-past-deadline": {"queue-over-budget": "a wait past the deadline is a wait past a quarter of it"},
    "stuck-worker": {"healthy-but-silent": "a hung backend answers nobody while its checks pass and others answer"},
    "queue-cause-unclear": {"healthy-but-silent": "a busy backend that gives no output answers nobody, whatever the cause"},
}


def test_every_rule_has_a_fault() -> None:
    assert sorted(FAULTS) == sorted(rule.id for rule in shipped_rules())


def test_nothing_is_found_where_nothing_is_planted(tmp_path: Path) -> None:
    found = planted_day(None, tmp_path)

    assert found.report.not_evaluated == []
    assert found.report.errored == []
    assert found.raised() == {}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_planted_fault_is_found_by_its_rule_and_by_no_other(fault: str, tmp_path: Path) -> None:
    loudest = {rule.id: rule.rule.severity for rule in shipped_rules()}

    found = planted_day(fault, tmp_path)

    assert found.report.errored == []
    assert found.raised().get(fault) == loudest[fault]
    # A removal is judged by what the rule names: the probes that were left alone (tokens-without-users),
    # the calls that ran while no check was answered (readiness-gap), what the node still did.
    for finding in found.of(fault):
        named = [evidence.line in found.planted for evidence in finding.evidence]
        # A window holds the day's own single troubles too, but most of what is named must be the fault.
        assert sum(named) > len(named) / 2, finding
    assert set(found.raised()) - {fault} == set(ALLOWED.get(fault, {}))
