"""Intervals at 95 % for shares, quantiles and ratios, and for differences of them.

Nothing here knows a ledger: counts and arrays in, intervals out. What is drawn is drawn from a
seeded generator, so that the same ledger gives the same interval.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

Z95 = 1.959963984540054  # two-sided 95 % quantile of the normal distribution
RESAMPLES = 4000
SEED = 20_260_908


class Estimate(NamedTuple):
    """A number with its 95 % interval."""

    point: float
    low: float
    high: float

    @property
    def noise(self) -> float:
        """Return the interval's arm on the side of 0: a difference smaller than it is noise."""
        return self.point - self.low if self.point >= 0 else self.high - self.point

    def settled(self, limit: float = 0.0) -> bool:
        """Whether the interval leaves the limit outside."""
        return not self.low <= limit <= self.high


class Share(NamedTuple):
    """`part` of `whole`, of which `unknown` more may belong to the part; the others are judged."""

    part: int
    whole: int
    unknown: int = 0

    @property
    def judged(self) -> int:
        """Return how many are known to belong to the part or not."""
        return self.whole - self.unknown

    @property
    def rate(self) -> float:
        """Return the part's share of the judged ones. Needs judged > 0."""
        return self.part / self.judged

    @property
    def least(self) -> float:
        """Return the share if no unknown one belonged to the part. Needs whole > 0."""
        return self.part / self.whole

    @property
    def most(self) -> float:
        """Return the share if every unknown one belonged to the part. Needs whole > 0."""
        return (self.part + self.unknown) / self.whole

    @property
    def without_unknown(self) -> "Share":
        """Return the share of the judged ones alone."""
        return Share(self.part, self.judged)


def wilson(successes: float, total: float) -> tuple[float, float]:
    """Return Wilson's 95 % score interval for a proportion. Needs total > 0.

    Origin: Wilson, "Probable inference, the law of succession, and statistical inference",
    JASA 22 (1927).
    """
    p = successes / total
    z2 = Z95 * Z95
    centre = (p + z2 / (2 * total)) / (1 + z2 / total)
    half = Z95 * math.sqrt(p * (1 - p) / total + z2 / (4 * total * total)) / (1 + z2 / total)
    # At the edges rounding leaves a hair outside of [0, 1], or off the exact 0 and 1.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == total else min(1.0, centre + half)
    return low, high


def wilson_bounded(share: Share) -> Estimate:
    """Return a share of the judged with Wilson's ends at what it can be at least and at most, over all."""
    return Estimate(
        share.rate, wilson(share.part, share.whole)[0], wilson(share.part + share.unknown, share.whole)[1]
    )


def newcombe(before: tuple[float, float], after: tuple[float, float]) -> Estimate:
    """Return the difference of two independent proportions, after - before, each (part, whole > 0).

    Origin: Newcombe, "Interval estimation for the difference between independent proportions:
    comparison of eleven methods", Statistics in Medicine 17 (1998), method 10 (hybrid score,
    no continuity correction).
    """
    p1, p2 = after[0] / after[1], before[0] / before[1]
    (l1, u1), (l2, u2) = wilson(*after), wilson(*before)
    point = p1 - p2
    return Estimate(point, point - math.hypot(p1 - l1, u2 - p2), point + math.hypot(u1 - p1, p2 - l2))


def newcombe_bounded(before: Share, after: Share) -> Estimate:
    """Return Newcombe's difference of the known parts, its ends where the unknown ones are least kind to each."""
    low = newcombe((before.part + before.unknown, before.whole), (after.part, after.whole)).low
    high = newcombe((before.part, before.whole), (after.part + after.unknown, after.whole)).high
    return Estimate(after.rate - before.rate, low, high)


def bonett_price(gained: int, lost: int, pairs: int) -> Estimate:
    """Return the difference of two proportions over the same pairs (> 0), after - before.

    `gained` pairs have it only after, `lost` only before. Origin: Bonett and Price, "Adjusted
    Wald confidence interval for a difference of binomial proportions based on paired data",
    Journal of Educational and Behavioral Statistics 37 (2012).
    """
    p, q = (gained + 1) / (pairs + 2), (lost + 1) / (pairs + 2)
    half = Z95 * math.sqrt((p + q - (p - q) ** 2) / (pairs + 2))
    return Estimate((gained - lost) / pairs, max(-1.0, p - q - half), min(1.0, p - q + half))


