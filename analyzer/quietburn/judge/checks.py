"""The checks of a gate: the three-way test on an interval, and what each outcome counts as."""

from dataclasses import dataclass

from quietburn.intervals.estimates import Estimate
from quietburn.report.verdict import CheckReport, Outcome, Verdict


@dataclass(frozen=True)
class Manner:
    """How undecided checks count: `undecided` overrules their point, `point` compares plainly."""

    undecided: Verdict | None = None
    point: bool = False


def at_least(low: float, high: float, limit: float) -> Outcome:
    """Return pass when the whole interval reaches a minimum, fail when none of it does, else undecided."""
    return Outcome.PASS if low >= limit else Outcome.FAIL if high < limit else Outcome.UNDECIDED


def at_most(low: float, high: float, limit: float) -> Outcome:
    """Return pass when the whole interval keeps a maximum, fail when none of it does, else undecided."""
    return Outcome.PASS if high <= limit else Outcome.FAIL if low > limit else Outcome.UNDECIDED


def judged(
    manner: Manner, name: str, observed: float, stated: Estimate | None, limit: float, outcome: Outcome, says: str,
    needed: int | None, *, good: bool, untold: bool = False,
) -> CheckReport:
    """Return a check; an undecided one counts by its point, unless it was told what to count as.

    `untold` says that the limit lies between what is known and what is possible: then no point and no
    choice settles it, since what is missing is no matter of chance. `stated` is the 95 % interval,
    None where the one that decided is none.
    """
    open_ = untold or outcome is Outcome.UNDECIDED
    if untold:
        outcome, counts = Outcome.UNDECIDED, Verdict.UNDECIDED
        says += ". The requests that can't be judged decide it, so more requests would not settle it; log the missing fields"
    elif manner.point:
        counts = Verdict.PASS if good else Verdict.FAIL
    elif open_:
        counts = manner.undecided or (Verdict.PASS if good else Verdict.UNDECIDED)
        says += f". {_unsettled(needed)}"
    else:
        counts = Verdict(outcome.value)
    return CheckReport(
        name=name, outcome=outcome, counts_as=counts, notice=open_ and counts is Verdict.PASS, observed=observed,
        interval95=(stated.low, stated.high) if stated else None, limit=limit,
        requests_to_settle=needed if open_ else None, says=says,
    )


def _unsettled(needed: int | None) -> str:
    if needed is not None:
        return f"The interval contains the limit, so this is undecided; about {needed:,} such requests would settle it"
    return "The measured value equals the limit, so more requests would not settle it"


def unmeasured(name: str, says: str, limit: float | None = None) -> CheckReport:
    """Return a check that could not be made; it is never a pass, whatever undecided ones count as."""
    return CheckReport(
        name=name, outcome=Outcome.UNMEASURED, counts_as=Verdict.UNDECIDED, notice=False, observed=None, interval95=None,
        limit=limit, requests_to_settle=None, says=says,
    )


def plain(name: str, observed: float, limit: float, says: str, *, good: bool) -> CheckReport:
    """Return a check that compares a number with its limit."""
    return CheckReport(
        name=name, outcome=Outcome.PASS if good else Outcome.FAIL, counts_as=Verdict.PASS if good else Verdict.FAIL,
        notice=False, observed=observed, interval95=None, limit=limit, requests_to_settle=None, says=says,
    )
