"""The gate: each asked threshold put to a three-way test on the 95 % interval; no file, no flag, no printing."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from quietburn import intervals
from quietburn.acceptance import ADVICE, acceptance_checks
from quietburn.answers import VERDICTS
from quietburn.checks import Manner, at_least, at_most, judged, unmeasured
from quietburn.compare import (
    CLUSTERS,
    Common,
    Side,
    changed_models,
    criteria_notices,
    gate_differences,
    share_estimate,
)
from quietburn.engine.verdicts import FALSE_SUCCESSES
from quietburn.errors import ExitStatus, UsageError
from quietburn.intervals import Clustered, Estimate
from quietburn.report.model import Report
from quietburn.report.verdict import (
    CheckReport,
    GateReport,
    GateThreshold,
    IntervalReport,
    NotUsable,
    Outcome,
    RuleReport,
    Verdict,
)
from quietburn.report.words import CRITERION, POINTS, amount, counted, interval, percent, signed
from quietburn.samples import AcceptanceFacts

DEFAULT_INVALID_RISE = 0.01
_EXIT = {Verdict.PASS: ExitStatus.DONE, Verdict.FAIL: ExitStatus.FINDINGS, Verdict.UNDECIDED: ExitStatus.UNDECIDED}
_QUARANTINE = "max_quarantined"


@dataclass(frozen=True)
class Threshold:
    """A share that is asked for, and who asked: a flag, the configuration, the default."""

    value: float
    origin: str


@dataclass(frozen=True)
class Required:
    """Criteria that must be measured, and who asked."""

    criteria: tuple[str, ...]
    origin: str


@dataclass(frozen=True)
class Asked:
    """Everything that a gate is asked; what is None is not judged."""

    min_usable: Threshold | None = None
    max_gap: Threshold | None = None
    max_drop: Threshold | None = None
    max_invalid_rise: Threshold | None = None
    require: Required | None = None
    max_quarantined: Threshold = Threshold(0.05, "default")
    manner: Manner = field(default_factory=Manner)
    acceptance: bool = False

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to decide on."""
        asked = (self.min_usable, self.max_gap, self.max_drop, self.max_invalid_rise, self.require)
        return not self.acceptance and all(threshold is None for threshold in asked)


@dataclass(frozen=True)
class Baseline:
    """What the ledger is held against, judged by the criteria that both measure."""

    side: Side
    now: Side
    common: Common


def decide(
    asked: Asked, now: Side, baseline: Baseline | None = None, acceptance: AcceptanceFacts | None = None, command: str = ""
) -> GateReport:
    """Return the verdict on a ledger, with every check, threshold and notice behind it.

    Raises UsageError when nothing was asked, or a drop without a baseline to drop from.
    """
    refuse_empty(asked, has_baseline=baseline is not None)
    checks = [*_checks(asked, now, baseline), *(acceptance_checks(acceptance) if asked.acceptance and acceptance else ())]
    verdict = _verdict(checks)
    usable = _usable_interval(now)
    return GateReport(
        verdict=verdict,
        exit_status=_EXIT[verdict],
        checks=checks,
        ledger=now.told,
        usable_interval=usable,
        not_usable=_not_usable(now.report),
        baseline=baseline.side.told if baseline else None,
        differences=gate_differences(baseline.side, baseline.now, baseline.common) if baseline else [],
        models=changed_models(baseline.side, now) if baseline else None,
        thresholds=list(_thresholds(asked)),
        rules=rule_outcomes(now.report),
        advice=[ADVICE] if any(c.name.startswith("acceptance") and c.counts_as is Verdict.FAIL for c in checks) else [],
        notices=_notices(asked, usable, baseline, checks),
        command=command,
    )


def with_baseline(asked: Asked) -> Asked:
    """Return what is asked with what a baseline adds by itself: invalid requests may not rise by over a point."""
    return asked if asked.max_invalid_rise else replace(asked, max_invalid_rise=Threshold(DEFAULT_INVALID_RISE, "default"))


