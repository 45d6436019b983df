"""The gate's decisions, on counts worked out by hand."""

import dataclasses

import pytest
from tests.unit.sides import ALL, side

from quietburn.errors import UsageError
from quietburn.evaluate.blocks import AcceptanceFacts
from quietburn.evaluate.rates import VERDICTS
from quietburn.judge.acceptance import acceptance_checks
from quietburn.judge.checks import Manner, at_least, at_most
from quietburn.judge.compare import Side
from quietburn.judge.gate import Asked, Baseline, Required, Threshold, decide, with_baseline
from quietburn.report.model import AnswersReport, CriterionReport, LeftOutReport
from quietburn.report.verdict import CheckReport, GateReport, Outcome, Verdict


def asking(share: float) -> Threshold:
    return Threshold(share, "--flag")


def held_against(before: Side, now: Side, asked: Asked | None = None) -> GateReport:
    return decide(with_baseline(asked or Asked()), now, Baseline(before, now, ALL))


def check(report: GateReport, name: str) -> CheckReport:
    return next(found for found in report.checks if found.name == name)


@pytest.mark.parametrize(
    ("low", "high", "limit", "minimum", "maximum"),
    [
        (0.90, 0.95, 0.80, Outcome.PASS, Outcome.FAIL),
        (0.90, 0.95, 0.90, Outcome.PASS, Outcome.UNDECIDED),
        (0.90, 0.95, 0.93, Outcome.UNDECIDED, Outcome.UNDECIDED),
        (0.90, 0.95, 0.95, Outcome.UNDECIDED, Outcome.PASS),
        (0.90, 0.95, 0.96, Outcome.FAIL, Outcome.PASS),
    ],
)
def test_the_three_way_test_has_its_limit_on_the_good_side(
    low: float, high: float, limit: float, minimum: Outcome, maximum: Outcome
) -> None:
    assert at_least(low, high, limit) is minimum
    assert at_most(low, high, limit) is maximum


def test_one_of_32_fails_a_gate_at_a_half() -> None:
    report = decide(Asked(min_usable=asking(0.5)), side(usable=1, late=31))
    found = check(report, "min_usable")
    assert (report.verdict, report.exit_status, found.outcome) == (Verdict.FAIL, 1, Outcome.FAIL)
    assert found.interval95 == pytest.approx((0.0055, 0.1574), abs=5e-5)


def test_a_whole_interval_over_the_minimum_passes_without_a_word() -> None:
    report = decide(Asked(min_usable=asking(0.95)), side(usable=990, late=10))
    assert (report.verdict, report.exit_status) == (Verdict.PASS, 0)
    assert not check(report, "min_usable").notice


# 57 of 60 is 95 % [86.3 %, 98.3 %]; 56 of 60 is 93.3 %.
@pytest.mark.parametrize(
    ("usable", "manner", "verdict", "status"),
    [
        (57, Manner(), Verdict.PASS, 0),
        (56, Manner(), Verdict.UNDECIDED, 3),
        (56, Manner(undecided=Verdict.PASS), Verdict.PASS, 0),
        (57, Manner(undecided=Verdict.FAIL), Verdict.FAIL, 1),
        (57, Manner(point=True), Verdict.PASS, 0),
        (56, Manner(point=True), Verdict.FAIL, 1),
    ],
)
def test_an_undecided_gate_counts_by_its_point_unless_told_otherwise(
    usable: int, manner: Manner, verdict: Verdict, status: int
) -> None:
    report = decide(Asked(min_usable=asking(0.95), manner=manner), side(usable=usable, late=60 - usable))
    found = check(report, "min_usable")
    assert (report.verdict, report.exit_status, found.outcome) == (verdict, status, Outcome.UNDECIDED)
    assert found.notice == (verdict is Verdict.PASS)
    assert any("min_usable passes" in notice for notice in report.notices) == (verdict is Verdict.PASS)


def test_an_undecided_gate_names_the_requests_that_would_settle_it() -> None:
    # z^2 0.95 0.05 / (0.9333 - 0.95)^2 = 656.9
    report = decide(Asked(min_usable=asking(0.95)), side(usable=56, late=4))
    assert check(report, "min_usable").requests_to_settle == 657
    assert "about 657 such requests would settle it" in check(report, "min_usable").says