def fewest_for_quantile(q: float) -> int:
    """Return how many values a 95 % interval of a quantile needs at least: 6, 36 and 368 for p50, p90 and p99.

    With fewer, all values lie on one side of the quantile too often (the sign test's argument;
    Conover, Practical Nonparametric Statistics, 3rd ed. 1999, section 3.2).
    """
    return math.ceil(math.log(0.025) / math.log(max(q, 1 - q)))


def quantile_draws(ordered: Floats, q: float, generator: np.random.Generator, resamples: int = RESAMPLES) -> Floats:
    """Return a quantile (linear between neighbours) of so many bootstrap resamples of sorted values.

    A resample's ranks are iid uniform on 1..n, so its k-th smallest is the value at rank
    ceil(n U), U being the k-th smallest of n uniform numbers, which is Beta(k, n + 1 - k)
    (David and Nagaraja, Order Statistics, 3rd ed. 2003, section 2.1). Exact, and one draw a
    resample instead of n. The bootstrap is Efron's (1979).
    """
    n = len(ordered)
    place = (n - 1) * q
    k = min(int(place) + 1, n)
    u = generator.beta(k, n + 1 - k, resamples)
    lower = ordered[_ranks(u, n)]
    if k == n or place == int(place):
        return lower
    # Given the k-th, the others above it are uniform on what is left: the next is their least.
    following = u + (1 - u) * generator.beta(1, n - k, resamples)
    return lower + (place - int(place)) * (ordered[_ranks(following, n)] - lower)


def _ranks(u: Floats, n: int) -> Counts:
    return np.clip(np.ceil(u * n).astype(np.int64) - 1, 0, n - 1)


def quantile_interval(values: Floats, q: float, seed: int = SEED) -> Estimate:
    """Return a quantile of values with its bootstrap percentile interval (Efron 1979). Needs values."""
    ordered = np.sort(values)
    low, high = np.quantile(quantile_draws(ordered, q, np.random.default_rng(seed)), [0.025, 0.975])
    return Estimate(float(np.quantile(ordered, q)), float(low), float(high))


def quantile_difference(before: Floats, after: Floats, q: float, seed: int = SEED) -> Estimate:
    """Return the difference of a quantile of two independent samples, after - before; needs values in both.

    The interval is the bootstrap's percentile interval, both samples resampled (Efron and
    Tibshirani, An Introduction to the Bootstrap, 1993, chapters 8 and 13).
    """
    generator = np.random.default_rng(seed)
    first, second = np.sort(before), np.sort(after)
    drawn = quantile_draws(second, q, generator) - quantile_draws(first, q, generator)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(float(np.quantile(second, q) - np.quantile(first, q)), float(low), float(high))


@dataclass(frozen=True)
class Ratio:
    """A ratio of two sums over requests, with its standard error; `count` requests."""

    value: float
    error: float
    count: int


def ratio(amounts: Floats, per: Floats, besides: float = 0.0) -> Ratio:
    """Return (besides + sum of amounts) / sum of per, with its standard error; needs a sum of per above 0.

    Arrays have one entry a request; `besides` belongs to none. Origin: the linearised variance
    of a ratio, Cochran, Sampling Techniques, 3rd ed. 1977, section 6.3; with `per` all 1 it is
    the mean's.
    """
    n, total = len(amounts), float(per.sum())
    value = (besides + float(amounts.sum())) / total
    left = amounts + besides / n - value * per
    error = math.sqrt(n / max(n - 1, 1) * float(left @ left)) / total
    return Ratio(value, error, n)


def ratio_difference(before: Ratio, after: Ratio) -> Estimate:
    """Return the difference of two independent ratios, after - before, with t at the smaller sample's freedom.

    Origin: the normal interval of a difference; t instead of z is the cautious form of Welch
    (1947) for small samples.
    """
    point = after.value - before.value
    half = student95(min(before.count, after.count) - 1) * math.hypot(before.error, after.error)
    return Estimate(point, point - half, point + half)


def student95(freedom: int) -> float:
    """Return Student's two-sided 95 % quantile, to 0.002 from five degrees of freedom on.

    Origin: the expansion in 1/freedom, Abramowitz and Stegun, Handbook of Mathematical
    Functions, 1964, formula 26.7.5.
    """
    z, v = Z95, float(max(freedom, 1))
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum((term / v ** (i + 1) for i, term in enumerate(terms)), 0.0)


def wider(one: Estimate, other: Estimate | None) -> Estimate:
    """Return the estimate with the longer interval."""
    return one if other is None or one.high - one.low >= other.high - other.low else other