def refuse_empty(asked: Asked, *, has_baseline: bool) -> None:
    """Refuse a gate that is asked nothing, or a change without a baseline. Raises UsageError."""
    for name, threshold in (("max_drop", asked.max_drop), ("max_invalid_rise", asked.max_invalid_rise)):
        if threshold and not has_baseline:
            raise UsageError(f"{name} ({threshold.origin}): needs a --baseline to hold the ledger against.")
    if asked.nothing:
        raise UsageError(
            "nothing to decide on: give --min-usable 95%, --max-gap, --baseline with --max-drop, --require or --acceptance "
            "(or a [gate] table in quietburn.toml)."
        )


def _verdict(checks: list[CheckReport]) -> Verdict:
    """Return the worst of the checks; too many refused lines outweigh all, since every number hangs on them."""
    if any(check.name == _QUARANTINE and check.counts_as is not Verdict.PASS for check in checks):
        return Verdict.UNDECIDED
    counted = {check.counts_as for check in checks}
    return next((verdict for verdict in (Verdict.FAIL, Verdict.UNDECIDED) if verdict in counted), Verdict.PASS)


def _checks(asked: Asked, now: Side, baseline: Baseline | None) -> Iterator[CheckReport]:
    yield from _reading(asked, now, baseline)
    if asked.require:
        yield from (_required(name, now.report) for name in asked.require.criteria)
    if asked.min_usable:
        yield _min_usable(asked, asked.min_usable.value, now)
    if asked.max_gap:
        yield _max_gap(asked, asked.max_gap.value, now)
    if asked.max_drop and baseline:
        yield _max_drop(asked, asked.max_drop.value, baseline)
    if asked.max_invalid_rise and baseline:
        yield _max_invalid_rise(asked, asked.max_invalid_rise.value, now, baseline.side)


# What was read at all


def _reading(asked: Asked, now: Side, baseline: Baseline | None) -> Iterator[CheckReport]:
    """Yield what keeps a gate from judging: too many refused lines, rules that failed."""
    limit = asked.max_quarantined.value
    for name, side in (("ledger", now), ("baseline", baseline.side if baseline else None)):
        lines, counted = (side.report.ledger.lines, side.counted_refused) if side else (0, 0)
        if counted > limit * lines:
            says = f"{counted:,} of {lines:,} lines of the {name} were refused; at most {percent(limit)} may be"
            yield unmeasured(_QUARANTINE, says, limit)
    if now.report.errored:
        failed = ", ".join(errored.rule for errored in now.report.errored)
        yield unmeasured("rules", f"{len(now.report.errored)} rules failed ({failed}); they found neither something nor nothing")


def _required(name: str, report: Report) -> CheckReport:
    criterion = report.rates.criteria[name]
    words = f"{CRITERION[name]} can be told for {percent(criterion.coverage)} of the 2xx attempts"
    if criterion.coverage is None:
        words = f"there is no 2xx attempt, so nothing hangs on {CRITERION[name]}"
    return CheckReport(
        name=f"require_{name}", outcome=Outcome.PASS if criterion.measured else Outcome.FAIL,
        counts_as=Verdict.PASS if criterion.measured else Verdict.FAIL, notice=False, observed=criterion.coverage,
        interval95=None, limit=0.5, requests_to_settle=None,
        says=words if criterion.measured else f"{words}; it is required, so half must say it: has a field gone from the log?",
    )


# The three-way test


def _min_usable(asked: Asked, limit: float, now: Side) -> CheckReport:
    if problem := _cannot_measure(now):
        return unmeasured("min_usable", problem, limit)
    share = now.requests.share("usable")
    estimate, clustered = _own_interval(now, "usable")
    says = (
        f"usable rate {percent(share.rate)} {_range(estimate)} of {share.whole:,} valid requests; "
        f"at least {percent(limit)} is asked"
    )
    outcome = at_least(estimate.low, estimate.high, limit)
    needed = intervals.requests_to_settle(share, limit, _effect(estimate, clustered))
    return judged(asked.manner, "min_usable", share.rate, estimate, limit, outcome, says, needed, good=share.rate >= limit)


