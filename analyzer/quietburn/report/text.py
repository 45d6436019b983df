"""The report for a terminal: the two rates first, then why they differ."""

import textwrap
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.text import Text

from quietburn.report.model import FindingReport, LedgerReport, LeftOutReport, RatesReport, Report
from quietburn.report.printable import printable
from quietburn.report.words import REASON, counted, criteria, interval, left_out_words, number, percent, success, usable

_SHOWN_LINES = 8
_SHOWN_QUARANTINE = 10
_BAR_CELLS = 24
_SEVERITY_STYLE = {"page": "bold red", "ticket": "bold yellow", "info": "bold blue"}
Lines = Iterator[Text]


def render_text(report: Report, console: Console, *, verbose: bool = False) -> None:
    """Print the report to a console (its width and colours decide the looks, never the content)."""
    width = max(60, min(console.width, 110))
    sections: list[Callable[[], Lines]] = [
        lambda: _head(report.ledger),
        lambda: _two_rates(report.rates, report.left_out),
        lambda: _waterfall(report.rates),
        lambda: _tokens(report.rates),
        lambda: _findings(report, width),
        lambda: _errored(report),
        lambda: _not_evaluated(report, width, verbose=verbose),
        lambda: _refused(report, verbose=verbose),
        lambda: _notices(report, width),
    ]
    for section in sections:
        lines = list(section())
        for line in lines:
            console.print(line, soft_wrap=True, highlight=False)
        if lines:
            console.print()


def _plain(text: str, style: str = "") -> Text:
    return Text(printable(text), style=style)


def _head(ledger: LedgerReport) -> Lines:
    names = ", ".join(f"{f.path} ({f.dialect})" for f in ledger.files[:3])
    more = f" and {len(ledger.files) - 3} more files" if len(ledger.files) > 3 else ""
    yield Text("quietburn  ", style="bold") + _plain(names + more)
    span = f", {ledger.first_ts} to {ledger.last_ts}" if ledger.first_ts else ", no times"
    yield _plain(f"{counted(ledger.lines, 'line')}, {counted(ledger.events, 'event')}{span}", "dim")


def _two_rates(rates: RatesReport, left_out: list[LeftOutReport]) -> Lines:
    yield Text("  Success rate   ") + Text(f"{percent(rates.success_rate):>9}", style="bold") + _plain(
        f"   {success(rates)} (what a dashboard shows)"
    )
    yield Text("  Usable rate    ") + Text(f"{percent(rates.usable_rate):>9}", style="bold") + _plain(
        f"   {_usable_words(rates)}"
    )
    if rates.requests:
        yield _plain("  " + " " * 27 + criteria(rates), "dim")
    if left_out:
        yield _plain(f"  left out of both rates: {left_out_words(left_out)}", "dim")


def _usable_words(rates: RatesReport) -> str:
    if not rates.requests:
        return "no caller asked for anything"
    if rates.usable_rate is None or rates.usable_rate_interval95 is None:
        return usable(rates)
    return f"{usable(rates)} {interval(rates.usable_rate_interval95)}"


def _waterfall(rates: RatesReport) -> Lines:
    """From answered to usable, then the requests that got no 2xx at all."""
    if not rates.requests:
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
        yield _plain(f"    no answer: {', '.join(told)}{in_band}", "dim")


def _bar(label: str, count: int, whole: int, style: str = "") -> Text:
    cells = round(_BAR_CELLS * count / whole) if whole else 0
    return Text(f"    {label:<16}{count:>10,}  ", style=style) + Text("█" * max(cells, 1 if count else 0), style=style or "cyan")


def _of_fewer(coverage: float | None) -> str:
    """Return how many of the calls behind a sum are in it, where that is not all of them."""
    return "" if coverage in (None, 1.0) else f" ({percent(coverage)} of them say so)"


