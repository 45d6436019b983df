"""A rule that was released keeps its meaning until its revision is raised."""

import tomllib
from typing import Any

import pytest
from tests.rules.helpers import RULES

from quietburn.ruleset.files import shipped_rules
from quietburn.ruleset.lock import LOCK_FILE, Locked, lock_text, meaning_of, read_lock, unraised
from quietburn.ruleset.rule import Rule

RULE = "late-but-200"


def content() -> dict[str, Any]:
    return tomllib.loads((RULES / f"{RULE}.toml").read_text(encoding="utf-8"))


def released() -> dict[str, Locked]:
    rule = Rule.model_validate(content())
    return {RULE: Locked(revision=rule.rule.revision, meaning=meaning_of(rule))}


def test_no_rule_means_something_else_than_its_released_revision_did() -> None:
    locked = read_lock(RULES / LOCK_FILE)
    refused = unraised(shipped_rules(), locked)

    assert locked, "rules/rules.lock is gone; restore the last committed one"
    assert [f"rules/{name}.toml: rule.revision {words}" for name, words in refused.items()] == []


def test_the_lock_is_read_as_it_is_written(tmp_path: Any) -> None:
    rule = Rule.model_validate(content())
    (tmp_path / LOCK_FILE).write_text(lock_text([rule]), encoding="utf-8")

    assert read_lock(tmp_path / LOCK_FILE) == released()


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("parameters", "late_share", {"default": 0.06, "unit": "share", "meaning": "least share of 2xx that is late"}),
        ("minutes", "late", "sum(CASE WHEN in_request AND is_late THEN 1 ELSE 0 END)"),
        ("finding", "evidence", "in_request AND is_late"),
        ("rule", "needs", ["ts", "status", "latency_ms", "deadline_ms", "stream"]),
        ("alert", "name", "LLMGatewayLater"),
    ],
)
def test_another_meaning_under_a_released_revision_is_refused_until_the_revision_is_raised(
    table: str, key: str, value: object
) -> None:
    changed = content()
    changed[table][key] = value
    revision = changed["rule"]["revision"]

    refused = unraised([Rule.model_validate(changed)], released())
    changed["rule"]["revision"] = revision + 1

    assert refused == {RULE: f"was released with another meaning; set it to {revision + 1}, or revert the change"}
    assert unraised([Rule.model_validate(changed)], released()) == {}


def test_other_words_and_another_layout_are_the_same_meaning() -> None:
    changed = content()
    changed["rule"]["title"] = "Other words"
    changed["finding"]["action"] = "Do something else."
    changed["parameters"]["late_share"]["meaning"] = "other words"
    changed["alert"]["grades"][0]["description"] = "Other words."
    changed["runbook"]["never"] = "Other words."
    changed["minutes"]["late"] = changed["minutes"]["late"].replace(" WHEN ", "\n  WHEN ")

    assert unraised([Rule.model_validate(changed)], released()) == {}


def test_a_revision_below_the_released_one_is_refused() -> None:
    rule = Rule.model_validate(content())
    later = {RULE: Locked(revision=rule.rule.revision + 2, meaning="x")}

    assert unraised([rule], later) == {
        RULE: f"is below {rule.rule.revision + 2}, which was released; set it to {rule.rule.revision + 3}"
    }
