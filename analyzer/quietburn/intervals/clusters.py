"""Intervals of a share over blocks of time: requests of a burst share their fate, blocks hardly do."""

import math
from dataclasses import dataclass

import numpy as np

from quietburn.intervals.estimates import RESAMPLES, SEED, Counts, Estimate, Floats, Share, student95

FEWEST_BLOCKS = 30
_DRAWN_AT_ONCE = 4_000_000  # resamples times blocks held in memory


@dataclass(frozen=True)
class Blocks:
    """A share over five-minute blocks: `part`, `unknown` and `whole` by block (same length, whole > 0).

    `at` numbers the blocks in time, rising; blocks without a request are left out.
    """

    part: Counts
    unknown: Counts
    whole: Counts
    at: Counts

    def __len__(self) -> int:
        return len(self.whole)

    @property
    def share(self) -> Share:
        """Return the share over all blocks."""
        return Share(int(self.part.sum()), int(self.whole.sum()), int(self.unknown.sum()))

    def together(self, length: int) -> "Blocks":
        """Return blocks of so many of these, counted from the first; what has no request is left out again."""
        longer = (self.at - self.at[0]) // length if len(self) else self.at
        at, first = np.unique(longer, return_index=True)
        part, unknown, whole = (
            np.add.reduceat(counts, first) if len(first) else counts for counts in (self.part, self.unknown, self.whole)
        )
        return Blocks(part, unknown, whole, at)


@dataclass(frozen=True)
class Clustered:
    """A cluster bootstrap's interval; `design_effect` is its variance over that of independent requests."""

    estimate: Estimate
    design_effect: float | None


def cluster_interval(blocks: Blocks, fewest: int = FEWEST_BLOCKS, seed: int = SEED) -> Clustered | None:
    """Return a share's interval from resampled blocks, or None with fewer than 30 of them (or `fewest` > 1).

    Requests of a burst share their fate, blocks hardly do. Origin: Davison and Hinkley,
    Bootstrap Methods and their Application, 1997, section 3.8 (whole clusters resampled);
    percentiles expanded for the number of blocks after Hesterberg, "What teachers should know
    about the bootstrap", The American Statistician 69 (2015), section 5.3; design effect after
    Kish, Survey Sampling, 1965.
    """
    if len(blocks) < fewest:
        return None
    known, most = _drawn_shares(blocks, np.random.default_rng(seed))
    tail = _expanded_tail(len(blocks))
    share = blocks.share
    independent = share.least * (1 - share.least) / share.whole
    spread = float(np.var(known)) * len(blocks) / (len(blocks) - 1)
    estimate = Estimate(share.rate, float(np.quantile(known, tail)), float(np.quantile(most, 1 - tail)))
    return Clustered(estimate, spread / independent if independent > 0 else None)


def cluster_difference(
    before: Blocks, after: Blocks, fewest: int = FEWEST_BLOCKS, seed: int = SEED
) -> Estimate | None:
    """Return the difference of two shares, after - before, from resampled blocks of both; None with too few.

    Origin as for `cluster_interval`; unknown ones are least kind to each end.
    """
    if min(len(before), len(after)) < fewest:
        return None
    generator = np.random.default_rng(seed)
    (known1, most1), (known2, most2) = _drawn_shares(after, generator), _drawn_shares(before, generator)
    tail = _expanded_tail(min(len(before), len(after)))
    low, high = np.quantile(known1 - most2, tail), np.quantile(most1 - known2, 1 - tail)
    return Estimate(after.share.rate - before.share.rate, float(low), float(high))


_MOST_BLOCKS = 2000


def _drawn_shares(blocks: Blocks, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the known share and the most possible one of each resample of the blocks."""
    columns = np.column_stack([blocks.part, blocks.part + blocks.unknown, blocks.whole]).astype(np.float64)
    # Years of sparse blocks: neighbours are drawn together, which leaves a cluster bootstrap of longer blocks.
    together = -(-len(columns) // _MOST_BLOCKS)
    columns = np.add.reduceat(columns, np.arange(0, len(columns), together))
    count = len(columns)
    step = max(1, _DRAWN_AT_ONCE // count)
    sums = [
        generator.multinomial(count, np.full(count, 1 / count), size=min(step, RESAMPLES - start)) @ columns
        for start in range(0, RESAMPLES, step)
    ]
    part, most, whole = np.concatenate(sums).T
    return part / whole, most / whole


def _expanded_tail(blocks: int) -> float:
    """Return the percentile that stands for 2.5 % when only so many blocks are resampled."""
    far = math.sqrt(blocks / (blocks - 1)) * student95(blocks - 1)
    return 0.5 * math.erfc(far / math.sqrt(2))