def _tokens(rates: RatesReport) -> Lines:
    tokens = rates.tokens
    if not tokens.coverage:
        return
    parts = [f"{number(tokens.all)} tokens ({percent(tokens.coverage)} of calls say how many)"]
    if tokens.wasted:
        parts.append(f"{number(tokens.wasted)} bought no usable answer{_of_fewer(tokens.wasted_coverage)}")
    if tokens.probe:
        parts.append(f"{number(tokens.probe)} went to probes{_of_fewer(tokens.probe_coverage)}")
    yield _plain(f"  {', '.join(parts)}")


def _findings(report: Report, width: int) -> Lines:
    if not report.findings:
        told = len(report.quiet)
        if not report.rates.attempts:
            yield Text("  Nothing to judge: no event of this ledger generates an answer.", style="bold")
            return
        if not told:
            yield Text("  No rule could be evaluated.", style="bold")
            return
        yield Text(f"  No contradiction found by {counted(told, 'rule')}.", style="bold")
        return
    yield Text(f"  Findings ({len(report.findings)})", style="bold")
    for finding in report.findings:
        yield Text("")
        yield from _finding(finding, width)


def _finding(finding: FindingReport, width: int) -> Lines:
    subject = ", ".join(f"{key} {value}" for key, value in finding.subject.items())
    yield (
        Text(f"  {finding.severity.upper():<7}", style=_SEVERITY_STYLE[finding.severity])
        + Text(finding.rule, style="bold")
        + _plain(f"  {subject}  {finding.window.start} to {finding.window.end}")
    )
    yield from _field("", finding.title, width, "italic")
    yield from _field("observed", ", ".join(_observed(name, v) for name, v in finding.observed.items() if v is not None), width)
    yield from _field("inference", finding.inference, width)
    yield from _field("action", finding.action, width)
    if finding.top:
        yield from _field("who", ", ".join(_who(entry) for entry in finding.top), width)
    yield from _field("lines", _lines(finding), width, "dim")


def _observed(name: str, value: float | None) -> str:
    for suffix, shown in (("_ms", "ms"), ("_pct", "%")):
        if name.endswith(suffix):
            return f"{name.removesuffix(suffix).replace('_', ' ')} {number(value)} {shown}"
    is_share = name.endswith(("_share", "_rate")) or name.startswith("share_of")
    words = name.replace("_", " ").replace("two xx", "2xx answers").replace(" 2xx", " 2xx answers", name.count("_2xx"))
    return f"{words} {percent(value) if is_share and not isinstance(value, bool) else number(value)}"


def _who(entry: dict[str, str | float | int | None]) -> str:
    column = next(name for name in entry if name not in ("share", "tokens"))
    share, tokens = entry["share"], entry["tokens"]
    spent = f", {number(tokens)} tokens" if isinstance(tokens, int | float) else ""
    return f"{column} {entry[column]} ({percent(share if isinstance(share, float | int) else None)}{spent})"


def _lines(finding: FindingReport) -> str:
    parts: list[str] = []
    last = None
    for evidence in finding.evidence[:_SHOWN_LINES]:
        place = f"{evidence.line}" if evidence.item is None else f"{evidence.line}#{evidence.item}"
        parts.append(place if evidence.file == last else f"{evidence.file}:{place}")
        last = evidence.file
    more = f" ({finding.count:,} in all)" if finding.count > len(parts) else ""
    return ", ".join(parts) + more


def _field(label: str, value: str, width: int, style: str = "") -> Lines:
    indent = " " * 21
    wrapped = textwrap.wrap(printable(value), width - len(indent), break_long_words=False, break_on_hyphens=False) or [""]
    for index, line in enumerate(wrapped):
        head = f"         {label:<12}" if index == 0 else indent
        yield Text(head, style="dim") + _plain(line, style)


def _errored(report: Report) -> Lines:
    if report.errored:
        yield Text(f"  Failed rules ({len(report.errored)}): they found neither something nor nothing", style="bold red")
        for errored in report.errored:
            yield _plain(f"    {errored.rule}: {errored.problem}")