@pytest.mark.parametrize("manner", [Manner(), Manner(undecided=Verdict.PASS), Manner(undecided=Verdict.FAIL), Manner(point=True)])
@pytest.mark.parametrize("asked", ["min_usable", "max_gap"])
def test_what_cannot_be_measured_never_passes(asked: str, manner: Manner) -> None:
    nobody_knows = side(unknown=100, unmeasured=("on_time",))
    threshold = asking(0.01 if asked == "min_usable" else 0.99)
    call = Asked(min_usable=threshold, manner=manner) if asked == "min_usable" else Asked(max_gap=threshold, manner=manner)
    report = decide(call, nobody_knows)
    assert (report.verdict, report.exit_status) == (Verdict.UNDECIDED, 3)
    assert check(report, asked).outcome is Outcome.UNMEASURED
    assert "deadline_ms" in check(report, asked).says


def test_a_ledger_without_a_valid_request_is_not_judged() -> None:
    report = decide(Asked(min_usable=asking(0.01)), side(invalid=9, abandoned=3))
    assert (report.exit_status, check(report, "min_usable").outcome) == (3, Outcome.UNMEASURED)


def test_requests_that_cannot_be_told_count_against_the_gap() -> None:
    # 2 % are known to be false successes, 10 % more may be: a limit of 5 % is not kept for sure.
    report = decide(Asked(max_gap=asking(0.05)), side(usable=880, late=20, unknown=100))
    found = check(report, "max_gap")
    assert (found.outcome, report.exit_status) == (Outcome.UNDECIDED, 3)
    assert "The requests that can't be judged decide it" in found.says
    assert "2.2 %" in found.says  # 20 of the 900 that are judged
    assert decide(Asked(max_gap=asking(0.05)), side(usable=980, late=20)).exit_status == 0


@pytest.mark.parametrize("manner", [Manner(), Manner(undecided=Verdict.PASS), Manner(undecided=Verdict.FAIL), Manner(point=True)])
def test_requests_that_cannot_be_told_leave_a_minimum_undecided_whatever_the_point(manner: Manner) -> None:
    # 90 of 92 judged are usable (97.8 %), but of all 100 between 90 % and 98 %.
    now = side(usable=90, failed=2, unknown=8)
    report = decide(Asked(min_usable=asking(0.95), manner=manner), now)
    found = check(report, "min_usable")
    assert (report.exit_status, found.outcome, found.counts_as) == (3, Outcome.UNDECIDED, Verdict.UNDECIDED)
    assert found.observed == 90 / 92
    assert "97.8 %" in found.says
    assert "8 of 100 can't be judged: between 90.0 % and 98.0 % of all" in found.says
    # At 85 % both bounds reach it: only sampling is in doubt, and the choice counts again.
    low = decide(Asked(min_usable=asking(0.85), manner=manner), now)
    assert low.exit_status == (1 if manner.undecided is Verdict.FAIL else 0)


@pytest.mark.parametrize(("kind", "status"), [("other", 3), ("embed", 0)])
def test_events_that_may_have_generated_leave_a_minimum_undecided(kind: str, status: int) -> None:
    # 990 of 1,000 pass 95 %; with 100 more failures it would be 90 %.
    now = side(usable=990, failed=10)
    left = LeftOutReport(pattern="/x", kind=kind, events=100, statuses={}, tokens=None, file="a", first_line=1)
    now = dataclasses.replace(now, report=now.report.model_copy(update={"left_out": [left]}))
    report = decide(Asked(min_usable=asking(0.95)), now)
    assert report.exit_status == status
    assert ("100 events of unknown kind" in check(report, "min_usable").says) == (status == 3)


def test_a_drop_that_what_cannot_be_told_may_undo_is_undecided_whatever_is_chosen() -> None:
    # Before 100 %; now 60 of 60 judged, 40 untold: a drop between 0 and 40 points.
    asked = Asked(max_drop=asking(0.05), manner=Manner(undecided=Verdict.PASS))
    report = held_against(side(usable=100), side(usable=60, unknown=40), asked)
    assert (report.exit_status, check(report, "max_drop").outcome) == (3, Outcome.UNDECIDED)


