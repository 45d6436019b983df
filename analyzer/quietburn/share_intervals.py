"""The 95 % interval of a share of requests, made in one way for every report."""

from dataclasses import dataclass

from quietburn import intervals
from quietburn.intervals import Clustered, Estimate
from quietburn.samples import RequestCounts

WILSON, CLUSTERS = "Wilson", "bootstrap of five-minute blocks"


@dataclass(frozen=True)
class Interval:
    """A share of judged requests and its interval, how it was made, and its design effect where blocks were resampled."""

    estimate: Estimate
    method: str
    blocks: int
    design_effect: float | None

    @property
    def effect(self) -> float:
        """Return the design effect of the way that was chosen; Wilson's is 1."""
        return self.design_effect or 1.0 if self.method == CLUSTERS else 1.0


def share_interval(requests: RequestCounts, *names: str) -> Interval | None:
    """Return the interval of a share of verdicts: the wider of Wilson's and the blocks'; None without a judged request.

    Its ends are those of the bounds: whoever can't be told counts against the share at the lower
    one, and for it at the upper one.
    """
    share = requests.share(*names)
    if not share.judged:
        return None
    blocks = requests.blocks(*names)
    clustered = intervals.cluster_interval(blocks) if blocks else None
    plain = intervals.wilson_bounded(share)
    chosen = intervals.wider(plain, clustered.estimate if clustered else None)
    return Interval(chosen, WILSON if chosen is plain else CLUSTERS, len(blocks) if blocks else 0, _effect(clustered))


def _effect(clustered: Clustered | None) -> float | None:
    return clustered.design_effect if clustered else None


def method_words(found: Interval) -> str:
    """Return how the interval was made, and what that leaves out."""
    if found.blocks < intervals.FEWEST_BLOCKS:
        blocks = f"{found.blocks:,} block{'' if found.blocks == 1 else 's'}"
        return (
            f"The interval is {found.method}'s and takes requests as independent, so it is optimistic in a burst "
            f"({blocks} of five minutes; from {intervals.FEWEST_BLOCKS} on they would be resampled)."
        )
    effect = "" if found.design_effect is None else f", design effect {found.design_effect:.1f}"
    return f"The interval is the wider of two: {found.method} ({found.blocks:,} blocks of five minutes{effect})."
