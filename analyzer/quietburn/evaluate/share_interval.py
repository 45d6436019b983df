"""The interval of a share of requests, made in one way for every report, and what may be said of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from quietburn.evaluate.blocks import RequestCounts
from quietburn.intervals import clusters
from quietburn.intervals import estimates as intervals
from quietburn.intervals.bad_spells import Spells, bad_spells
from quietburn.intervals.clusters import Blocks, Clustered
from quietburn.intervals.estimates import Estimate

WILSON, CLUSTERS = "Wilson", "bootstrap of five-minute blocks"
LEVEL = 0.95
FEWEST_SPELLS = 20  # with fewer, how many the next night has is too uncertain: tests/benchmarks/nights.py
FEWEST_NIGHTS = 10
# Blocks that differ by more than twice what chance makes have failures in clusters, though none stands out as an
# incident. Nights in which none does are then the lucky ones: tests/benchmarks/nights.py, failures clustered by minute.
_MOST_EFFECT = 2.0
_FEWEST_LONG = 8  # blocks: enough to widen an interval, not to make one
_MINUTES = 5  # of a block
_HALF_AN_HOUR, _DAY = 6, 288  # blocks


@dataclass(frozen=True)
class Resampled:
    """An interval from resampled blocks of so many minutes."""

    minutes: int
    found: Clustered


@dataclass(frozen=True)
class Interval:
    """A share of judged requests and its interval, how it was made, and its design effect where blocks were resampled.

    `blocks` counts blocks of five minutes; `minutes` is the length of those that were resampled,
    None where Wilson's interval is the wider one. `days` have a request, counted from the first one.
    """

    estimate: Estimate
    method: str
    blocks: int
    design_effect: float | None
    spells: Spells
    minutes: int | None
    days: int
    in_clusters: bool = False

    @property
    def effect(self) -> float:
        """Return the design effect of the way that was chosen; Wilson's is 1."""
        return self.design_effect or 1.0 if self.minutes else 1.0

    @property
    def level(self) -> float | None:
        """Return 0.95, or None where a few bad spells or clusters make the share: another night may have fewer or more."""
        return None if _are_few(self.spells) or self.in_clusters else LEVEL

    @property
    def stated(self) -> Estimate | None:
        """Return the estimate where it may be called a 95 % interval."""
        return self.estimate if self.level else None


def share_interval(requests: RequestCounts, *names: str) -> Interval | None:
    """Return the interval of a share of verdicts: the wider of Wilson's and the blocks'; None without a judged request.

    Its ends are those of the bounds: whoever can't be told counts against the share at the lower
    one, and for it at the upper one.
    """
    share = requests.share(*names)
    return _interval(intervals.wilson_bounded(share), requests.blocks(*names)) if share.judged else None


def _interval(plain: Estimate, blocks: Blocks | None) -> Interval:
    spells = bad_spells(blocks) if blocks else Spells(0, 0)
    ways = list(_resampled(blocks, spells)) if blocks else []
    widest = max(ways, key=lambda way: _width(way.found.estimate), default=None)
    clustered = widest is not None and _width(widest.found.estimate) > _width(plain)
    return Interval(
        estimate=widest.found.estimate if widest and clustered else plain,
        method=CLUSTERS if clustered else WILSON,
        blocks=len(blocks) if blocks else 0,
        design_effect=widest.found.design_effect if widest else None,
        spells=spells,
        minutes=widest.minutes if widest and clustered else None,
        days=len(blocks.together(_DAY)) if blocks else 1,
        in_clusters=not spells.count and bool(ways) and (ways[0].found.design_effect or 1.0) > _MOST_EFFECT,
    )


def _resampled(blocks: Blocks, spells: Spells) -> Iterator[Resampled]:
    """Yield the intervals from blocks of five minutes, of half an hour, as long as the bad spells, and of a day."""
    if len(blocks) < clusters.FEWEST_BLOCKS:
        return
    for length, fewest in ((1, 1), (_HALF_AN_HOUR, _FEWEST_LONG), (spells.longest, _FEWEST_LONG), (_DAY, FEWEST_NIGHTS)):
        if length and (found := clusters.cluster_interval(blocks.together(length), fewest)):
            yield Resampled(length * _MINUTES, found)


def _are_few(spells: Spells) -> bool:
    return 0 < spells.count < FEWEST_SPELLS


def share_difference(before: Blocks, after: Blocks) -> Estimate | None:
    """Return the difference of two shares, after - before, from resampled blocks; None with too few.

    It is the wider one of blocks of five minutes and of blocks as long as the longest bad spell.
    """
    longest = max(bad_spells(before).longest, bad_spells(after).longest)
    ways = [clusters.cluster_difference(before, after)]
    if longest > 1:
        ways.append(clusters.cluster_difference(before.together(longest), after.together(longest), _FEWEST_LONG))
    return max((way for way in ways if way), key=_width, default=None)


def incidents_words(side: str, blocks: Blocks | None) -> str | None:
    """Return what keeps one side's share from speaking for other nights: a few incidents; else None."""
    spells = bad_spells(blocks) if blocks else Spells(0, 0)
    if not _are_few(spells):
        return None
    return (
        f"{side}: {_incidents(spells)}; intervals of differences hold for these nights, not 95 % for others: "
        "nights with an incident vary more."
    )


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


def method_words(found: Interval) -> str:
    """Return what the interval may be called, how it was made, and what that leaves out."""
    if found.blocks < clusters.FEWEST_BLOCKS and found.level:
        blocks = _counted(found.blocks, "block")
        return (
            f"The interval is {found.method}'s and assumes independent requests, so it is optimistic in a burst "
            f"({blocks} of five minutes; {clusters.FEWEST_BLOCKS} or more would be resampled)."
        )
    if found.in_clusters:
        return (
            f"The interval covers only {_these(found)}: failures came in clusters, none of which stands out as an incident, "
            f"and other nights may have more of them. {_made(found)}."
        )
    if not found.level:
        return (
            f"The interval covers only {_these(found)}: {_incidents(found.spells)} drove it, "
            f"and nights with an incident vary more. {_made(found)}."
        )
    if not found.spells.count:
        return f"The 95 % interval covers nights without an incident, like {_these(found)}; others vary more. {_made(found)}."
    return (
        f"The 95 % interval covers nights with incidents as frequent as here ({_incidents(found.spells)}). {_made(found)}."
    )


def _incidents(spells: Spells) -> str:
    return f"{_counted(spells.count, 'incident')} of up to {spells.longest * _MINUTES} minutes"


def _these(found: Interval) -> str:
    return "this night" if found.days <= 1 else "these nights"


def _made(found: Interval) -> str:
    effect = "" if found.design_effect is None else f", design effect {found.design_effect:.1f}"
    way = "Wilson's" if found.minutes is None else f"from resampled blocks of {_length(found.minutes)}"
    return f"It is the widest of several intervals, {way} ({_counted(found.blocks, 'block')} of five minutes{effect})"


def _length(minutes: int) -> str:
    return "a day" if minutes == _DAY * _MINUTES else "five minutes" if minutes == _MINUTES else f"{minutes} minutes"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
