"""From results to the report model."""

from collections.abc import Iterable
from dataclasses import dataclass

from quietburn.common.timerange import iso
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.evaluate.findings import Finding, TopEntry
from quietburn.evaluate.incidents import Incident
from quietburn.evaluate.left_out import LeftOut
from quietburn.evaluate.rates import Criterion, FailureDomain, Rates
from quietburn.evaluate.rules import Outcome, RuleResult
from quietburn.evaluate.share_interval import Interval
from quietburn.ledger.counts import FileCounts
from quietburn.report import model
from quietburn.report.unlock import unlock
from quietburn.traffic.vantage import SameTraffic

_MOST_LISTED = 200  # of lines and values that were refused; counts tell the rest
_RATES = ("success_rate", "usable_rate", "false_success_share")


@dataclass(frozen=True)
class Judged:
    """What the rules found: each one's result, the findings as the report lists them, and their incidents by place."""

    results: list[RuleResult]
    findings: list[Finding]
    incidents: list[Incident]


def report(
    engine: DuckEngine, rates: Rates, usable: Interval | None, left_out: list[LeftOut], judged: Judged,
    domains: list[FailureDomain], notices: list[str],
) -> model.Report:
    """Return the report of one run; `usable` is the usable rate's interval."""
    results, findings = judged.results, judged.findings
    titles = {result.rule.id: result.rule.rule.title for result in results}
    return model.Report(
        ledger=_ledger(engine),
        rates=_rates(rates, usable),
        left_out=[_left_out(entry) for entry in left_out],
        failure_domains=[model.FailureDomainReport(domain=d.domain, attempts=d.attempts, action=d.action) for d in domains],
        incidents=[_incident(i, [findings[place] for place in i.places], titles) for i in judged.incidents],
        findings=[_finding(f, titles[f.rule], _unmeasured(rates)) for f in findings],
        quiet=[result.rule.id for result in results if result.outcome is Outcome.QUIET],
        not_evaluated=[
            model.NotEvaluatedReport(rule=result.rule.id, missing=list(result.missing))
            for result in results
            if result.outcome is Outcome.NOT_EVALUATED
        ],
        unlock=unlock(results, engine, engine.loader.mappings),
        errored=[
            model.ErroredReport(rule=result.rule.id, problem=result.problem or "")
            for result in results
            if result.outcome is Outcome.ERRORED
        ],
        quarantine=[
            model.QuarantineReport(
                file=q.file, line=q.line, offset=q.offset, length=q.length, code=q.code, reason=q.reason
            )
            for q in engine.quarantine(_MOST_LISTED)
        ],
        quarantine_codes=engine.quarantine_codes(),
        bad_items=[
            model.BadItemReport(file=b.file, line=b.line, item=b.item, code=b.code, reason=b.reason)
            for b in engine.bad_items(_MOST_LISTED)
        ],
        invalid=[
            model.InvalidValueReport(file=i.file, line=i.line, field=i.field, reason=i.code)
            for i in engine.invalid_fields(_MOST_LISTED)
        ],
        thresholds=_thresholds(results),
        notices=notices,
    )


def _left_out(entry: LeftOut) -> model.LeftOutReport:
    tokens = None if entry.tokens is None else tidy(entry.tokens)
    return model.LeftOutReport(
        pattern=entry.pattern, kind=entry.kind, events=entry.events, statuses=entry.statuses, tokens=tokens,
        file=entry.file, first_line=entry.first_line,
    )


