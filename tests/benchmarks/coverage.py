"""How often do the intervals hold the truth? `python -m tests.benchmarks.coverage [RUNS]`.

Simulated nights with a known truth; printed is the share of nights whose 95 % interval holds it.
Independent requests should give 93 to 97 %. In bursts the requests of five minutes share their
fate: there Wilson's interval is too short, and the blocks' interval, which the gate then uses,
comes nearer. Exits 1 when one of these promises is broken.
"""

import sys
from collections.abc import Callable, Iterator

import numpy as np

from quietburn.intervals import clusters
from quietburn.intervals import estimates as intervals
from quietburn.intervals.clusters import Blocks
from quietburn.intervals.estimates import Estimate, Share

_RUNS = 2000
_HELD = (0.93, 0.97)


def held(runs: int, one: Callable[[np.random.Generator], tuple[Estimate, float]], seed: int = 1) -> float:
    """Return the share of runs whose interval holds the truth."""
    generator = np.random.default_rng(seed)
    found = (one(generator) for _ in range(runs))
    return sum(estimate.low <= truth <= estimate.high for estimate, truth in found) / runs


def wilson(n: int, p: float) -> Callable[[np.random.Generator], tuple[Estimate, float]]:
    """Return a run of n independent requests, usable with p."""
    return lambda generator: (intervals.wilson_bounded(Share(int(generator.binomial(n, p)), n)), p)


def newcombe(n: int, before: float, after: float) -> Callable[[np.random.Generator], tuple[Estimate, float]]:
    """Return two runs of n independent requests each."""

    def one(generator: np.random.Generator) -> tuple[Estimate, float]:
        return intervals.newcombe((generator.binomial(n, before), n), (generator.binomial(n, after), n)), after - before

    return one


def pairs(n: int, gained: float, lost: float) -> Callable[[np.random.Generator], tuple[Estimate, float]]:
    """Return n pairs of which some gain and some lose."""

    def one(generator: np.random.Generator) -> tuple[Estimate, float]:
        up, down, _ = generator.multinomial(n, [gained, lost, 1 - gained - lost])
        return intervals.bonett_price(int(up), int(down), n), gained - lost

    return one


def quantiles(n: int, q: float) -> Callable[[np.random.Generator], tuple[Estimate, float]]:
    """Return two samples of n exponential latencies, the second 1.2 times as long."""
    truth = -np.log(1 - q) * 0.2

    def one(generator: np.random.Generator) -> tuple[Estimate, float]:
        return intervals.quantile_difference(generator.exponential(1.0, n), generator.exponential(1.2, n), q), truth

    return one


def ratios(n: int) -> Callable[[np.random.Generator], tuple[Estimate, float]]:
    """Return tokens per usable answer of two runs, 80 % usable, the second with half as many tokens again."""

    def one(generator: np.random.Generator) -> tuple[Estimate, float]:
        sides = [
            intervals.ratio(generator.lognormal(0.0, 0.5, n) * scale, (generator.random(n) < 0.8).astype(np.float64))
            for scale in (1.0, 1.5)
        ]
        return intervals.ratio_difference(*sides), 0.5 * float(np.exp(0.125)) / 0.8

    return one


def burst_night(generator: np.random.Generator, blocks: int) -> Blocks:
    """Return a night in which one block of ten goes bad: 90 % of its requests, instead of 2 %, get nothing."""
    whole = generator.poisson(12, blocks) + 1
    bad = generator.random(blocks) < 0.1
    part = generator.binomial(whole, np.where(bad, 0.1, 0.98))
    return Blocks(part, np.zeros(blocks, dtype=np.int64), whole, np.arange(blocks))


_BURST_TRUTH = 0.9 * 0.98 + 0.1 * 0.1


def in_bursts(blocks: int, *, clustered: bool) -> Callable[[np.random.Generator], tuple[Estimate, float]]:
    """Return a night of bursts, judged by Wilson or by the wider of both."""

    def one(generator: np.random.Generator) -> tuple[Estimate, float]:
        night = burst_night(generator, blocks)
        plain = intervals.wilson_bounded(night.share)
        by_blocks = clusters.cluster_interval(night)
        return (intervals.wider(plain, by_blocks.estimate) if clustered and by_blocks else plain), _BURST_TRUTH

    return one


def independent(runs: int) -> Iterator[tuple[str, float]]:
    """Yield coverage where requests are independent."""
    for n, p in ((32, 0.5), (60, 0.9), (300, 0.95), (2000, 0.99)):
        yield f"Wilson, n {n:>4}, rate {p:.0%}", held(runs, wilson(n, p))
    for n, p, q in ((60, 0.9, 0.8), (300, 0.95, 0.9), (2000, 0.99, 0.985)):
        yield f"Newcombe, n {n:>4}, {p:.1%} to {q:.1%}", held(runs, newcombe(n, p, q))
    yield "Bonett and Price, 200 pairs, 10 % gain, 5 % lose", held(runs, pairs(200, 0.1, 0.05))
    for n, q in ((60, 0.5), (300, 0.5), (300, 0.9), (2000, 0.99)):
        yield f"bootstrap of p{q * 100:.0f}, n {n:>4}", held(runs, quantiles(n, q))
    yield "tokens per usable answer, n  300", held(runs, ratios(300))


def main(runs: int) -> int:
    """Print every coverage; return 1 when a promise is broken."""
    broken = 0
    print(f"share of {runs:,} simulated nights whose 95 % interval holds the truth")
    for name, share in independent(runs):
        kept = _HELD[0] <= share <= _HELD[1]
        broken += not kept
        print(f"  {name:<50} {share:6.1%}{'' if kept else '  outside of 93 to 97 %'}")
    print("requests in bursts (one five-minute block of ten goes bad)")
    for blocks in (30, 60, 288):
        nights = max(200, runs // 5)  # each resamples its blocks 4,000 times
        plain, wide = (held(nights, in_bursts(blocks, clustered=clustered)) for clustered in (False, True))
        broken += not plain < wide
        print(f"  {blocks:>3} blocks: Wilson {plain:6.1%}, the wider of Wilson's and the blocks' {wide:6.1%}")
    return min(broken, 1)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else _RUNS))
