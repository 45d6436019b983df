"""Every rule's alert against the classifier, minute by minute, judged by the real promtool."""

from pathlib import Path

import promql_parser as promql
import pytest
from tests.promtool.evaluator import Evaluator, increase, scraped
from tests.promtool.proofs import NIGHT, WITH_ALERT, Judged, Mutant, Opened, every_rule, mutants_of, samples, survivors

from quietburn.alerts.firing import firing_minutes, runs
from quietburn.alerts.groups import AlertRule
from quietburn.alerts.promql import metrics_in
from quietburn.alerts.prove import Subject, Verdict, expect
from quietburn.metrics.samples import Frame
from quietburn.ruleset.alert import AlertGrade, seconds
from quietburn.ruleset.rule import Rule

OFF_GRID_S = 7
OWN = [pytest.param(rule_id, path, id=f"{rule_id}-{path.stem}") for rule_id in WITH_ALERT for path in samples(rule_id)]
ALL = [*OWN, *(pytest.param(rule_id, NIGHT, id=f"{rule_id}-night") for rule_id in WITH_ALERT)]

# Mutants that say the same as the alert for every ledger there can be: (rule, mutant, reason).
EQUIVALENT: tuple[tuple[str, str, str], ...] = (
    (
        "probe-spend-share", "without `unless max(quietburn_hourly_token_cap{})`",
        "the only cap that a ledger brings itself is the lab's, and a twentieth of it lies under min_tokens",
    ),
)


def test_every_rule_has_an_alert_or_a_reason_and_ledgers_to_prove_it_on() -> None:
    assert WITH_ALERT
    for rule in every_rule():
        assert rule.alert.none or (samples(rule.id, "fires") and samples(rule.id, "quiet")), rule.id


def evaluated(judged: Judged, rule_id: str, ledger: Path) -> Opened:
    """Open a ledger, which must have all that the rule needs: its own ones and the short night do."""
    opened = judged(rule_id, ledger)
    assert not opened.lacks
    assert sum(frame.last - frame.first + 1 for frame in opened.frames) > 0, "no minute is judged"
    return opened


# On the grid


@pytest.mark.parametrize(("rule_id", "ledger"), ALL)
def test_on_the_grid_an_alert_fires_in_the_minutes_that_the_classifier_flags_and_in_no_other(
    judged: Judged, rule_id: str, ledger: Path
) -> None:
    opened = evaluated(judged, rule_id, ledger)

    verdicts = opened.prove()

    assert len(verdicts) == len(opened.rule.alert.grades)
    for verdict in verdicts:
        assert (sorted(verdict.missed), sorted(verdict.false)) == ([], [])
        if ledger.stem.endswith("quiet"):
            assert (verdict.flagged, verdict.pages) == (0, 0)
        if ledger.stem == "fires":
            assert verdict.pages > 0, f"{verdict.severity} never fires"


@pytest.mark.parametrize("rule_id", WITH_ALERT)
def test_every_series_that_an_alert_selects_is_made_from_its_own_ledgers(judged: Judged, rule_id: str) -> None:
    fires = [judged(rule_id, ledger) for ledger in samples(rule_id, "fires")]

    made = {one.name for opened in fires for frame in opened.frames for one in opened.series(frame)}

    assert metrics_in(alert.expr for alert in fires[0].alerts) - made == set()


@pytest.mark.parametrize("rule_id", WITH_ALERT)
def test_an_alert_stands_for_a_grade_that_its_rule_has(rule_id: str) -> None:
    rule = next(rule for rule in every_rule() if rule.id == rule_id)

    assert {grade.severity for grade in rule.alert.grades} <= {grade.severity for grade in rule.grades}


# Off the grid


def near_an_edge(verdict: Verdict) -> set[tuple[Subject, int]]:
    """Return evaluations at most one away from where the alert starts or stops, as expected or as it was."""
    near: set[tuple[Subject, int]] = set()
    for fired in (verdict.expected, verdict.actual):
        by_subject: dict[Subject, list[int]] = {}
        for subject, minute in fired:
            by_subject.setdefault(subject, []).append(minute)
        for subject, minutes in by_subject.items():
            for first, last in runs(minutes):
                near |= {(subject, edge + off) for edge in (first, last) for off in (-1, 0, 1)}
    return near


@pytest.mark.parametrize(("rule_id", "ledger"), ALL)
def test_off_the_grid_only_evaluations_at_the_edges_of_a_run_may_differ(
    judged: Judged, rule_id: str, ledger: Path
) -> None:
    """By design values within step / (range - step) of a threshold may differ too; our ledgers keep clear of that."""
    opened = evaluated(judged, rule_id, ledger)

    for verdict in opened.prove(OFF_GRID_S):
        assert sorted((verdict.missed | verdict.false) - near_an_edge(verdict)) == []


# Mutants


