"""Alerts with minutes of their own: they hold within what the rule flags, and for each finding of their grade."""

import re
from pathlib import Path

import pytest
from tests.promtool.proofs import NIGHT, Judged, Opened, every_rule, samples
from tests.rules.helpers import report_on

from quietburn.alerts.prove import Subject, flagged_by_subject, window_grade
from quietburn.common.columns import BY_NAME, STORED_AS
from quietburn.common.timerange import iso
from quietburn.ruleset.rule import Rule

OWN = {rule.id: rule for rule in every_rule() if any(grade.minutes for grade in rule.alert.grades)}
LEDGERS = [
    pytest.param(rule_id, path, id=f"{rule_id}-{path.stem}") for rule_id in OWN for path in (*samples(rule_id), NIGHT)
]


def test_there_are_such_alerts() -> None:
    assert OWN


@pytest.mark.parametrize("rule_id", OWN)
def test_only_a_rule_that_reads_the_whole_ledger_has_an_alert_with_minutes_of_its_own(rule_id: str) -> None:
    assert OWN[rule_id].classify


@pytest.mark.parametrize(("rule_id", "ledger"), LEDGERS)
def test_an_alert_holds_only_in_minutes_that_the_rule_flags(judged: Judged, rule_id: str, ledger: Path) -> None:
    opened = judged(rule_id, ledger)
    assert not opened.lacks, "a ledger that can't be evaluated shows nothing"

    for minutes, flagged in zip(opened.flagged, flagged_by_grade(opened), strict=True):
        for subject, own in minutes.items():
            assert set(own) <= set(flagged.get(subject, ())), subject


def flagged_by_grade(opened: Opened) -> list[dict[Subject, list[int]]]:
    """Return for each alert the minutes that the rule flags with the same grade, whatever a worse one says."""
    return [
        flagged_by_subject(
            opened.engine, opened.rule, window_grade(opened.rule, alert), opened.values, opened.reduction
        )
        for alert in opened.rule.alert.grades
    ]


@pytest.mark.parametrize("rule_id", OWN)
def test_each_finding_of_a_grade_with_an_alert_has_a_minute_in_which_it_holds(judged: Judged, rule_id: str) -> None:
    for path in samples(rule_id, "fires"):
        opened = judged(rule_id, path)
        for alert, minutes in zip(OWN[rule_id].alert.grades, opened.flagged, strict=True):
            for finding in report_on(rule_id, path.stem).findings:
                if finding.severity == alert.severity.value:
                    held = minutes.get(tuple(finding.subject.items()), [])
                    assert any(in_window(finding.alert_window.start, m, finding.alert_window.end) for m in held), finding


def in_window(first: str, minute: int, last: str) -> bool:
    """Whether a minute since 1970 lies between two times, both counted."""
    return first <= (iso(minute * 60_000_000) or "") <= last


@pytest.mark.parametrize("rule_id", OWN)
def test_the_minutes_of_an_alert_read_only_columns_that_the_rule_declares(rule_id: str) -> None:
    declared = {STORED_AS.get(name, name) for name in OWN[rule_id].rule.fields} | {"route", "backend"}

    assert given_columns(OWN[rule_id]) <= declared


def given_columns(rule: Rule) -> set[str]:
    """Return the columns of a ledger that the minutes of a rule's alerts name."""
    text = " ".join(grade.minutes or "" for grade in rule.alert.grades)
    return set(re.findall(r"[a-z_][a-z0-9_]*", text)) & set(BY_NAME)
