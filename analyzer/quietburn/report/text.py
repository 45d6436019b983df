"""The report for a terminal: the two rates first, then why they differ."""

import textwrap
from collections.abc import Iterator
from enum import Enum

from rich.console import Console
from rich.text import Text

from quietburn.report.model import LedgerReport, LeftOutReport, RatesReport, Report, UnlockReport
from quietburn.report.printable import printable
from quietburn.report.text_findings import Lines, finding_lines, plain
from quietburn.report.text_incidents import incident_details, incident_list
from quietburn.report.words import REASON, counted, criteria, interval, left_out_words, number, percent, success, usable

_SHOWN_QUARANTINE = 10
_BAR_CELLS = 24
_NOT_CONFIGURED = "not configured: "  # as the report's reasons begin
_LONG = 48  # lines of a report, two screens, after which the rates have gone out of sight


class Detail(Enum):
    """How much of a report is printed: the list of incidents, each explained, or every finding."""

    BRIEF = "brief"
    INCIDENTS = "incidents"
    FULL = "full"


def render_text(report: Report, console: Console, *, verbose: bool = False, detail: Detail = Detail.INCIDENTS) -> None:
    """Print the report to a console (its width and colours decide the looks, never the content)."""
    width = max(60, min(console.width, 110))
    printed = 0
    for section in _sections(report, width, detail, verbose=verbose):
        lines = list(section)
        for line in lines:
            console.print(line, soft_wrap=True, highlight=False)
        if lines:
            console.print()
            printed += len(lines) + 1
    if printed > _LONG:
        for line in (*_head(report.ledger), *_two_rates(report.rates, report.left_out)):
            console.print(line, soft_wrap=True, highlight=False)
        console.print()


def _sections(report: Report, width: int, detail: Detail, *, verbose: bool) -> Iterator[Lines]:
    yield _head(report.ledger)
    yield _two_rates(report.rates, report.left_out)
    yield incident_list(report)
    yield _errored(report)
    if detail is Detail.BRIEF:
        return
    yield _waterfall(report.rates)
    yield _tokens(report.rates)
    yield _every_finding(report, width) if detail is Detail.FULL else incident_details(report, width)
    yield _not_evaluated(report, width, verbose=verbose, whole=verbose or detail is Detail.FULL)
    yield _refused(report, verbose=verbose)
    yield _notices(report, width)


def _every_finding(report: Report, width: int) -> Lines:
    if report.findings:
        yield Text(f"  Findings ({len(report.findings)})", style="bold")
    for finding in report.findings:
        yield Text("")
        yield from finding_lines(finding, width)


def _head(ledger: LedgerReport) -> Lines:
    names = ", ".join(f"{f.path} ({f.dialect})" for f in ledger.files[:3])
    more = f" and {len(ledger.files) - 3} more files" if len(ledger.files) > 3 else ""
    yield Text("quietburn  ", style="bold") + plain(names + more)
    span = f", {ledger.first_ts} to {ledger.last_ts}" if ledger.first_ts else ", no times"
    yield plain(f"{counted(ledger.lines, 'line')}, {counted(ledger.events, 'event')}{span}", "dim")


def _two_rates(rates: RatesReport, left_out: list[LeftOutReport]) -> Lines:
    yield Text("  Success rate   ") + Text(f"{percent(rates.success_rate):>9}", style="bold") + plain(
        f"   {success(rates)} (what a dashboard shows)"
    )
    yield Text("  Usable rate    ") + Text(f"{percent(rates.usable_rate):>9}", style="bold") + plain(
        f"   {_usable_words(rates)}"
    )
    if rates.requests:
        yield plain("  " + " " * 27 + criteria(rates), "dim")
    if left_out:
        yield plain(f"  left out of both rates: {left_out_words(left_out)}", "dim")


def _usable_words(rates: RatesReport) -> str:
    if not rates.requests:
        return "no caller requests"
    if rates.usable_rate is None or rates.usable_interval is None:
        return usable(rates)
    found = rates.usable_interval
    return f"{usable(rates)} {interval(found.low, found.high, found.level)}"


def _waterfall(rates: RatesReport) -> Lines:
    """From answered to usable, then the requests that got no 2xx at all; nothing where all are usable."""
    if rates.verdicts["usable"] == rates.requests:
        return
    answered = rates.verdicts_with_2xx
    yield Text("  From success to usable (requests)", style="bold")
    yield _bar("answered 2xx", rates.requests_with_2xx, rates.requests)
    for name in (name for name in REASON if answered[name]):
        yield _bar(f"- {REASON[name]}", answered[name], rates.requests)
    yield _bar("= usable", answered["usable"], rates.requests, "bold green")
    others = {name: rates.verdicts[name] - answered[name] for name in REASON}
    told = [f"{REASON[name]} {count:,}" for name, count in others.items() if count]
    if told:
        in_band = f" ({rates.errors_in_band:,} of them an error within a 2xx)" if rates.errors_in_band else ""
        yield plain(f"    no answer: {', '.join(told)}{in_band}", "dim")


def _bar(label: str, count: int, whole: int, style: str = "") -> Text:
    cells = round(_BAR_CELLS * count / whole) if whole else 0
    return Text(f"    {label:<16}{count:>10,}  ", style=style) + Text("█" * max(cells, 1 if count else 0), style=style or "cyan")


def _of_fewer(coverage: float | None) -> str:
    """Return how many of the calls behind a sum are in it, where that is not all of them."""
    return "" if coverage in (None, 1.0) else f" ({percent(coverage)} of them known)"