def _max_gap(asked: Asked, limit: float, now: Side) -> CheckReport:
    if problem := _cannot_measure(now):
        return unmeasured("max_gap", problem, limit)
    share = now.requests.share(*FALSE_SUCCESSES)
    estimate, clustered = _own_interval(now, *FALSE_SUCCESSES)
    # Who is unknown counts against the ledger here as it does in the usable rate.
    more = f", {percent(share.most)} with those that can't be told," if share.unknown else ""
    says = (
        f"false-success share {percent(share.rate)}{more} {_range(estimate)} of {share.whole:,} valid requests; "
        f"at most {percent(limit)} is allowed"
    )
    outcome = at_most(estimate.low, estimate.high, limit)
    needed = intervals.requests_to_settle(share, limit, _effect(estimate, clustered))
    return judged(asked.manner, "max_gap", share.rate, estimate, limit, outcome, says, needed, good=share.most <= limit)


def _max_drop(asked: Asked, limit: float, baseline: Baseline) -> CheckReport:
    if "on_time" not in baseline.common.both:
        return unmeasured("max_drop", "on time is not measured in both ledgers, so their usable rates can't be compared", limit)
    sides = {"baseline": baseline.side, "ledger": baseline.now}
    problems = [f"{name}: {problem}" for name, side in sides.items() if (problem := _no_valid(side))]
    if problems:
        return unmeasured("max_drop", "; ".join(problems), limit)
    # A drop is the difference turned round: what the baseline had more.
    estimate, _ = share_estimate(baseline.now, baseline.side, "usable")
    before, after = (side.requests.share("usable") for side in (baseline.side, baseline.now))
    says = (
        f"usable rate {percent(after.rate)} of {after.whole:,} against {percent(before.rate)} of {before.whole:,} "
        f"in the baseline: {_change(estimate, 'drop')}; at most {amount(limit, POINTS)} is allowed"
    )
    needed = intervals.requests_to_settle_difference(after, before, limit)
    outcome = at_most(estimate.low, estimate.high, limit)
    return judged(asked.manner, "max_drop", estimate.point, estimate, limit, outcome, says, needed, good=estimate.point <= limit)


def _max_invalid_rise(asked: Asked, limit: float, now: Side, before: Side) -> CheckReport:
    old, new = before.requests.share("invalid", of_all=True), now.requests.share("invalid", of_all=True)
    if not old.whole or not new.whole:
        return unmeasured("max_invalid_rise", "one of the ledgers has no request", limit)
    estimate = intervals.newcombe_bounded(old, new)
    says = (
        f"{percent(new.rate)} of {new.whole:,} requests were the caller's fault against {percent(old.rate)} of {old.whole:,}: "
        f"{_change(estimate, 'rise')}; at most {amount(limit, POINTS)} is allowed"
    )
    needed = intervals.requests_to_settle_difference(old, new, limit)
    outcome = at_most(estimate.low, estimate.high, limit)
    good = estimate.point <= limit
    return judged(asked.manner, "max_invalid_rise", estimate.point, estimate, limit, outcome, says, needed, good=good)


def _cannot_measure(side: Side) -> str | None:
    if not side.report.rates.criteria["on_time"].measured:
        return (
            "nobody can say which answers were in time: log deadline_ms and latency_ms (or start and end), "
            "or configure deadline_ms"
        )
    return _no_valid(side)


def _no_valid(side: Side) -> str | None:
    return None if side.requests.valid else "there is no valid request to judge"


def _own_interval(side: Side, *names: str) -> tuple[Estimate, Clustered | None]:
    """Return the wider of Wilson's and the blocks' interval, and the blocks' where there are enough of them."""
    plain = intervals.wilson_bounded(side.requests.share(*names))
    blocks = side.requests.blocks(*names)
    clustered = intervals.cluster_interval(blocks) if blocks else None
    return intervals.wider(plain, clustered.estimate if clustered else None), clustered


def _effect(chosen: Estimate, clustered: Clustered | None) -> float:
    """Return the design effect of the interval chosen; Wilson's is 1."""
    return clustered.design_effect or 1.0 if clustered and chosen is clustered.estimate else 1.0


