"""How many requests or values would settle what an interval leaves open."""

import math
from collections.abc import Callable

from quietburn.intervals.estimates import Z95, Estimate, Share, newcombe

_MOST_REQUESTS = 10**9  # what would need more is not settled by waiting


def requests_to_settle(share: Share, limit: float, design_effect: float = 1.0) -> int | None:
    """Return how many requests would leave the limit outside of Wilson's interval, at the same shares.

    None when no number would: the limit is the share itself, or lies between what is known and
    what is possible. Origin: Wilson's interval inverts the score test, so it leaves p0 outside
    from n = z² p0 (1 - p0) / (p - p0)² on; times the design effect (Kish 1965).
    """
    if share.least <= limit <= share.most:
        return None
    nearest = share.least if limit < share.least else share.most
    needed = Z95 * Z95 * limit * (1 - limit) / (nearest - limit) ** 2 * max(design_effect, 1.0)
    return _whole_number(needed)


def requests_to_settle_difference(before: Share, after: Share, limit: float = 0.0) -> int | None:
    """Return how many requests on each side would leave the limit outside of Newcombe's interval, at the same shares.

    None when no number up to a thousand million would.
    """

    def settled(n: float) -> bool:
        low = newcombe((before.most * n, n), (after.least * n, n)).low
        high = newcombe((before.least * n, n), (after.most * n, n)).high
        return not low <= limit <= high

    return _least(settled)


def values_to_settle(estimate: Estimate, count: int) -> int | None:
    """Return how many values on each side would make a refused difference one: noise shrinks with the root of them."""
    if estimate.point == 0:
        return None
    return _whole_number(count * (estimate.noise / estimate.point) ** 2)


def smallest_difference(before: Share, whole: int, *, upward: bool) -> float | None:
    """Return the least difference from a share that so many requests after could show, or None.

    It is the least d at which Newcombe's interval for rate and rate ± d leaves out 0.
    """
    room = 1 - before.rate if upward else before.rate
    sign = 1 if upward else -1

    def shown(d: float) -> bool:
        p = min(1.0, max(0.0, before.rate + sign * d))
        return newcombe((before.part, before.judged), (p * whole, whole)).settled()

    if room <= 0 or not shown(room):
        return None
    low, high = 0.0, room
    while high - low > 1e-5:
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


def _least(settled: Callable[[float], bool]) -> int | None:
    """Return the least number at which something that stays true becomes true."""
    high = 1
    while not settled(high):
        high *= 2
        if high > _MOST_REQUESTS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high


def _whole_number(needed: float) -> int | None:
    return max(1, math.ceil(needed)) if needed <= _MOST_REQUESTS else None