def _ledger(engine: DuckEngine) -> model.LedgerReport:
    files = engine.files
    first, last = engine.span()
    unknown = [key for counts in files for key in _unknown_keys(counts)]

    def total(name: str) -> int:
        return sum(int(getattr(counts, name)) for counts in files)

    return model.LedgerReport(
        files=[_file(counts) for counts in files],
        lines=total("lines"),
        physical_lines=total("physical_lines"),
        used=total("used"),
        events=total("events"),
        quarantined=total("quarantined"),
        not_a_request=total("not_a_request"),
        not_a_request_kinds=_kinds(total("not_a_request"), total("other_text")),
        blank=total("blank"),
        duplicates=total("duplicates"),
        bad_items=total("bad_items"),
        other_items=total("other_items"),
        reshipped=total("reshipped"),
        reshipped_keys=engine.reshipped_keys,
        same_call=total("same_call"),
        same_traffic=[_same_traffic(found) for found in engine.same_traffic],
        conflicting_ids=engine.conflicting_ids,
        invalid_values=total("invalid_values"),
        coerced=total("coerced"),
        unknown_keys=unknown[:_MOST_LISTED],
        unknown_keys_in_all=len(unknown),
        first_ts=iso(first),
        last_ts=iso(last),
    )


def _same_traffic(found: SameTraffic) -> model.SameTrafficReport:
    return model.SameTrafficReport(
        judged=found.outer, other=found.inner, left_out=("whole" if found.whole else "shared calls") if found.same else None,
        shared=found.shared, calls=found.calls, by=found.by,
        other_status=found.other_status, other_end=found.other_end,
    )


def _kinds(lines: int, texts: int) -> dict[str, int]:
    kinds = {"record of no dialect": lines - texts, "text that is not JSON": texts}
    return {kind: count for kind, count in kinds.items() if count}


def _file(counts: FileCounts) -> model.FileReport:
    return model.FileReport(
        path=counts.label,
        dialect=counts.dialect,
        detected_because=counts.why,
        lines=counts.lines,
        used=counts.used,
        events=counts.events,
        quarantined=counts.quarantined,
        not_a_request=counts.not_a_request,
        not_a_request_kinds=_kinds(counts.not_a_request, counts.other_text),
        blank=counts.blank,
        duplicates=counts.duplicates,
        bad_items=counts.bad_items,
        other_items=counts.other_items,
    )


def _unknown_keys(counts: FileCounts) -> list[model.UnknownKey]:
    named = counts.unknown.named()
    return [
        model.UnknownKey(key=name, lines=lines, file=counts.label, first_line=named.first_lines[name])
        for name, lines in sorted(named.counts.items())
    ]


def _criteria(criteria: dict[str, Criterion]) -> dict[str, model.CriterionReport]:
    return {name: model.CriterionReport(measured=c.measured, coverage=c.coverage) for name, c in criteria.items()}


def _rates(rates: Rates, usable: Interval | None) -> model.RatesReport:
    def known(tokens: float) -> float | int | None:
        return tidy(tokens) if rates.tokens.coverage else None

    return model.RatesReport(
        attempts=rates.attempts,
        successes=rates.successes,
        outcome_unknown=rates.outcome_unknown,
        success_rate=rates.success_rate,
        success_rate_bounds=rates.success_rate_bounds,
        requests=rates.requests,
        valid=rates.valid,
        judged=rates.judged,
        judged_share=rates.judged_share,
        usable=rates.verdicts["usable"],
        unknown=rates.verdicts["unknown"],
        unproven={name: unproven.requests for name, unproven in rates.unproven.items()},
        unproven_streamed={name: unproven.streamed for name, unproven in rates.unproven.items()},
        usable_rate=rates.usable_rate,
        usable_rate_of_all=rates.usable_rate_of_all,
        usable_rate_bounds=rates.usable_rate_bounds,
        usable_rate_interval95=(usable.estimate.low, usable.estimate.high) if usable and usable.level else None,
        usable_interval=interval_report(usable) if usable else None,
        false_success_share=rates.false_success_share,
        verdicts=rates.verdicts,
        verdicts_with_2xx=rates.verdicts_with_2xx,
        requests_with_2xx=rates.requests_with_2xx,
        abandoned_with_2xx=rates.verdicts_with_2xx["abandoned"],
        errors_in_band=rates.errors_in_band,
        not_an_answer=rates.not_an_answer,
        request_success_rate=rates.request_success_rate,
        amplification=rates.amplification,
        length_limited=rates.length_limited,
        tokens=model.TokensReport(
            all=known(rates.tokens.all),
            coverage=rates.tokens.coverage,
            wasted=known(rates.tokens.wasted),
            wasted_coverage=rates.tokens.wasted_coverage,
            probe=known(rates.tokens.probe),
            probe_coverage=rates.tokens.probe_coverage,
            by_traffic={name: tidy(number) for name, number in rates.tokens.by_traffic.items()},
            coverage_by_traffic=rates.tokens.coverage_by_traffic,
            completion_only=tidy(rates.tokens.completion_only),
            prompt_only=tidy(rates.tokens.prompt_only),
        ),
        by_traffic=[
            model.TrafficReport(traffic=name or "unlabelled", attempts=attempts, successes=successes)
            for name, (attempts, successes) in rates.attempts_by_traffic.items()
        ],
        criteria=_criteria(rates.criteria),
        criteria_by_dialect={d: _criteria(c) for d, c in rates.criteria_by_dialect.items()},
        answers=[
            model.AnswersReport(dialect=a.dialect, stream=a.stream, answered=a.answered, criteria=_criteria(a.criteria))
            for a in rates.answers
        ],
    )


