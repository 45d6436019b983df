"""Bad spells in a series of five-minute blocks: stretches in which far more went wrong than outside of them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quietburn.intervals.clusters import Blocks
from quietburn.intervals.estimates import Counts, Floats

_LENGTHS = (1, 2, 4, 6)  # blocks: spells of 5 to 30 minutes, and longer ones in pieces
_CHANCE = 0.05  # that a series without one shows one
_MOST_ROUNDS = 20


@dataclass(frozen=True)
class Spells:
    """How many bad spells a series shows, and the blocks from the first to the last of the longest one."""

    count: int
    longest: int


def bad_spells(blocks: Blocks) -> Spells:
    """Return the bad spells of a series; what is rarer, part or rest, is what goes wrong.

    Windows of one to six blocks are tested against the rate outside of all windows found so far,
    by the Chernoff bound of the binomial's tail, with Bonferroni's correction for the number of
    windows. Found windows that touch are one spell. Origin: the scan statistic, Naus, "The
    distribution of the size of the maximum cluster of points on a line", JASA 60 (1965).
    """
    if not len(blocks):
        return Spells(0, 0)
    whole = blocks.whole - blocks.unknown
    wrong = np.minimum(blocks.part, whole) if 2 * blocks.part.sum() <= whole.sum() else whole - blocks.part
    inside = np.zeros(len(whole), dtype=bool)
    for _ in range(_MOST_ROUNDS):
        outside = ~inside
        rate = (wrong[outside].sum() + 0.5) / (whole[outside].sum() + 1)
        found = inside | _within_windows(blocks.at, wrong, whole, float(rate))
        if (found == inside).all() or found.all():
            break
        inside = found
    return _runs(blocks.at[inside])


def _within_windows(at: Counts, wrong: Counts, whole: Counts, rate: float) -> NDArray[np.bool_]:
    """Return which blocks lie in a window whose share of wrong ones is beyond chance at this rate."""
    inside = np.zeros(len(at), dtype=bool)
    enough = math.log(len(at) * len(_LENGTHS) / _CHANCE)
    for length in _LENGTHS:
        after = np.searchsorted(at, at + length)
        # A block that is bad by itself would make every longer window around it bad.
        bad, of = (_window_sums(np.where(inside, 0, counts), after) for counts in (wrong, whole))
        for start in np.flatnonzero(_surprise(bad, of, rate) > enough):
            # A window may reach beyond its spell: only its blocks that are worse than the rate belong to it.
            window = slice(start, after[start])
            inside[window] |= wrong[window] > rate * whole[window]
    return inside


def _window_sums(counts: Counts, after: Counts) -> Counts:
    """Return the sum from each place to the one before `after`."""
    until = np.concatenate([[0], np.cumsum(counts)])
    return np.asarray(until[after] - until[:-1])


def _surprise(bad: Counts, of: Counts, rate: float) -> Floats:
    """Return -log of Chernoff's bound of P(at least so many bad), 0 where no more than the rate are."""
    share = bad / np.maximum(of, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.where(bad > 0, share * np.log(share / rate), 0.0)
        less = np.where(bad < of, (1 - share) * np.log((1 - share) / (1 - rate)), 0.0)
    return np.where(share > rate, of * (more + less), 0.0)


def _runs(at: Counts) -> Spells:
    """Return the runs of neighbouring blocks; one quiet block between two doesn't part them."""
    if not len(at):
        return Spells(0, 0)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(at) > 2]))
    ends = np.concatenate([starts[1:], [len(at)]]) - 1
    return Spells(len(starts), int((at[ends] - at[starts]).max()) + 1)
