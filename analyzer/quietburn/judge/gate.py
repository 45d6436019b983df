"""The gate: each asked threshold put to a three-way test on the 95 % interval; no file, no flag, no printing."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from quietburn.engine.verdict_columns import FALSE_SUCCESSES
from quietburn.errors import ExitStatus, UsageError
from quietburn.evaluate.blocks import AcceptanceFacts
from quietburn.evaluate.rates import VERDICTS
from quietburn.evaluate.share_interval import Interval, method_words, share_interval
from quietburn.intervals import estimates as intervals
from quietburn.intervals import settling
from quietburn.intervals.estimates import Estimate, Share
from quietburn.judge.acceptance import ADVICE, acceptance_checks
from quietburn.judge.checks import Manner, at_least, at_most, judged, unmeasured
from quietburn.judge.compare import (
    Common,
    Side,
    changed_models,
    criteria_notices,
    gate_differences,
    share_estimate,
)
from quietburn.report.build import interval_report
from quietburn.report.model import AnswersReport, Report
from quietburn.report.verdict import (
    CheckReport,
    GateReport,
    GateThreshold,
    NotUsable,
    Outcome,
    RuleReport,
    Verdict,
)
from quietburn.report.words import CRITERION, POINTS, amount, counted, interval, percent, signed

DEFAULT_INVALID_RISE = 0.01
_EXIT = {Verdict.PASS: ExitStatus.DONE, Verdict.FAIL: ExitStatus.FINDINGS, Verdict.UNDECIDED: ExitStatus.UNDECIDED}
_QUARANTINE = "max_quarantined"
_EVENTS = "events"
LEAST_COVERAGE = 0.5
LEAST_STRATUM = 0.1  # a part of the answers that is smaller is not asked by itself


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
    usable = None if _cannot_measure(now) else share_interval(now.requests, "usable")
    return GateReport(
        verdict=verdict,
        exit_status=_EXIT[verdict],
        checks=checks,
        ledger=now.told,
        usable_interval=interval_report(usable) if usable else None,
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
            raise UsageError(f"{name} ({threshold.origin}): needs a --baseline to compare with.")
    if asked.nothing:
        raise UsageError(
            "nothing to decide: give --min-usable 95%, --max-gap, --baseline with --max-drop, --require or --acceptance "
            "(or a [gate] table in quietburn.toml)."
        )


def _verdict(checks: list[CheckReport]) -> Verdict:
    """Return the worst of the checks; what every number hangs on outweighs all: lines that were read, events to judge."""
    if any(check.name in (_QUARANTINE, _EVENTS) and check.counts_as is not Verdict.PASS for check in checks):
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
    """Yield what keeps a gate from judging: nothing to judge, too many refused lines, rules that failed."""
    if not now.report.rates.attempts:
        yield unmeasured(_EVENTS, "no call in the ledger generates an answer, so there is nothing to judge")
    limit = asked.max_quarantined.value
    for name, side in (("ledger", now), ("baseline", baseline.side if baseline else None)):
        lines, counted = (side.report.ledger.lines, side.counted_refused) if side else (0, 0)
        if counted > limit * lines:
            says = f"{counted:,} of {lines:,} lines of the {name} were refused; at most {percent(limit)} may be"
            yield unmeasured(_QUARANTINE, says, limit)
    if now.report.errored:
        failed = ", ".join(errored.rule for errored in now.report.errored)
        yield unmeasured("rules", f"{len(now.report.errored)} rules failed ({failed}); their result is unknown")


def _required(name: str, report: Report) -> CheckReport:
    """Ask that a criterion can be told: for half of the 2xx answers, and of each large part of them that is logged alike."""
    criterion = report.rates.criteria[name]
    lacking = [_stratum(a, name) for a in report.rates.answers if _lacks(a, name, report.rates.answers)]
    good = criterion.measured and not lacking
    words = f"{CRITERION[name]} is known for {percent(criterion.coverage)} of the 2xx answers"
    if criterion.coverage is None:
        words = f"there is no 2xx answer, so {CRITERION[name]} doesn't matter"
    where = f"; of those that are {', '.join(lacking)}" if lacking else ""
    return CheckReport(
        name=f"require_{name}", outcome=Outcome.PASS if good else Outcome.FAIL,
        counts_as=Verdict.PASS if good else Verdict.FAIL, notice=False, observed=criterion.coverage,
        interval95=None, limit=LEAST_COVERAGE, requests_to_settle=None,
        says=words if good else f"{words}{where}. It is required, so at least half must be known: is a field no longer logged?",
    )


def _lacks(answers: AnswersReport, name: str, every: list[AnswersReport]) -> bool:
    is_large = answers.answered >= LEAST_STRATUM * sum(other.answered for other in every)
    return is_large and not answers.criteria[name].measured


def _stratum(answers: AnswersReport, name: str) -> str:
    streamed = {True: "streamed", False: "not streamed", None: "not known to be streamed or not"}[answers.stream]
    return f"{answers.dialect}, {streamed}: for {percent(answers.criteria[name].coverage)} of {answers.answered:,}"


# The three-way test


def _min_usable(asked: Asked, limit: float, now: Side) -> CheckReport:
    found = share_interval(now.requests, "usable")
    problem = _cannot_measure(now)
    if problem or found is None:
        return unmeasured("min_usable", problem or "no request can be judged", limit)
    share = now.requests.share("usable")
    says = f"usable rate {_share_words(share, found)}; the minimum is {percent(limit)}"
    others = sum(entry.events for entry in now.report.left_out if entry.kind == "other")
    untold = share.part / (share.whole + others) < limit <= share.most
    if untold and others:
        says += f"; {counted(others, 'event')} of unknown kind were left out and may have been such requests: see [routes]"
    outcome = at_least(found.estimate.low, found.estimate.high, limit)
    needed = settling.requests_to_settle(share, limit, found.effect)
    return judged(
        asked.manner, "min_usable", share.rate, found.stated, limit, outcome, says, needed,
        good=share.rate >= limit, untold=untold,
    )


def _max_gap(asked: Asked, limit: float, now: Side) -> CheckReport:
    found = share_interval(now.requests, *FALSE_SUCCESSES)
    problem = _cannot_measure(now)
    if problem or found is None:
        return unmeasured("max_gap", problem or "no request can be judged", limit)
    share = now.requests.share(*FALSE_SUCCESSES)
    says = f"false-success share {_share_words(share, found)}; the maximum is {percent(limit)}"
    untold = share.least <= limit < share.most
    outcome = at_most(found.estimate.low, found.estimate.high, limit)
    needed = settling.requests_to_settle(share, limit, found.effect)
    return judged(
        asked.manner, "max_gap", share.rate, found.stated, limit, outcome, says, needed,
        good=share.rate <= limit, untold=untold,
    )


def _share_words(share: Share, found: Interval) -> str:
    untold = (
        f" ({share.unknown:,} of {share.whole:,} can't be judged: between {percent(share.least)} and "
        f"{percent(share.most)} of all)" if share.unknown else ""
    )
    around = interval(found.estimate.low, found.estimate.high, found.level)
    return f"{percent(share.rate)} {around} of {counted(share.judged, 'judged request')}{untold}"


def _max_drop(asked: Asked, limit: float, baseline: Baseline) -> CheckReport:
    if "on_time" not in baseline.common.both:
        return unmeasured("max_drop", "on time is not measured in both ledgers, so their usable rates can't be compared", limit)
    sides = {"baseline": baseline.side, "ledger": baseline.now}
    problems = [f"{name}: {problem}" for name, side in sides.items() if (problem := _too_few(side))]
    if problems:
        return unmeasured("max_drop", "; ".join(problems), limit)
    # A drop is the difference turned round: what the baseline had more.
    estimate, _ = share_estimate(baseline.now, baseline.side, "usable")
    before, after = (side.requests.share("usable") for side in (baseline.side, baseline.now))
    says = (
        f"usable rate {percent(after.rate)} of {after.judged:,} against {percent(before.rate)} of {before.judged:,} "
        f"in the baseline: {_change(estimate, 'drop')}; at most {amount(limit, POINTS)} is allowed"
    )
    needed = settling.requests_to_settle_difference(after, before, limit)
    outcome = at_most(estimate.low, estimate.high, limit)
    untold = before.least - after.most <= limit < before.most - after.least
    return judged(
        asked.manner, "max_drop", estimate.point, estimate, limit, outcome, says, needed,
        good=estimate.point <= limit, untold=untold,
    )


def _max_invalid_rise(asked: Asked, limit: float, now: Side, before: Side) -> CheckReport:
    old, new = before.requests.share("invalid", of_all=True), now.requests.share("invalid", of_all=True)
    if not old.whole or not new.whole:
        return unmeasured("max_invalid_rise", "one of the ledgers has no request", limit)
    estimate = intervals.newcombe_bounded(old, new)
    says = (
        f"{percent(new.rate)} of {new.whole:,} requests were invalid, against {percent(old.rate)} of {old.whole:,}: "
        f"{_change(estimate, 'rise')}; at most {amount(limit, POINTS)} is allowed"
    )
    needed = settling.requests_to_settle_difference(old, new, limit)
    outcome = at_most(estimate.low, estimate.high, limit)
    good = estimate.point <= limit
    return judged(asked.manner, "max_invalid_rise", estimate.point, estimate, limit, outcome, says, needed, good=good)


def _cannot_measure(side: Side) -> str | None:
    if not side.report.rates.criteria["on_time"].measured:
        return (
            "most answers can't be judged on time: log deadline_ms and latency_ms (or start and end), "
            "or configure deadline_ms"
        )
    return _too_few(side)


def _too_few(side: Side) -> str | None:
    """Return why no rate over the judged requests of a side can be stated; None where it can."""
    share = side.requests.share("usable")
    if not share.whole:
        return "there is no valid request to judge"
    if share.judged < LEAST_COVERAGE * share.whole:
        return f"{share.unknown:,} of {counted(share.whole, 'valid request')} can't be judged, more than half"
    return None


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


def _notices(asked: Asked, usable: Interval | None, baseline: Baseline | None, checks: list[CheckReport]) -> list[str]:
    notices = [f"{check.name} passes by its point estimate; its interval doesn't settle it." for check in checks if check.notice]
    if asked.manner.point:
        notices.append("--point: point estimates were compared, ignoring their uncertainty.")
    if usable:
        notices.append(method_words(usable))
    if baseline:
        notices += criteria_notices(baseline.common)
        if asked.max_drop is None:
            notices.append("No --max-drop: the change of the usable rate is shown but not judged.")
    notices.append("The gateway's clock misses the network time to and from the caller, so on time is optimistic by that much.")
    return notices

