"""Which findings are right: planted, right beside a fault, or wrong."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tests.precision.nights import FAULT
from tests.precision.outcomes import Found, Outcome, Span, Told

EARLY_S = 60.0  # a finding begins with its first minute
SETTLING_S = 1800.0  # after a fault has ended, queues drain and late answers end
Verdict = Literal["planted", "beside", "wrong"]
Expected = Callable[[str], tuple[frozenset[str], frozenset[str]]]  # fault to rules that name it, and rules right beside it


@dataclass(frozen=True)
class Case:
    """A night, the rules that name its fault, and those that are right beside it."""

    outcome: Outcome
    named: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()

    @property
    def window(self) -> Span | None:
        """Return when a finding is about the fault; None on a healthy night."""
        fault, length = self.outcome.fault, self.outcome.length
        if fault is None:
            return None
        return Span(start=max(0.0, fault.start - EARLY_S), end=min(length, fault.end + SETTLING_S))

    @property
    def right(self) -> frozenset[str]:
        """Return the rules that are right on this night."""
        return self.named | self.beside

    def verdict(self, finding: Found) -> Verdict:
        """Return whether a finding names the fault, is right beside it, or is wrong."""
        if not self.touches(finding.window) or finding.rule not in self.right:
            return "wrong"
        return "planted" if finding.rule in self.named else "beside"

    def touches(self, window: Span) -> bool:
        """Whether a window lies at the fault."""
        own = self.window
        return own is not None and window.start <= own.end and window.end >= own.start

    def planted(self, rule: str | None = None) -> list[Found]:
        """Return the findings that name the fault, of one rule or of any."""
        return [f for f in self.outcome.raised if self.verdict(f) == "planted" and rule in (None, f.rule)]

    @property
    def cannot_be_told(self) -> bool:
        """Whether the ledger lacks what every rule that names the fault needs."""
        return bool(self.named) and self.named <= set(self.outcome.not_evaluated)

    @property
    def told_as(self) -> Told | None:
        """Return the incident on top of those at the fault: what a person reads first."""
        return next((i for i in self.outcome.incidents if i.severity != "info" and self.touches(i.window)), None)


_TO_BE_SAID = "NOTICE"  # the simulator's word for a fault that it expects no rule to name
# Such faults are told by the counts of lines and by notices.
SAID: Mapping[str, Callable[[Outcome], bool]] = {
    "dup_lines": lambda outcome: (outcome.reshipped if outcome.night.place == "reshipped" else outcome.duplicates) > 0,
    "deadline_600": lambda outcome: any("600 s" in notice for notice in outcome.notices),
}
# Rules that the simulator doesn't know, by the fault that they name.
ALSO_NAMED: Mapping[str, frozenset[str]] = {"clock_skew": frozenset({"clock-skew"})}
# Rules that the simulator's author didn't expect beside a fault, and why each is right there.
ALSO_BESIDE: Mapping[str, Mapping[str, str]] = {
    "failover_late": {"healthy-but-silent": "a backend at 3 % of its pace ends nothing in time while its checks pass"},
    "idle_cut": {"empty-but-billed": "a stream that is cut while the model still reasons has cost tokens and brought no text"},
}
# What a log that lacks something shows on a healthy night, and that is so: by the log and the rule.
RIGHT_WHEN_HEALTHY: Mapping[tuple[str, str], str] = {
    ("nolabel", "unlabelled-probe"): "right: without labels the simulator's two synthetic monitors are unlabelled probes",
}


def case(outcome: Outcome, expected: Expected) -> Case:
    """Return an outcome as a case."""
    if outcome.night.kind != FAULT:
        return Case(outcome)
    fault = outcome.night.name
    named, beside = expected(fault)
    named = named - {_TO_BE_SAID} | ALSO_NAMED.get(fault, frozenset())
    return Case(outcome, named, beside | frozenset(ALSO_BESIDE.get(fault, ())))


def planted_cases(cases: Iterable[Case]) -> list[Case]:
    """Return the cases with a fault that some rule names and whose ledger tells it."""
    return [each for each in cases if each.named and not each.cannot_be_told]
