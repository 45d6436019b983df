"""Precision, recall, delays and pages, with intervals, beside a random firer and a rule that always fires."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy import stats

from quietburn.intervals.estimates import wilson
from tests.precision.matching import Case
from tests.precision.nights import HEALTHY, STRENGTHS
from tests.precision.outcomes import Found

WEEK_S = 7 * 86_400.0
_ONE_SIDED = 0.95


@dataclass(frozen=True)
class Part:
    """So many of so many."""

    hits: int
    of: int

    @property
    def share(self) -> float | None:
        """Return the share, None of nothing."""
        return self.hits / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return Wilson's 95 % interval."""
        return wilson(self.hits, self.of) if self.of else None


@dataclass(frozen=True)
class Firer:
    """What something that knows nothing is expected to reach; recall is by strength, None where there is no fault."""

    precision: float | None
    recall: tuple[float | None, ...]


@dataclass(frozen=True)
class RuleTally:
    """One rule over all nights. Delays are in seconds: from the fault's start to the alert, from its end to the alert's."""

    rule: str
    precision: Part
    recall: tuple[Part, ...]
    detected: tuple[float, ...]
    reset: tuple[float, ...]
    pages: int
    pages_week: float
    pages_week_most: float
    random: Firer
    always: float


def tally(rule: str, cases: Sequence[Case]) -> RuleTally:
    """Return one rule's numbers over all cases."""
    found = [(case, finding) for case in cases for finding in case.outcome.raised if finding.rule == rule]
    right = sum(case.verdict(finding) != "wrong" for case, finding in found)
    naming = [case for case in cases if rule in case.named and rule not in case.outcome.not_evaluated]
    pages, seconds = healthy_pages(cases, rule)
    return RuleTally(
        rule=rule,
        precision=Part(right, len(found)),
        recall=tuple(Part(sum(bool(c.planted(rule)) for c in at), len(at)) for at in by_strength(naming)),
        detected=tuple(delay for case in naming if (delay := detection(case, rule)) is not None),
        reset=tuple(delay for case in naming if (delay := resetting(case, rule)) is not None),
        pages=pages,
        pages_week=pages * WEEK_S / seconds if seconds else math.nan,
        pages_week_most=most_events(pages) * WEEK_S / seconds if seconds else math.nan,
        random=random_firer(rule, [finding for _, finding in found], cases, naming),
        always=sum(rule in case.right for case in cases) / len(cases),
    )


def by_strength(cases: Iterable[Case]) -> list[list[Case]]:
    """Return cases weak, moderate, strong."""
    cases = list(cases)
    return [[case for case in cases if case.outcome.night.strength == strength] for strength in range(len(STRENGTHS))]


def detection(case: Case, rule: str | None = None) -> float | None:
    """Return how long after the fault's start the first alert that names it holds; None where none does."""
    starts = [finding.alert.start for finding in case.planted(rule)]
    return min(starts) - case.outcome.fault.start if starts and case.outcome.fault else None


def resetting(case: Case, rule: str | None = None) -> float | None:
    """Return how long after the fault's end the last alert that names it holds; None where the night ends before that shows."""
    ends, fault = [finding.alert.end for finding in case.planted(rule)], case.outcome.fault
    if not ends or fault is None or fault.end >= case.outcome.length:
        return None
    return max(0.0, max(ends) - fault.end)


def healthy_pages(cases: Iterable[Case], rule: str | None = None) -> tuple[int, float]:
    """Return the pages on healthy nights and the seconds watched.

    The variants of a night are one night logged in several ways: the one with most pages stands for it.
    """
    nights: dict[tuple[str, int], tuple[int, float]] = {}
    for each in cases:
        night = each.outcome.night
        if night.kind == HEALTHY:
            pages = sum(f.severity == "page" and rule in (None, f.rule) for f in each.outcome.findings)
            before = nights.get((night.name, night.seed), (0, 0.0))
            nights[night.name, night.seed] = (max(before[0], pages), max(before[1], each.outcome.length))
    return sum(pages for pages, _ in nights.values()), sum(seconds for _, seconds in nights.values())


def most_events(seen: int) -> float:
    """Return the exact one-sided 95 % upper bound of a Poisson mean (Garwood, Biometrika 28, 1936)."""
    return float(stats.chi2.ppf(_ONE_SIDED, 2 * (seen + 1))) / 2


def most_share(part: Part) -> float:
    """Return the exact one-sided 95 % upper bound of a share (Clopper and Pearson, Biometrika 26, 1934)."""
    return 1.0 if part.hits == part.of else float(stats.beta.ppf(_ONE_SIDED, part.hits + 1, part.of - part.hits))


def random_firer(rule: str, findings: Sequence[Found], cases: Sequence[Case], naming: Sequence[Case]) -> Firer:
    """Return what the rule's own alerts would reach if each began at a random instant of a random night."""
    total = sum(case.outcome.length for case in cases)
    lengths = [finding.alert.length for finding in findings]
    if not lengths or not total:
        return Firer(None, (None,) * len(STRENGTHS))
    right = [case for case in cases if rule in case.right]
    precision = sum(_lands(case, length) for length in lengths for case in right) / total / len(lengths)
    return Firer(precision, tuple(_reached(at, lengths, total) for at in by_strength(naming)))


def _reached(cases: Sequence[Case], lengths: Sequence[float], total: float) -> float | None:
    """Return the expected share of cases at whose fault at least one alert lands."""
    if not cases:
        return None
    return sum(1 - math.prod(1 - _lands(case, length) / total for length in lengths) for case in cases) / len(cases)


def _lands(case: Case, length: float) -> float:
    """Return the seconds of a night in which an alert of a length may begin to touch the fault."""
    window = case.window
    return min(case.outcome.length, window.length + length) if window else 0.0


def quantile(values: Sequence[float], q: float) -> float | None:
    """Return the smallest value that at least a share q of the values doesn't exceed; None of no values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)] if ordered else None
