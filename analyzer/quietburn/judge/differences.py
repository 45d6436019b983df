"""A difference between two ledgers, or why there is none to report: noise, unknown values, or a refusal."""

from quietburn.intervals.estimates import Estimate, Share
from quietburn.report.verdict import DifferenceReport, Standing
from quietburn.report.words import amount, signed

LEAST_JUDGED = 0.5


def uncountable(before: Share, after: Share) -> str | None:
    """Return why two shares can't be compared; None where they can."""
    if not before.judged or not after.judged:
        return "one side has none"
    if any(share.judged < LEAST_JUDGED * share.whole for share in (before, after)):
        return "more than half of one side can't be judged"
    return None


def untold(before: Share, after: Share) -> tuple[float, float] | None:
    """Return between which differences the real one lies, where what can't be told alone leaves open which way it goes."""
    low, high = after.least - before.most, after.most - before.least
    return (low, high) if low < 0 < high and (before.unknown or after.unknown) else None


def refused(name: str, label: str, unit: str, why: str, before: int, after: int) -> DifferenceReport:
    """Return a comparison that was not made, with the reason."""
    return DifferenceReport(
        name=name, label=label, unit=unit, before=None, after=None, before_count=before, after_count=after, difference=None,
        interval95=None, noise=None, verdict=Standing.REFUSED, method=None, smallest_shown=None, requests_to_settle=None,
        says=f"not compared: {why}",
    )


def difference(
    name: str, label: str, unit: str, values: tuple[float, float], counts: tuple[int, int], estimate: Estimate, method: str,
    *, smallest: float | None, needed: int | None, left_open: tuple[float, float] | None = None,
) -> DifferenceReport:
    """Return a difference with its interval, or what keeps it from being one; `left_open` is what `untold` says of it."""
    real = estimate.settled()
    standing = Standing.DIFFERENCE if real else Standing.UNTOLD if left_open else Standing.NOISE
    return DifferenceReport(
        name=name, label=label, unit=unit, before=values[0], after=values[1], before_count=counts[0], after_count=counts[1],
        difference=estimate.point, interval95=(estimate.low, estimate.high), noise=estimate.noise,
        verdict=standing, method=method, smallest_shown=smallest or None, requests_to_settle=None if real else needed,
        says=_untold_words(estimate, left_open, unit) if left_open and not real else difference_words(estimate, unit),
    )


def _untold_words(estimate: Estimate, untold: tuple[float, float], unit: str) -> str:
    low, high = signed(untold[0], unit).removesuffix(f" {unit}"), signed(untold[1], unit)
    judged = f"{signed(estimate.point, unit)} over judged requests"
    return f"undecided: {judged}, but {low} to {high} including those that can't be judged"


def difference_words(estimate: Estimate, unit: str) -> str:
    """Return a difference with its interval, or the refusal of one whose interval contains 0."""
    if estimate.settled():
        low, high = signed(estimate.low, unit).removesuffix(f" {unit}"), signed(estimate.high, unit)
        return f"{signed(estimate.point, unit)} [{low} to {high}]"
    return f"not a measurement: {signed(estimate.point, unit)} against a noise of ±{amount(estimate.noise, unit)}"