def test_a_rate_over_less_than_half_of_the_requests_is_not_judged() -> None:
    report = decide(Asked(min_usable=asking(0.01)), side(usable=49, unknown=51))
    assert (report.exit_status, check(report, "min_usable").outcome) == (3, Outcome.UNMEASURED)
    assert "51 of 100 valid requests" in check(report, "min_usable").says


@pytest.mark.parametrize("usable", range(6, 61))
def test_a_ten_point_drop_at_sixty_is_never_a_silent_pass(usable: int) -> None:
    before, now = side(usable=usable, late=60 - usable), side(usable=usable - 6, late=66 - usable)
    report = held_against(before, now, Asked(max_drop=asking(0.02)))
    assert report.verdict is not Verdict.PASS
    assert check(report, "max_drop").observed == pytest.approx(0.1)
    wide = held_against(before, now, Asked(max_drop=asking(0.10)))
    assert wide.verdict is not Verdict.PASS or check(wide, "max_drop").notice


def test_a_drop_far_over_its_limit_fails_and_a_rise_passes() -> None:
    worse = held_against(side(usable=8), side(late=8), Asked(max_drop=asking(0.02)))
    assert (worse.exit_status, check(worse, "max_drop").outcome) == (1, Outcome.FAIL)
    better = held_against(side(usable=500, late=500), side(usable=990, late=10), Asked(max_drop=asking(0.02)))
    assert (better.exit_status, check(better, "max_drop").outcome) == (0, Outcome.PASS)


def test_a_tenth_of_calls_turned_into_401_is_seen_though_the_usable_rate_is_not_lower() -> None:
    report = held_against(side(usable=200), side(usable=180, invalid=20))
    found = check(report, "max_invalid_rise")
    assert (report.exit_status, found.outcome, found.limit) == (1, Outcome.FAIL, 0.01)
    assert found.observed == pytest.approx(0.1)
    few = held_against(side(usable=30), side(usable=27, invalid=3))  # too few to be sure, and no pass
    assert (few.exit_status, check(few, "max_invalid_rise").outcome) == (3, Outcome.UNDECIDED)


def test_a_required_criterion_that_is_no_longer_measured_fails() -> None:
    asked = Asked(require=Required(("on_time", "complete"), "--require"))
    assert decide(asked, side(usable=100)).exit_status == 0
    report = decide(asked, side(usable=100, unmeasured=("complete",)))
    assert (report.exit_status, check(report, "require_complete").outcome) == (1, Outcome.FAIL)
    assert check(report, "require_on_time").outcome is Outcome.PASS


def test_a_required_criterion_names_the_answers_that_lack_it() -> None:
    # 60 answers at once tell that they are complete, 40 streams don't: 60 % in all, and yet it fails.
    told, untold = (CriterionReport(measured=share == 1, coverage=share) for share in (1.0, 0.0))
    now = side(usable=100)
    answers = [
        AnswersReport(dialect="litellm", stream=stream, answered=count, criteria={"complete": told if tells else untold})
        for stream, count, tells in ((False, 60, True), (True, 40, False))
    ]
    rates = now.report.rates.model_copy(update={
        "answers": answers, "criteria": now.report.rates.criteria | {"complete": CriterionReport(measured=True, coverage=0.6)},
    })
    now = dataclasses.replace(now, report=now.report.model_copy(update={"rates": rates}))
    found = check(decide(Asked(require=Required(("complete",), "--require")), now), "require_complete")
    assert found.outcome is Outcome.FAIL
    assert "of those that are litellm, streamed: for 0.0 % of 40" in found.says
    assert "not streamed" not in found.says


def test_the_wider_interval_decides_where_there_are_thirty_blocks() -> None:
    # 40 blocks of 25: 38 without a fault, two without an answer. Wilson on 950 of 1,000 is [93.5 %, 96.2 %].
    usable, failed = [25] * 38 + [0] * 2, [0] * 38 + [25] * 2
    blocks = {name: [0] * 40 for name in VERDICTS} | {"usable": usable, "failed": failed}
    report = decide(Asked(min_usable=asking(0.93)), side(blocks=blocks))
    assert check(report, "min_usable").outcome is Outcome.UNDECIDED  # Wilson alone would pass it
    assert report.usable_interval is not None
    assert report.usable_interval.blocks == 40
    assert report.usable_interval.low < 0.9
    # The two are one run of ten minutes, so blocks of that length are resampled: 50 requests share their fate.
    assert report.usable_interval.design_effect == pytest.approx(50, rel=0.15)
    assert (report.usable_interval.level, report.usable_interval.incidents) == (None, 1)
    assert check(report, "min_usable").interval95 is None
    alone = decide(Asked(min_usable=asking(0.93)), side(usable=950, failed=50))
    assert check(alone, "min_usable").outcome is Outcome.PASS


