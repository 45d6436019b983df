"""Precision and recall over nights made by hand, with numbers worked out by hand."""

import pytest
from tests.precision.matching import Case
from tests.precision.nights import FAULT, HEALTHY, Night
from tests.precision.outcomes import Found, Outcome, Span
from tests.precision.page import page
from tests.precision.tallies import Part, detection, healthy_pages, most_events, most_share, quantile, resetting, tally

HOUR = 3600.0
RULE, OTHER = "stuck-worker", "late-but-200"


def found(start: float, end: float, rule: str = RULE, severity: str = "page") -> Found:
    span = Span(start=start, end=end)
    return Found(rule=rule, severity=severity, subject={}, window=span, alert=Span(start=start + 120, end=end))


def night(*findings: Found, fault: Span | None = None, strength: int = 2, variant: str = "full", hours: float = 10) -> Outcome:
    name = Night(FAULT, "hung", 101, strength, "one", variant) if fault else Night(HEALTHY, "quiet", 1, None, None, variant)
    return Outcome(
        night=name, length=hours * HOUR, fault=fault, findings=findings, incidents=(), not_evaluated=(), notices=(),
        duplicates=0, reshipped=0,
    )  # fmt: skip


def faulty(*findings: Found, strength: int = 2) -> Case:
    """A fault from hour 1 to hour 2: what touches 3540 s to 9000 s is about it."""
    fault = Span(start=HOUR, end=2 * HOUR)
    return Case(night(*findings, fault=fault, strength=strength), frozenset({RULE}), frozenset({OTHER}))


@pytest.mark.parametrize(("finding", "verdict"), [
    (found(3700, 4000), "planted"),
    (found(3000, 3540), "planted"),
    (found(3000, 3539), "wrong"),
    (found(9000, 9100), "planted"),
    (found(9001, 9100), "wrong"),
    (found(3700, 4000, OTHER), "beside"),
    (found(9001, 9100, OTHER), "wrong"),
    (found(3700, 4000, "slow-ready"), "wrong"),
])  # fmt: skip
def test_a_finding_is_right_at_the_time_of_its_fault_alone(finding: Found, verdict: str) -> None:
    assert faulty(finding).verdict(finding) == verdict


def test_on_a_healthy_night_every_finding_is_wrong() -> None:
    finding = found(3700, 4000)

    assert Case(night(finding)).verdict(finding) == "wrong"


def test_delays_run_from_the_faults_ends_to_the_alerts() -> None:
    case = faulty(found(3900, 4500), found(6000, 7500))

    assert detection(case) == 420  # the alert holds at 4020
    assert resetting(case) == 300
    assert resetting(faulty(found(3900, 4500))) == 0  # over before its fault
    assert detection(faulty()) is None


def test_a_rules_precision_and_recall_are_counted_by_event_and_by_night() -> None:
    cases = [
        faulty(found(3700, 4000), found(5000, 5300), found(20_000, 20_300)),
        faulty(strength=1),
        Case(night(found(100, 400))),
    ]

    told = tally(RULE, cases)

    assert told.precision == Part(2, 4)
    assert [(part.hits, part.of) for part in told.recall] == [(0, 0), (0, 1), (1, 1)]
    assert told.always == pytest.approx(2 / 3)


def test_findings_that_nobody_is_called_for_count_nowhere() -> None:
    told = tally(RULE, [faulty(found(3700, 4000, severity="info"))])

    assert told.precision == Part(0, 0)
    assert told.recall[2] == Part(0, 1)


def test_a_rule_that_cannot_be_evaluated_has_no_recall_there() -> None:
    case = faulty()
    untold = Case(case.outcome.model_copy(update={"not_evaluated": (RULE,)}), case.named, case.beside)

    assert untold.cannot_be_told
    assert tally(RULE, [untold]).recall[2] == Part(0, 0)


def test_a_random_firer_reaches_what_chance_gives() -> None:
    # One alert of 180 s in two nights of 10 h. It touches the window of 5460 s from 5640 of 72,000 starts.
    told = tally(RULE, [faulty(found(3700, 4000)), Case(night())]).random

    assert told.precision == pytest.approx(5640 / 72_000)
    assert told.recall[2] == pytest.approx(5640 / 72_000)
    # A second one: both miss with (1 - 0.0783)^2.
    assert tally(RULE, [faulty(found(3700, 4000), found(4100, 4400)), Case(night())]).random.recall[2] == pytest.approx(
        1 - (1 - 5640 / 72_000) ** 2
    )


def test_the_variants_of_a_night_are_one_night() -> None:
    cases = [Case(night(found(0, 60), found(600, 660))), Case(night(found(0, 60), variant="lean")), Case(night(variant="nginx"))]

    assert healthy_pages(cases) == (2, 10 * HOUR)
    assert tally(RULE, cases).pages_week == pytest.approx(2 * 16.8)  # 16.8 times ten hours are a week


def test_bounds_are_the_exact_ones_of_the_textbook() -> None:
    assert most_events(0) == pytest.approx(2.9957, abs=1e-4)  # -ln 0.05
    assert most_share(Part(0, 21)) == pytest.approx(1 - 0.05 ** (1 / 21))  # 13.3 %
    assert most_share(Part(3, 3)) == 1


def test_a_quantile_is_a_value_that_was_seen() -> None:
    assert [quantile([30, 10, 20], q) for q in (0.5, 0.95)] == [20, 30]
    assert quantile([], 0.5) is None


def test_the_page_says_what_is_not_met() -> None:
    text = page([faulty(), Case(night(found(0, 600)))], 3)

    assert "| No page on a healthy night | 0 | 1 of 1 ledgers, 1 of 1 nights (at most 100 %) | **no** |" in text
    assert "| Recall, strong | at least 100 % | 0 of 1: 0 % (0–79) | **no** |" in text  # noqa: RUF001
    assert "- fault-hung-101-2-one-full" in text
    assert "**1 of 3 ledgers were not analyzed.**" in text
