"""The results of `gate` and `compare`: frozen models that every format is a view of."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from quietburn.report.model import SCHEMA_VERSION, IntervalReport, Pair, RatesReport, _Frozen

Version = Annotated[int, Field(json_schema_extra={"const": SCHEMA_VERSION})]


class Verdict(StrEnum):
    """What a gate says in the end; each has its own exit status."""

    PASS = "pass"  # noqa: S105 - a verdict
    FAIL = "fail"
    UNDECIDED = "undecided"


class Outcome(StrEnum):
    """What one check's numbers say by themselves; `unmeasured` is never turned into a pass."""

    PASS = "pass"  # noqa: S105 - an outcome
    FAIL = "fail"
    UNDECIDED = "undecided"
    UNMEASURED = "unmeasured"


class Standing(StrEnum):
    """What a difference is: one, smaller than its noise, left open by what can't be told, or not comparable at all."""

    DIFFERENCE = "difference"
    NOISE = "noise"
    UNTOLD = "cannot_be_told"
    REFUSED = "refused"


class DifferenceReport(_Frozen):
    """One number of two ledgers: after - before with its interval, or why that is no result.

    `smallest_shown` is the least difference that these sample sizes could show, and
    `requests_to_settle` how many on each side would settle a refused one.
    """

    name: str
    label: str
    unit: str
    before: float | None
    after: float | None
    before_count: int
    after_count: int
    difference: float | None
    interval95: Pair | None
    noise: float | None
    verdict: Standing
    method: str | None
    smallest_shown: float | None
    requests_to_settle: int | None
    says: str


class SideReport(_Frozen):
    """One of two ledgers; `counted_refused` are the quarantined lines that a limit counts."""

    files: list[str]
    first_ts: str | None
    last_ts: str | None
    lines: int
    quarantined: int
    counted_refused: int
    rates: RatesReport
    deadline: str


class ModelsReport(_Frozen):
    """Models that only one of two ledgers has."""

    only_before: list[str]
    only_after: list[str]


class ComparisonReport(_Frozen):
    """The result of `quietburn compare`."""

    schema_version: Version = SCHEMA_VERSION
    before: SideReport
    after: SideReport
    paired: bool
    pairs: int | None
    criteria: list[str]
    criteria_left_out: list[str]
    differences: list[DifferenceReport]
    models: ModelsReport
    notices: list[str]
    command: str


class CheckReport(_Frozen):
    """One thing that a gate was asked: its numbers, what they say, and what that counts as.

    `outcome` is the three-way test's; `counts_as` what becomes of an undecided one under
    `--undecided`. `notice` marks a pass that a reader must know about.
    """

    name: str
    outcome: Outcome
    counts_as: Verdict
    notice: bool
    observed: float | None
    interval95: Pair | None
    limit: float | None
    requests_to_settle: int | None
    says: str


class GateThreshold(_Frozen):
    """A threshold in force, in words, and where it came from."""

    name: str
    value: str
    origin: str


class NotUsable(_Frozen):
    """Requests that got no usable answer for one reason, and their share of all requests."""

    verdict: str
    count: int
    share: float


class RuleReport(_Frozen):
    """A rule's outcome in the run: `fired`, `quiet`, `not_evaluated` or `errored`, and why."""

    rule: str
    outcome: str
    severity: str | None
    says: str


class GateReport(_Frozen):
    """The result of `quietburn gate`."""

    schema_version: Version = SCHEMA_VERSION
    verdict: Verdict
    exit_status: int
    checks: list[CheckReport]
    ledger: SideReport
    usable_interval: IntervalReport | None
    not_usable: list[NotUsable]
    baseline: SideReport | None
    differences: list[DifferenceReport]
    models: ModelsReport | None
    thresholds: list[GateThreshold]
    rules: list[RuleReport]
    advice: list[str]
    notices: list[str]
    command: str