def _not_evaluated(report: Report, width: int, *, verbose: bool) -> Lines:
    if not report.not_evaluated:
        return
    yield Text(f"  Not evaluated ({counted(len(report.not_evaluated), 'rule')})", style="bold")
    for unlock in report.unlock:
        yield _plain(f"    log {', '.join(unlock.fields)} to unlock {counted(unlock.rules, 'rule')}")
        if unlock.logged_already:
            yield _plain(f"      {', '.join(unlock.logged_already)}: the log has the keys, and no line fills them", "dim")
        for dialect, text in unlock.paste.items():
            yield _plain(f"      paste into what writes the log ({dialect}):", "dim")
            yield from (_plain(f"        {line}") for line in text.splitlines())
    rules_by_reason: dict[str, list[str]] = {}
    for left in report.not_evaluated:
        for missing in (m for m in left.missing if ":" in m):
            rules_by_reason.setdefault(missing, []).append(left.rule)
    for missing, rules in sorted(rules_by_reason.items()):
        words = f"{', '.join(rules)}: {missing}" if missing.startswith("not told") else missing
        yield from (Text("    ") + _plain(line) for line in textwrap.wrap(words, width - 4))
    if verbose:
        for left in report.not_evaluated:
            yield _plain(f"    {left.rule}: missing {', '.join(left.missing)}", "dim")


def _refused(report: Report, *, verbose: bool) -> Lines:
    ledger = report.ledger
    if ledger.quarantined:
        yield Text(f"  Quarantined {ledger.quarantined:,} of {counted(ledger.lines, 'line')}", style="bold")
        shown = report.quarantine if verbose else report.quarantine[:_SHOWN_QUARANTINE]
        for line in shown:
            yield _plain(f"    {line.file}:{line.line}  {line.reason}")
        left = sum(report.quarantine_codes.values()) - len(shown)
        if left:
            yield _plain(f"    and {left:,} more; --quarantine FILE names them all", "dim")
    texts = ledger.not_a_request_kinds.get("text that is no JSON")
    no_request = f"not a request ({texts:,} of them text that is no JSON)" if texts else "not a request"
    also = {
        no_request: ledger.not_a_request, _duplicates(ledger): ledger.duplicates, "blank": ledger.blank,
        "items refused within used lines": ledger.bad_items, "other ends of calls that count already": ledger.same_call,
        "values that became unknown": ledger.invalid_values, "numbers given as text": ledger.coerced,
        "ids that came again with other content": ledger.conflicting_ids,
    }
    told = ", ".join(f"{count:,} {name}" for name, count in also.items() if count)
    if told:
        yield _plain(f"  Also counted: {told}", "dim")
    if ledger.unknown_keys:
        keys = ", ".join(f"{key.key} ({counted(key.lines, 'line')})" for key in ledger.unknown_keys[:6])
        more = f" and {len(ledger.unknown_keys) - 6} more" if len(ledger.unknown_keys) > 6 else ""
        yield _plain(f"  Keys that were not read: {keys}{more}", "dim")


def _duplicates(ledger: LedgerReport) -> str:
    if not ledger.reshipped:
        return "duplicates"
    differing = ", ".join(sorted(ledger.reshipped_keys)) or "keys that are not read"
    return f"duplicates ({ledger.reshipped:,} of them shipped again: they differ in {differing})"


def _notices(report: Report, width: int) -> Lines:
    for notice in report.notices:
        for index, line in enumerate(textwrap.wrap(printable(notice), width - 8)):
            yield Text("  note  " if index == 0 else "        ", style="dim") + _plain(line, "dim")
    for threshold in report.thresholds:
        yield _plain(
            f"  note  {threshold.rule}.{threshold.parameter} is {number(threshold.value)} ({threshold.origin})", "dim"
        )
