"""Intervals against other libraries, against brute force, and against numbers worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from quietburn.intervals import clusters, settling
from quietburn.intervals import estimates as intervals
from quietburn.intervals.clusters import Blocks
from quietburn.intervals.estimates import Estimate, Share

counts = st.integers(1, 5000).flatmap(lambda whole: st.tuples(st.integers(0, whole), st.just(whole)))


def blocks(part: list[int], whole: list[int], unknown: list[int] | None = None) -> Blocks:
    return Blocks(np.array(part), np.array(unknown or [0] * len(part)), np.array(whole), np.arange(len(part)))


@given(counts)
def test_wilson_is_that_of_statsmodels(count: tuple[int, int]) -> None:
    expected = proportion_confint(*count, alpha=0.05, method="wilson")
    assert intervals.wilson(*count) == pytest.approx(expected, abs=1e-12)


def test_one_of_32_lies_between_half_a_percent_and_sixteen() -> None:
    low, high = intervals.wilson(1, 32)
    assert (round(low, 3), round(high, 3)) == (0.006, 0.157)


@given(counts, counts)
def test_newcombe_is_that_of_statsmodels(before: tuple[int, int], after: tuple[int, int]) -> None:
    found = intervals.newcombe(before, after)
    expected = confint_proportions_2indep(*after, *before, method="newcomb", compare="diff")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)


def test_newcombe_gives_the_papers_own_example() -> None:
    # Newcombe 1998, table II, example (a), method 10: 56/70 - 48/80 is 0.2000 [0.0524, 0.3339].
    found = intervals.newcombe((48, 80), (56, 70))
    assert [round(number, 4) for number in found] == [0.2, 0.0524, 0.3339]


def test_six_of_32_against_one_is_noise_and_eight_of_eight_against_none_is_not() -> None:
    six = intervals.newcombe((1, 32), (6, 32))
    assert [round(100 * number, 1) for number in six] == [15.6, -0.4, 32.4]
    assert not six.settled()
    assert intervals.newcombe((0, 8), (8, 8)).settled()
    assert intervals.newcombe((8, 8), (0, 8)).settled()


def test_unknown_requests_only_widen_a_difference() -> None:
    bounded = intervals.newcombe_bounded(Share(50, 100, 5), Share(60, 100, 5))
    assert bounded.point == pytest.approx(60 / 95 - 50 / 95)
    assert bounded.low == pytest.approx(intervals.newcombe((55, 100), (60, 100)).low)
    assert bounded.high == pytest.approx(intervals.newcombe((50, 100), (65, 100)).high)


def test_pairs_by_hand() -> None:
    # 8 of 8 pairs gained: p = 9/10, q = 1/10, half = z sqrt((1 - 0.64) / 10) = 0.3719; 0.8 - 0.3719, cut at 1.
    found = intervals.bonett_price(8, 0, 8)
    assert found == pytest.approx((1.0, 0.8 - 1.959964 * math.sqrt(0.036), 1.0), abs=1e-6)


@pytest.mark.parametrize("freedom", [5, 9, 29, 100, 10_000])
def test_student_is_that_of_scipy(freedom: int) -> None:
    assert intervals.student95(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=0.002)


@pytest.mark.parametrize(("q", "fewest"), [(0.5, 6), (0.9, 36), (0.99, 368)])
def test_a_quantile_needs_enough_values_on_either_side(q: float, fewest: int) -> None:
    far = max(q, 1 - q)
    assert far**fewest <= 0.025 < far ** (fewest - 1)
    assert intervals.fewest_for_quantile(q) == fewest


@pytest.mark.parametrize("q", [0.5, 0.77, 0.9])
@pytest.mark.parametrize("size", [50, 51])
def test_drawn_quantiles_are_those_of_whole_resamples(q: float, size: int) -> None:
    generator = np.random.default_rng(5)
    values = np.sort(generator.exponential(100.0, size))
    brute = np.quantile(generator.choice(values, size=(40_000, size)), q, axis=1)
    drawn = intervals.quantile_draws(values, q, generator, 40_000)
    assert stats.ks_2samp(brute.round(6), drawn.round(6)).statistic < 0.02  # rounding: equal values must be equal


def test_the_difference_of_medians_is_that_of_scipys_bootstrap() -> None:
    generator = np.random.default_rng(7)
    before, after = generator.normal(100, 10, 200), generator.normal(103, 15, 150)
    found = intervals.quantile_difference(before, after, 0.5)
    expected = stats.bootstrap(
        (after, before), lambda a, b, axis: np.median(a, axis=axis) - np.median(b, axis=axis), n_resamples=9999,
        method="percentile", vectorized=True, rng=np.random.default_rng(1),
    ).confidence_interval
    assert found.point == pytest.approx(float(np.median(after) - np.median(before)))
    assert found.low == pytest.approx(expected.low, abs=0.4)
    assert found.high == pytest.approx(expected.high, abs=0.4)


def test_what_is_drawn_is_the_same_each_time() -> None:
    values = np.random.default_rng(3).exponential(1.0, 500)
    assert intervals.quantile_difference(values, values * 2, 0.9) == intervals.quantile_difference(values, values * 2, 0.9)
    some = blocks([5, 9] * 20, [10, 10] * 20)
    assert clusters.cluster_interval(some) == clusters.cluster_interval(some)


def test_a_ratio_of_ones_is_the_mean_with_its_standard_error() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 10.0])
    found = intervals.ratio(values, np.ones(5))
    assert found.value == pytest.approx(4.0)
    assert found.error == pytest.approx(stats.sem(values))


def test_what_belongs_to_no_request_is_part_of_a_ratios_value() -> None:
    found = intervals.ratio(np.array([100.0, 100.0]), np.array([1.0, 0.0]), besides=50.0)
    assert found.value == pytest.approx(250.0)


def test_independent_blocks_have_a_design_effect_of_one_and_blocks_of_one_fate_that_of_their_size() -> None:
    generator = np.random.default_rng(11)
    independent = clusters.cluster_interval(blocks(list(generator.binomial(20, 0.7, 400)), [20] * 400))
    one_fate = clusters.cluster_interval(blocks([20 * int(x) for x in generator.random(400) < 0.7], [20] * 400))
    assert independent is not None
    assert one_fate is not None
    assert independent.design_effect == pytest.approx(1.0, abs=0.2)
    assert one_fate.design_effect == pytest.approx(20.0, rel=0.1)


def test_fewer_than_thirty_blocks_are_not_resampled() -> None:
    assert clusters.cluster_interval(blocks([1] * 29, [2] * 29)) is None
    assert clusters.cluster_difference(blocks([1] * 29, [2] * 29), blocks([1] * 30, [2] * 30)) is None
    assert clusters.cluster_interval(blocks([1] * 30, [2] * 30)) is not None


def test_unknown_requests_widen_a_cluster_interval_upward() -> None:
    some = blocks([5, 9] * 20, [10, 10] * 20)
    unsure = blocks([5, 9] * 20, [10, 10] * 20, [1, 1] * 20)
    plain, wide = clusters.cluster_interval(some), clusters.cluster_interval(unsure)
    assert plain is not None
    assert wide is not None
    assert wide.estimate.low == plain.estimate.low
    assert wide.estimate.high == pytest.approx(plain.estimate.high + 0.1)


@given(st.integers(1, 999), st.integers(1, 999))
def test_the_number_that_settles_a_gate_is_the_least_one_that_does(part: int, limit: int) -> None:
    share, minimum = Share(part, 1000), limit / 1000
    needed = settling.requests_to_settle(share, minimum)
    if needed is None:
        assert part == limit
        return

    def settled(n: int) -> bool:
        low, high = intervals.wilson(share.rate * n, n)
        return not low <= minimum <= high

    assert settled(needed + 1)  # one more: the bound itself lies within rounding
    assert needed < 3 or not settled(needed - 2)


def test_no_number_settles_a_limit_between_what_is_known_and_what_is_possible() -> None:
    assert settling.requests_to_settle(Share(90, 100, 8), 0.95) is None
    assert settling.requests_to_settle(Share(90, 100), 0.90) is None


def test_the_design_effect_multiplies_what_would_settle() -> None:
    # z^2 0.95 0.05 / 0.04^2 = 114.04; ten times that with a design effect of 10.
    assert settling.requests_to_settle(Share(99, 100), 0.95) == 115
    assert settling.requests_to_settle(Share(99, 100), 0.95, 10.0) == 1141


def test_the_number_that_settles_a_difference_is_the_least_one_that_does() -> None:
    needed = settling.requests_to_settle_difference(Share(1, 32), Share(6, 32))
    assert needed is not None
    assert intervals.newcombe((needed / 32, needed), (6 * needed / 32, needed)).settled()
    fewer = needed - 1
    assert not intervals.newcombe((fewer / 32, fewer), (6 * fewer / 32, fewer)).settled()
    assert settling.requests_to_settle_difference(Share(5, 10), Share(5, 10)) is None


def test_the_smallest_difference_is_just_shown() -> None:
    smallest = settling.smallest_difference(Share(16, 32), 32, upward=True)
    assert smallest is not None
    assert intervals.newcombe((16, 32), ((0.5 + smallest) * 32, 32)).settled()
    assert not intervals.newcombe((16, 32), ((0.5 + smallest - 0.001) * 32, 32)).settled()
    assert settling.smallest_difference(Share(32, 32), 32, upward=True) is None


def test_noise_is_the_arm_towards_no_difference() -> None:
    assert Estimate(1.26, -4.12, 6.64).noise == pytest.approx(5.38)
    assert Estimate(-1.0, -9.0, 2.0).noise == pytest.approx(3.0)
    # A difference twice its noise is settled; half of its noise needs four times the values.
    assert Estimate(2.0, 1.0, 3.0).settled()
    assert settling.values_to_settle(Estimate(1.0, -1.0, 3.0), 100) == 400
