"""Does a night's interval hold what its sentence claims? `python -m tests.benchmarks.nights [NIGHTS [SEED]]`.

Simulated nights of eight hours with a known truth: failures that are independent, that share
their fate by the minute, and that come in a few incidents of 5 to 30 minutes; then stores of 14 such
nights. Printed is the table of docs/limits.md. Exits 1 when an interval that is called a
95 % one holds its truth in fewer than 93 % of the cases.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from quietburn.evaluate.blocks import RequestCounts
from quietburn.evaluate.rates import VERDICTS
from quietburn.evaluate.share_interval import Interval, share_interval
from quietburn.intervals.estimates import Counts, Floats

_NIGHTS = 300
_MINUTES = 480
_BASE = 0.02  # of the requests fail outside of incidents
_LEAST = 0.93
_LEAST_CLAIMS = 40  # a share of fewer intervals says little

Rates = Callable[[np.random.Generator], Floats]


@dataclass(frozen=True)
class Kind:
    """A way to fail: the failing share of each minute of a night, its mean over all nights, and without incidents."""

    name: str
    rates: Rates
    mean: float
    quiet: float
    nights: int = 1


def independent(rate: float) -> Kind:
    """Return requests that fail by themselves."""
    return Kind(f"independent, {rate:.0%} fail", lambda _: np.full(_MINUTES, rate), rate, rate)


def by_minute(share: float, failing: float) -> Kind:
    """Return a night in which a share of the minutes goes bad, each by itself."""

    def rates(generator: np.random.Generator) -> Floats:
        return np.where(generator.random(_MINUTES) < share, failing, _BASE)

    mean = share * failing + (1 - share) * _BASE
    return Kind(f"clustered, {share:.0%} of the minutes fail at {failing:.0%}", rates, mean, mean)


def in_incidents(a_night: float, failing: float, nights: int = 1) -> Kind:
    """Return nights with so many incidents on average, of 5 to 30 minutes each, that may overlap."""

    def rates(generator: np.random.Generator) -> Floats:
        found = np.full(_MINUTES, _BASE)
        for _ in range(generator.poisson(a_night)):
            length = generator.integers(5, 31)
            start = generator.integers(0, _MINUTES - length + 1)
            found[start : start + length] = failing
        return found

    bad = float(np.mean([rates(np.random.default_rng(seed)).mean() for seed in range(20_000)]))
    name = f"{a_night:g} incidents per night, failing at {failing:.0%}"
    return Kind(name + (f", {nights} nights" if nights > 1 else ""), rates, bad, _BASE, nights)


def requests(kind: Kind, a_minute: float, generator: np.random.Generator) -> RequestCounts:
    """Return the requests of a night, or of several, by five-minute block."""
    rates = np.array([kind.rates(generator) for _ in range(kind.nights)])
    whole = generator.poisson(a_minute, rates.shape)
    failed = generator.binomial(whole, rates)
    of, bad = (counts.reshape(kind.nights, -1, 5).sum(axis=2) for counts in (whole, failed))
    at = np.arange(of.shape[1]) + 288 * np.arange(kind.nights)[:, None]
    kept = of > 0
    none: Counts = np.zeros(int(kept.sum()), dtype=np.int64)
    verdicts = dict.fromkeys(VERDICTS, none) | {"failed": bad[kept], "usable": (of - bad)[kept]}
    return RequestCounts(verdicts, at[kept], timed=True)


@dataclass
class Row:
    """How many intervals of a kind were called what, and how many of them held the truth that they speak of."""

    name: str
    quiet: int = 0
    quiet_held: int = 0
    many: int = 0
    many_held: int = 0
    this_night: int = 0
    this_night_held: int = 0

    def count(self, found: Interval, kind: Kind) -> None:
        """Count one interval: without an incident it speaks of nights without, with many of all nights."""
        low, high = found.estimate.low, found.estimate.high
        of_all, of_quiet = low <= 1 - kind.mean <= high, low <= 1 - kind.quiet <= high
        if found.level is None:
            self.this_night += 1
            self.this_night_held += of_all
        elif found.spells.count:
            self.many += 1
            self.many_held += of_all
        else:
            self.quiet += 1
            self.quiet_held += of_quiet

    @property
    def claims(self) -> Iterator[tuple[int, int]]:
        """Yield how many intervals are called 95 % ones, and how many of them held."""
        yield self.quiet, self.quiet_held
        yield self.many, self.many_held

    def __str__(self) -> str:
        cells = [
            _cell(self.quiet, self.quiet_held), _cell(self.many, self.many_held), _cell(self.this_night, self.this_night_held),
        ]
        return f"| {self.name} | {' | '.join(cells)} |"


def _cell(count: int, held: int) -> str:
    return f"{held / count:.0%} of {count:,}" if count else "-"


def simulated(kind: Kind, a_minute: float, runs: int, seed: int) -> Row:
    """Return the row of a kind at so many requests a minute."""
    generator = np.random.default_rng(seed)
    row = Row(f"{kind.name}; {a_minute:g} per minute")
    for _ in range(runs):
        found = share_interval(requests(kind, a_minute, generator), "usable")
        if found:
            row.count(found, kind)
    return row


def rows(runs: int, seed: int) -> Iterator[Row]:
    """Yield the table's rows."""
    for a_minute in (2, 10):
        yield simulated(independent(0.05), a_minute, runs, seed)
        yield simulated(by_minute(0.05, 0.6), a_minute, runs, seed)
        yield simulated(in_incidents(1.5, 0.9), a_minute, runs, seed)
    yield simulated(by_minute(0.3, 0.3), 10, runs, seed)
    yield simulated(in_incidents(1.5, 0.3), 10, runs, seed)
    yield simulated(in_incidents(1.5, 0.9, nights=14), 2, runs // 2, seed)


def main(runs: int, seed: int = 15) -> int:
    """Print the table; return 1 when a promise is broken."""
    broken = False
    print("| failures | no incident seen: 95 %, for such nights | many incidents: 95 % | a few, or clusters: this night |")
    print("| --- | --- | --- | --- |")
    for row in rows(runs, seed):
        print(row, flush=True)
        broken |= any(count >= _LEAST_CLAIMS and held < _LEAST * count for count, held in row.claims)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) if len(sys.argv) > 1 else main(_NIGHTS))