def _usable_interval(side: Side) -> IntervalReport | None:
    if _cannot_measure(side):
        return None
    chosen, clustered = _own_interval(side, "usable")
    blocks = side.requests.blocks("usable")
    return IntervalReport(
        low=chosen.low, high=chosen.high, method=CLUSTERS if clustered and chosen is clustered.estimate else "Wilson",
        blocks=len(blocks) if blocks else 0, design_effect=clustered.design_effect if clustered else None,
    )


def _range(estimate: Estimate) -> str:
    return interval((estimate.low, estimate.high))


def _change(estimate: Estimate, word: str) -> str:
    low, high = signed(estimate.low, POINTS).removesuffix(f" {POINTS}"), signed(estimate.high, POINTS)
    return f"a {word} of {amount(estimate.point, POINTS)} [{low} to {high}]"


# What stands beside the verdict


def _not_usable(report: Report) -> list[NotUsable]:
    verdicts, requests = report.rates.verdicts, report.rates.requests
    reasons = sorted((name for name in VERDICTS if name != "usable" and verdicts[name]), key=lambda name: -verdicts[name])
    return [NotUsable(verdict=name, count=verdicts[name], share=verdicts[name] / requests) for name in reasons]


def _thresholds(asked: Asked) -> Iterator[GateThreshold]:
    for name in ("min_usable", "max_gap"):
        if threshold := getattr(asked, name):
            yield GateThreshold(name=name, value=percent(threshold.value), origin=threshold.origin)
    for name in ("max_drop", "max_invalid_rise"):
        if threshold := getattr(asked, name):
            yield GateThreshold(name=name, value=amount(threshold.value, POINTS), origin=threshold.origin)
    if asked.require:
        yield GateThreshold(name="require", value=", ".join(asked.require.criteria), origin=asked.require.origin)
    yield GateThreshold(name=_QUARANTINE, value=percent(asked.max_quarantined.value), origin=asked.max_quarantined.origin)


def rule_outcomes(report: Report) -> list[RuleReport]:
    """Return every rule's outcome in a run, by name."""
    rules = [RuleReport(rule=name, outcome="quiet", severity=None, says="found nothing") for name in report.quiet]
    rules += [
        RuleReport(rule=left.rule, outcome="not_evaluated", severity=None, says=f"missing: {', '.join(left.missing)}")
        for left in report.not_evaluated
    ]
    rules += [RuleReport(rule=e.rule, outcome="errored", severity=None, says=e.problem) for e in report.errored]
    for name in dict.fromkeys(finding.rule for finding in report.findings):  # worst first
        own = [finding for finding in report.findings if finding.rule == name]
        says = f"{own[0].title} ({counted(len(own), 'finding')}, {counted(sum(finding.count for finding in own), 'line')})"
        rules.append(RuleReport(rule=name, outcome="fired", severity=own[0].severity, says=says))
    return sorted(rules, key=lambda rule: rule.rule)


def _interval_words(usable: IntervalReport) -> str:
    if usable.blocks < intervals.FEWEST_BLOCKS:
        return (
            f"The interval is {usable.method}'s and takes requests as independent, so it is optimistic in a burst "
            f"({counted(usable.blocks, 'block')} of five minutes; from {intervals.FEWEST_BLOCKS} on they would be resampled)."
        )
    effect = "" if usable.design_effect is None else f", design effect {usable.design_effect:.1f}"
    return f"The interval is the wider of two: {usable.method} ({usable.blocks:,} blocks of five minutes{effect})."


def _notices(asked: Asked, usable: IntervalReport | None, baseline: Baseline | None, checks: list[CheckReport]) -> list[str]:
    notices = [f"{check.name} passes by its number; its interval doesn't decide it." for check in checks if check.notice]
    if asked.manner.point:
        notices.append("--point: the numbers were compared plainly, whatever their uncertainty.")
    if usable:
        notices.append(_interval_words(usable))
    if baseline:
        notices += criteria_notices(baseline.common)
        if asked.max_drop is None:
            notices.append("No --max-drop: the change of the usable rate is shown, not judged.")
    notices.append("The gateway's clock misses the way from and to the caller; on time is optimistic by as much.")
    return notices

