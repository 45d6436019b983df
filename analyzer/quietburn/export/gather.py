"""The series of an analysed ledger: every metric of the contract that its events fill."""

from contextlib import suppress

from quietburn.alerts.groups import Options, alerts_of
from quietburn.alerts.promql import bounds_in
from quietburn.analysis.run import Analysis
from quietburn.errors import ConfigError, InputError
from quietburn.metrics.contract import (
    BOUNDS_S,
    COUNTERS,
    CPU_RATIO,
    HISTOGRAM_SUFFIXES,
    HISTOGRAMS,
    LEDGER_LINES,
    NEWEST_EVENT,
    Count,
)
from quietburn.metrics.rule_events import events_of
from quietburn.metrics.samples import EventRows, Frame, Series, ledger_series
from quietburn.ruleset.files import Values
from quietburn.ruleset.guard import RuleFault, running
from quietburn.ruleset.rule import Rule

_RESULTS = ("used", "quarantined", "duplicates", "not_a_request", "blank")


def frame_of(analysis: Analysis) -> Frame:
    """Return the minutes that the events span. Raises InputError where no event has a time, or none lies in the asked span."""
    (row,) = analysis.engine.select("SELECT min(minute) AS first, max(minute) AS last FROM events").to_pylist()
    if row["first"] is None:
        ledger = analysis.report.ledger
        if ledger.first_ts is None:
            raise InputError("no event has a time, and metrics need one. Name the ledger's time field in a mapping file (--map).")
        raise InputError(f"no event lies in the asked span; the ledger goes from {ledger.first_ts} to {ledger.last_ts}.")
    return Frame(row["first"] - 1, row["first"], row["last"])


def event_series(analysis: Analysis, frame: Frame) -> list[Series]:
    """Return the series that the ledger's events make, sorted by name and labels.

    A rule that was not evaluated on this ledger counts no events.
    """
    histograms = [histogram.name + suffix for histogram in HISTOGRAMS for suffix in HISTOGRAM_SUFFIXES]
    names = [*(counter.name for counter in COUNTERS), *histograms, CPU_RATIO]
    return ledger_series(EventRows(analysis.engine), frame, names, _bounds(analysis), events=_rule_events(analysis))


def reading_series(analysis: Analysis, frame: Frame) -> list[Series]:
    """Return what became of the lines, and the time of the newest event, as of the frame's end."""
    ledger = analysis.report.ledger
    end = frame.second(frame.last)
    counted = [
        Series(LEDGER_LINES, (("result", result),), ((end, float(getattr(ledger, result))),), is_counter=True)
        for result in _RESULTS
    ]
    _, newest_us = analysis.engine.span()
    newest = [] if newest_us is None else [Series(NEWEST_EVENT, (), ((end, newest_us / 1e6),), is_counter=False)]
    return counted + newest


def _rule_events(analysis: Analysis) -> tuple[Count, ...]:
    """Return what the rules count, each label once: rules that ask for the same events share a series.

    Raises ConfigError where two rules mean different events by one label.
    """
    owners: dict[object, tuple[str, Count]] = {}
    for rule, values in _evaluated(analysis):
        for count in events_of(rule, values):
            owner, known = owners.setdefault(count.fixed, (rule.id, count))
            if known != count:
                label = dict(count.fixed)["rule"]
                raise ConfigError(f"rules {owner} and {rule.id}: count different events under one name, {label!r}. Rename one.")
    return tuple(count for _, count in owners.values())


def _bounds(analysis: Analysis) -> set[str]:
    """Return the bucket bounds: the contract's, and those that the alerts select with this ledger's numbers."""
    asked = {repr(bound) for bound in BOUNDS_S}
    for rule, values in _evaluated(analysis):
        if rule.alert.grades:
            with suppress(RuleFault), running(rule, "alert"):  # an alert that can't be written asks for no bound
                asked |= bounds_in(alert.expr for alert in alerts_of(rule, values, Options()))
    return asked


def _evaluated(analysis: Analysis) -> list[tuple[Rule, Values]]:
    report = analysis.report
    left_out = {entry.rule for entry in report.not_evaluated} | {entry.rule for entry in report.errored}
    return [(rule, values) for rule, values in analysis.rules if rule.id not in left_out]