def interval_report(found: Interval) -> model.IntervalReport:
    """Return an interval as reports hold it."""
    return model.IntervalReport(
        low=found.estimate.low, high=found.estimate.high, method=found.method, blocks=found.blocks,
        design_effect=found.design_effect, level=found.level, incidents=found.spells.count,
    )


def tidy(number: float) -> float | int:
    """Return a whole number without its point."""
    return int(number) if float(number).is_integer() and abs(number) < 2**53 else number


def _unmeasured(rates: Rates) -> frozenset[str]:
    """Return the rates that this run can't state; no finding of it states them either."""
    return frozenset(name for name in _RATES if getattr(rates, name) is None)


def _finding(finding: Finding, title: str, unmeasured: frozenset[str]) -> model.FindingReport:
    return model.FindingReport(
        rule=finding.rule,
        title=title,
        severity=finding.severity,
        confidence=finding.confidence.value,
        window=_window(finding.start_us, finding.end_us),
        alert_window=_window(finding.first_flagged_us, finding.last_flagged_us),
        subject=finding.subject,
        observed={
            name: None if name in unmeasured else value if value is None or isinstance(value, bool) else tidy(value)
            for name, value in finding.observed.items()
        },
        top=_who(finding.top),
        inference=finding.inference,
        action=finding.action,
        count=finding.count,
        evidence=[model.EvidenceReport(file=e.file, line=e.line, item=e.item) for e in finding.evidence],
    )


def _incident(incident: Incident, findings: list[Finding], titles: dict[str, str]) -> model.IncidentReport:
    """Return an incident; its findings come with the cause first."""
    subjects = {tuple(finding.subject.items()): finding.subject for finding in findings}
    return model.IncidentReport(
        rule=findings[0].rule,
        title=titles[findings[0].rule],
        severity=incident.severity,
        window=_window(incident.start_us, incident.end_us),
        subjects=list(subjects.values()),
        requests_not_served=incident.cost.requests,
        tokens=None if incident.cost.tokens is None else tidy(incident.cost.tokens),
        who=_who(incident.cost.who),
        findings=list(incident.places),
    )


def _window(start_us: int, end_us: int) -> model.WindowReport:
    return model.WindowReport(start=iso(start_us) or "", end=iso(end_us) or "")


def _who(top: Iterable[TopEntry]) -> list[dict[str, str | model.Number | None]]:
    return [
        {entry.column: entry.value, "share": entry.share, "tokens": None if entry.tokens is None else tidy(entry.tokens)}
        for entry in top
    ]


def _thresholds(results: list[RuleResult]) -> list[model.ThresholdReport]:
    return [
        model.ThresholdReport(rule=result.rule.id, parameter=name, value=value.number, origin=value.origin)
        for result in results
        for name, value in result.values.items()
        if value.origin != "default"
    ]
