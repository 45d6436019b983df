"""The results of `gate` and `compare` for a terminal or a log: plain lines, no colour."""

import textwrap
from collections.abc import Iterable, Iterator

from quietburn.report import words
from quietburn.report.printable import printable
from quietburn.report.verdict import CheckReport, ComparisonReport, DifferenceReport, GateReport, ModelsReport, SideReport
from quietburn.report.words import percent

_WIDTH = 110
_INDENT = " " * 19


def gate_text(report: GateReport) -> str:
    """Return a gate's verdict, the two rates, each check, and where the thresholds came from."""
    return _inert([
        f"quietburn gate: {words.verdict(report)}", "",
        *_rates(report.ledger, report),
        *_field("not usable", words.reasons(report.not_usable)),
        *_field("deadline", report.ledger.deadline), "",
        *_section("Checks", (line for check in report.checks for line in _check(check))),
        *_section("Against the baseline", _against(report)),
        *_section("Thresholds", (f"    {t.name} {t.value} ({t.origin})" for t in report.thresholds)),
        *(line for advice in report.advice for line in _field("advice", advice)),
        *(line for notice in report.notices for line in _field("note", notice)),
        *_field("repeat", report.command),
    ])


def compare_text(report: ComparisonReport) -> str:
    """Return two ledgers side by side, each difference with its interval or its refusal."""
    sides = (("before", report.before), ("after", report.after))
    return _inert([
        "quietburn compare" + (f": {report.pairs:,} pairs" if report.pairs else ""), "",
        *(line for name, side in sides for line in _field(name, f"{', '.join(side.files)}; deadline {side.deadline}")),
        *(line for name, side in sides for line in _field(f"rates {name}", _both_rates(side))),
        *_models(report.models), "",
        *_section("Differences (after - before)", (line for d in report.differences for line in _difference(d))),
        *(line for notice in report.notices for line in _field("note", notice)),
        *_field("repeat", report.command),
    ])


def _inert(lines: Iterable[str]) -> str:
    """Return lines none of which can act, whatever the ledgers' strings are and wherever they were wrapped."""
    return "".join(f"{printable(line).rstrip()}\n" for line in lines)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield from (f"  {title}", *found, "")


def _field(label: str, text: str) -> Iterator[str]:
    wrapped = textwrap.wrap(printable(text), _WIDTH - len(_INDENT), break_long_words=False, break_on_hyphens=False)
    for place, line in enumerate(wrapped):
        yield (f"  {label:<17}" if place == 0 else _INDENT) + line


def _rates(side: SideReport, report: GateReport) -> Iterator[str]:
    rates = side.rates
    yield from _field("success rate", f"{percent(rates.success_rate)}   {words.success(rates)} (what a dashboard shows)")
    found = report.usable_interval
    around = f" {words.interval(found.low, found.high, found.level)}" if found else ""
    yield from _field("usable rate", f"{percent(rates.usable_rate)}{around}   {words.usable(rates)}; {words.criteria(rates)}")


def _both_rates(side: SideReport) -> str:
    rates = side.rates
    return (
        f"success {percent(rates.success_rate)}: {words.success(rates)}; usable {percent(rates.usable_rate)}: "
        f"{words.usable(rates)}; {words.criteria(rates)}"
    )


def _check(check: CheckReport) -> Iterator[str]:
    yield from _field(f"  {check.counts_as}", f"{check.name}: {check.says}")


def _against(report: GateReport) -> Iterator[str]:
    for difference in report.differences:
        yield from _difference(difference)
    if report.models:
        yield from _models(report.models)


def _difference(difference: DifferenceReport) -> Iterator[str]:
    values = (words.level(difference.before, difference.unit), words.level(difference.after, difference.unit))
    counts = f"n {difference.before_count:,} and {difference.after_count:,}"
    yield f"    {difference.label}: {values[0]} to {values[1]} ({counts})"
    more = words.per_sample(difference)
    yield f"        {difference.says}" + (f"; {more}" if more else "")


def _models(models: ModelsReport) -> Iterator[str]:
    for label, names in words.changed(models):
        yield from _field("models", f"{label.lower().removeprefix('models ')}: {', '.join(names)}")
