"""`explains` in rule files: checked when rules are loaded, followed to its ends for incidents."""

import pytest
from tests.rules.helpers import RULE_IDS, rule

from quietburn.errors import ConfigError
from quietburn.ruleset.explains import check_explains, explained_by
from quietburn.ruleset.rule import Rule


def explaining(rule_id: str, *others: str) -> Rule:
    judged = rule(rule_id)
    return judged.model_copy(update={"rule": judged.rule.model_copy(update={"explains": others})})


def test_an_explained_rule_that_does_not_exist_is_named_with_the_nearest() -> None:
    rules = [explaining("late-but-200", "success-hides-outages"), explaining("success-hides-outage")]
    with pytest.raises(ConfigError) as problem:
        check_explains(rules)
    assert str(problem.value).startswith("rule late-but-200: explains names 'success-hides-outages', which is not a rule")
    assert "success-hides-outage'" in str(problem.value).partition("not a rule")[2]


def test_rules_that_explain_each_other_in_a_circle_are_refused() -> None:
    rules = [
        explaining("late-but-200", "saturation"), explaining("saturation", "stuck-worker"),
        explaining("stuck-worker", "late-but-200"),
    ]
    with pytest.raises(ConfigError, match="explains is circular: ") as problem:
        check_explains(rules)
    told = str(problem.value)
    assert any(
        f"{a}, which explains {b}" in told
        for a, b in (("late-but-200", "saturation"), ("saturation", "stuck-worker"), ("stuck-worker", "late-but-200"))
    )
    with pytest.raises(ConfigError, match="circular"):
        check_explains([explaining("saturation", "saturation")])


def test_a_rule_explains_what_the_rules_that_it_explains_do() -> None:
    rules = [
        explaining("stuck-worker", "late-but-200"), explaining("late-but-200", "success-hides-outage"),
        explaining("success-hides-outage"),
    ]
    assert explained_by(rules) == {
        "stuck-worker": {"late-but-200", "success-hides-outage"}, "late-but-200": {"success-hides-outage"},
        "success-hides-outage": set(),
    }


def test_the_shipped_rules_explain_rules_that_exist_and_in_no_circle() -> None:
    check_explains([rule(rule_id) for rule_id in RULE_IDS])