def _tokens(rates: RatesReport) -> Lines:
    tokens = rates.tokens
    if not tokens.coverage:
        return
    parts = [f"{number(tokens.all)} tokens ({percent(tokens.coverage)} of calls report them)"]
    if tokens.wasted:
        parts.append(f"{number(tokens.wasted)} spent without a usable answer{_of_fewer(tokens.wasted_coverage)}")
    if tokens.probe:
        parts.append(f"{number(tokens.probe)} went to probes{_of_fewer(tokens.probe_coverage)}")
    yield plain(f"  {', '.join(parts)}")


def _errored(report: Report) -> Lines:
    if report.errored:
        yield Text(f"  Failed rules ({len(report.errored)}): their result is unknown", style="bold red")
        for errored in report.errored:
            yield plain(f"    {errored.rule}: {errored.problem}")


def _not_evaluated(report: Report, width: int, *, verbose: bool, whole: bool) -> Lines:
    if not report.not_evaluated:
        return
    yield Text(f"  Not evaluated ({counted(len(report.not_evaluated), 'rule')})", style="bold")
    for unlock in report.unlock:
        yield from _unlock(unlock, whole=whole)
    if not whole and any(unlock.paste for unlock in report.unlock):
        yield plain("    --full prints the keys to add to the log format", "dim")
    for words in _other_reasons(report):
        yield from (Text("    ") + plain(line) for line in textwrap.wrap(words, width - 4))
    if verbose:
        for left in report.not_evaluated:
            yield plain(f"    {left.rule}: missing {', '.join(left.missing)}", "dim")


def _unlock(unlock: UnlockReport, *, whole: bool) -> Lines:
    yield plain(f"    log {', '.join(unlock.fields)} to unlock {counted(unlock.rules, 'rule')}")
    if unlock.logged_already:
        yield plain(f"      {', '.join(unlock.logged_already)}: the log has the keys, but no values", "dim")
    for dialect, text in unlock.paste.items() if whole else ():
        yield plain(f"      add to the log format ({dialect}):", "dim")
        yield from (plain(f"        {line}") for line in text.splitlines())


def _other_reasons(report: Report) -> Iterator[str]:
    """Yield why rules were left out for another reason than a field: what is not configured, what no such log can tell."""
    rules_by_reason: dict[str, list[str]] = {}
    for left in report.not_evaluated:
        for missing in (m for m in left.missing if ":" in m):
            rules_by_reason.setdefault(missing, []).append(left.rule)
    reasons = sorted(rules_by_reason.items())
    numbers = [missing.removeprefix(_NOT_CONFIGURED) for missing, _ in reasons if missing.startswith(_NOT_CONFIGURED)]
    if numbers:
        yield f"{_NOT_CONFIGURED}{', '.join(numbers)}"
    for missing, rules in reasons:
        if not missing.startswith(_NOT_CONFIGURED):
            yield f"{', '.join(rules)}: {missing}" if missing.startswith("not carried by the log") else missing


def _refused(report: Report, *, verbose: bool) -> Lines:
    ledger = report.ledger
    if ledger.quarantined:
        yield Text(f"  Quarantined {ledger.quarantined:,} of {counted(ledger.lines, 'line')}", style="bold")
        shown = report.quarantine if verbose else report.quarantine[:_SHOWN_QUARANTINE]
        for line in shown:
            yield plain(f"    {line.file}:{line.line}  {line.reason}")
        left = sum(report.quarantine_codes.values()) - len(shown)
        if left:
            yield plain(f"    and {left:,} more; --quarantine FILE lists them all", "dim")
    texts = ledger.not_a_request_kinds.get("text that is not JSON")
    no_request = f"not a request ({texts:,} of them text that is not JSON)" if texts else "not a request"
    also = {
        no_request: ledger.not_a_request, _duplicates(ledger): ledger.duplicates, "blank": ledger.blank,
        "items refused within used lines": ledger.bad_items, "items that are no requests": ledger.other_items,
        "other ends of calls already counted": ledger.same_call,
        "values that became unknown": ledger.invalid_values, "numbers written as text": ledger.coerced,
        "ids repeated with different content": ledger.conflicting_ids,
    }
    told = ", ".join(f"{count:,} {name}" for name, count in also.items() if count)
    if told:
        yield plain(f"  Also counted: {told}", "dim")
    if ledger.unknown_keys:
        keys = ", ".join(f"{key.key} ({counted(key.lines, 'line')})" for key in ledger.unknown_keys[:6])
        more = f" and {ledger.unknown_keys_in_all - 6:,} more" if ledger.unknown_keys_in_all > 6 else ""
        yield plain(f"  Keys not read: {keys}{more}", "dim")


def _duplicates(ledger: LedgerReport) -> str:
    if not ledger.reshipped:
        return "duplicates"
    differing = ", ".join(sorted(ledger.reshipped_keys)) or "keys that aren't read"
    return f"duplicates ({ledger.reshipped:,}of them shipped again, differing in {differing})"


def _notices(report: Report, width: int) -> Lines:
    for notice in report.notices:
        for index, line in enumerate(textwrap.wrap(printable(notice), width - 8)):
            yield Text("  note  " if index == 0 else "        ", style="dim") + plain(line, "dim")
    for threshold in report.thresholds:
        yield plain(
            f"  note  {threshold.rule}.{threshold.parameter} is {number(threshold.value)} ({threshold.origin})", "dim"
        )