def test_ledgers_that_do_not_measure_the_same_are_held_against_each_other_on_what_both_do() -> None:
    before, now = side(usable=100), side(usable=100, unmeasured=("on_time",))
    common = type(ALL)(frozenset({"complete"}), frozenset({"on_time"}))
    report = decide(Asked(max_drop=asking(0.02)), now, Baseline(before, now, common))
    assert (report.exit_status, check(report, "max_drop").outcome) == (3, Outcome.UNMEASURED)
    assert any("so not compared: on time" in notice for notice in report.notices)


def test_too_many_refused_lines_outweigh_every_verdict() -> None:
    now = side(usable=1, late=31)
    report = now.report.model_copy(update={"quarantine_codes": {"not_json": 3}})
    now = Side(report, now.deadline, now.requests, now.attempts, now.models)  # 3 refused of the 1 line that was read
    for manner in (Manner(), Manner(undecided=Verdict.PASS)):
        decided = decide(Asked(min_usable=asking(0.5), manner=manner), now)
        assert (decided.verdict, decided.exit_status) == (Verdict.UNDECIDED, 3)


def test_thresholds_in_force_say_where_they_came_from() -> None:
    asked = Asked(min_usable=Threshold(0.9, "quietburn.toml"), max_drop=asking(0.02))
    report = held_against(side(usable=100), side(usable=100), asked)
    assert [(t.name, t.value, t.origin) for t in report.thresholds] == [
        ("min_usable", "90.0 %", "quietburn.toml"),
        ("max_drop", "2.0 points", "--flag"),
        ("max_invalid_rise", "1.0 points", "default"),
        ("max_quarantined", "5.0 %", "default"),
    ]


def test_a_gate_that_is_asked_nothing_or_a_drop_from_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to decide"):
        decide(Asked(), side(usable=1))
    with pytest.raises(UsageError, match=r"max_drop \(--flag\): needs a --baseline"):
        decide(Asked(max_drop=asking(0.1)), side(usable=1))


GOOD = AcceptanceFacts(
    waits=300, wait_p99_ms=900.0, wait_share_p99=0.9, minutes=30.0, sent=1000, upstream_429=9, refusals=4, hinted=4,
    early_retries=0, retries_told=True,
)


@pytest.mark.parametrize(
    ("changed", "outcomes"),
    [
        ({}, "pass pass pass"),
        ({"wait_share_p99": 1.0}, "fail pass pass"),
        ({"waits": 299}, "unmeasured pass pass"),
        ({"minutes": 29.9}, "unmeasured pass pass"),
        ({"waits": 0, "wait_share_p99": None, "wait_p99_ms": None}, "unmeasured pass pass"),
        ({"upstream_429": 10}, "pass fail pass"),
        ({"sent": 0, "upstream_429": 0}, "pass unmeasured pass"),
        ({"early_retries": 1}, "pass pass fail"),
        ({"hinted": 0}, "pass pass unmeasured"),
        ({"refusals": 0, "hinted": 0}, "pass pass pass"),
        ({"retries_told": False, "refusals": 0, "hinted": 0}, "pass pass unmeasured"),
    ],
)
def test_acceptance_wants_short_waits_few_429s_and_no_early_retry(changed: dict[str, object], outcomes: str) -> None:
    facts = AcceptanceFacts(**(vars(GOOD) | changed))
    assert [found.outcome.value for found in acceptance_checks(facts)] == outcomes.split()
    report = decide(Asked(acceptance=True), side(usable=100), acceptance=facts)
    failed = "fail" in outcomes
    assert report.exit_status == (1 if failed else 3 if "unmeasured" in outcomes else 0)
    assert report.advice == (["Acceptance failed: halve the cap before you change anything else."] if failed else [])