@pytest.mark.parametrize("rule_id", WITH_ALERT)
def test_an_alert_with_a_threshold_moved_a_comparison_turned_or_a_clause_dropped_is_found_out(
    judged: Judged, rule_id: str
) -> None:
    """Where a mutant survives, a near miss is missing in fixtures/rules/cases, or it belongs to EQUIVALENT."""
    excused = {name for rule, name, _ in EQUIVALENT if rule == rule_id}
    alive: set[tuple[int, str]] | None = None
    every: set[tuple[int, str]] = set()
    for ledger in [*samples(rule_id, "fires"), *samples(rule_id, "quiet")]:
        opened = judged(rule_id, ledger)
        mutants = mutants_by_grade(opened)
        every |= {(grade, mutant.name) for grade, found in mutants.items() for mutant in found}
        left = {g: [m for m in found if alive is None or (g, m.name) in alive] for g, found in mutants.items()}
        if any(left.values()):
            alive = survivors(opened, left)

    assert every
    assert {name for _, name in alive or ()} == excused


def mutants_by_grade(opened: Opened) -> dict[int, list[Mutant]]:
    return {index: mutants_of(grade.expr, opened.values) for index, grade in enumerate(opened.rule.alert.grades)}


def test_mutants_move_thresholds_turn_comparisons_and_drop_clauses_of_either_side(judged: Judged) -> None:
    plain = judged("failover-too-late", samples("failover-too-late", "quiet")[0])
    opened = judged("empty-but-billed", samples("empty-but-billed", "quiet")[0])

    ticket = mutants_of(plain.rule.alert.grades[1].expr, plain.values)

    counted = '(increase(quietburn_events_total{rule="late-failover"}[1h]))'
    assert [(m.name, m.expr) for m in ticket] == [
        ("min_late doubled", f"sum by (route, backend) {counted} > 6 - 0.5"),
        ("min_late halved", f"sum by (route, backend) {counted} > 1.5 - 0.5"),
        ("`> 3 - 0.5` turned", f"(sum by (route, backend){counted} < 3 - 0.5)"),
    ]
    page = [m.name.split("(")[0] for m in mutants_of(opened.rule.alert.grades[0].expr, opened.values)]
    assert [name for name in page if name.startswith("without")] == ["without `and ", "without `"]
    assert sum(name.endswith("turned") for name in page) == 3


# Ranges that leave out their left edge (Prometheus 3)


def differing(opened: Opened, *, held: bool, left_open: bool) -> list[tuple[str, Subject, int]]:
    """Return the evaluations at which the alerts, evaluated here, do not fire as the classifier says."""
    found: list[tuple[str, Subject, int]] = []
    for frame in opened.frames:
        evaluator = Evaluator(scraped(opened.series(frame), frame.minutes * 60, held=held), left_open)
        for alert, grade, flagged in zip(opened.alerts, opened.rule.alert.grades, opened.flagged, strict=True):
            firing = expect(alert, grade, flagged, frame).firing
            expected = {(subject, m) for subject, minutes in firing.items() for m in minutes if m >= frame.first}
            fired = fired_here(opened.rule, alert, grade, evaluator, frame)
            found += [(alert.labels["severity"], *where) for where in sorted(expected ^ fired)]
    return found


def fired_here(
    rule: Rule, alert: AlertRule, grade: AlertGrade, evaluator: Evaluator, frame: Frame
) -> set[tuple[Subject, int]]:
    expression = promql.parse(alert.expr)
    true_at: dict[Subject, list[int]] = {}
    for minute in range(frame.base + 1, frame.last + 1):
        for labels in evaluator.at(expression, frame.second(minute)):
            subject = tuple((key, dict(labels)[key]) for key in rule.rule.subject if key in dict(labels))
            true_at.setdefault(subject, []).append(minute)
    hold, keep = seconds(grade.hold), seconds(grade.keep_firing_for)
    return {
        (subject, minute)
        for subject, minutes in true_at.items()
        for minute in firing_minutes(minutes, hold_s=hold, keep_s=keep, last=frame.last)
        if minute >= frame.first
    }


@pytest.mark.parametrize(("rule_id", "ledger"), OWN)
def test_samples_held_for_a_second_say_the_same_with_and_without_the_left_edge_of_their_ranges(
    judged: Judged, rule_id: str, ledger: Path
) -> None:
    opened = judged(rule_id, ledger)

    assert differing(opened, held=True, left_open=False) == []
    assert differing(opened, held=True, left_open=True) == []


def test_without_the_hold_a_left_open_range_loses_what_happened_in_its_first_step(judged: Judged) -> None:
    lost = (
        differing(judged(rule_id, ledger), held=False, left_open=True)
        for rule_id in WITH_ALERT
        for ledger in samples(rule_id, "fires")
    )

    assert any(lost)


def test_increase_extrapolates_as_prometheus_does() -> None:
    # +10 every 60 s, evaluated on the grid: 300 s sampled, nothing to add (alert-facts 3.5).
    on_grid = list(range(0, 301, 60))
    assert increase(on_grid, [100.0 + t / 6 for t in on_grid], 0, 300) == pytest.approx(50)
    # Off the grid by 7 s: 240 s sampled; 7 s to the start and 53 s to the end are both near enough to add.
    off_grid = list(range(7, 300, 60))
    assert increase(off_grid, [100.0 + t / 6 for t in off_grid], 0, 300) == pytest.approx(50)
    # A counter that starts at 0 within the window is never taken below 0.
    assert increase([100, 160, 220], [0.0, 5.0, 10.0], 0, 220) == pytest.approx(10)
    # Further away than 1.1 intervals: half an interval is added on that side. 60 s sampled, +30 at each side.
    assert increase([120, 180], [50.0, 60.0], 0, 300) == pytest.approx(20)
