"""Format numbers and names, the same way in every text."""

from quietburn.report.model import FindingReport, LeftOutReport, RatesReport
from quietburn.report.verdict import DifferenceReport, GateReport, ModelsReport, NotUsable, Verdict

CRITERION = {"on_time": "on time", "complete": "complete", "non_empty": "non-empty"}
REASON = {
    "late": "late", "truncated": "truncated", "empty": "empty", "unknown": "can't be judged",
    "abandoned": "abandoned", "refused": "refused", "failed": "failed", "invalid": "caller's fault",
}
UNKNOWN = "-"
POINTS = "points"  # a share's difference: 0.01 is one


def percent(share: float | None) -> str:
    """Return a share as a percentage, or a dash where it can't be measured."""
    if share is None:
        return UNKNOWN
    digits = 1 if 0.001 <= share <= 0.999 or share in (0, 1) else 3
    return f"{share * 100:.{digits}f} %"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 line`, `1,012 lines`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def number(value: float | None) -> str:
    """Return a number for people: thousands apart, at most three decimals."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:,.3f}".rstrip("0").rstrip(".") if abs(value) < 100 else f"{value:,.1f}".removesuffix(".0")
    return text or "0"


_SHOWN_LEFT_OUT = 5


def left_out_words(entries: list[LeftOutReport]) -> str:
    """Return where the events went that are in neither rate, most events first."""
    parts = [f"{entry.events:,} at {entry.pattern or '-'} ({_of_kind(entry.kind)})" for entry in entries[:_SHOWN_LEFT_OUT]]
    rest = sum(entry.events for entry in entries[_SHOWN_LEFT_OUT:])
    if rest:
        parts.append(f"{rest:,} elsewhere")
    return ", ".join(parts).replace(" at ", " event at " if entries[0].events == 1 else " events at ", 1)


def _of_kind(kind: str) -> str:
    return "not known to generate: see [routes]" if kind == "other" else kind


def amount(value: float, unit: str) -> str:
    """Return a number with its unit: shares in points, thousands apart, as many decimals as it has room for."""
    shown = value * 100 if unit == POINTS else value
    decimals = (1 if abs(shown) >= 0.1 or shown == 0 else 3) if unit == POINTS else (2 if abs(shown) < 100 else 1)
    return f"{shown:,.{decimals}f} {unit}"


def signed(value: float, unit: str) -> str:
    """Return the same with its sign, `+` for 0 as well."""
    return amount(value, unit) if value < 0 else f"+{amount(value, unit)}"


def level(value: float | None, unit: str) -> str:
    """Return a number that is no difference: a share as a percentage."""
    if value is None:
        return UNKNOWN
    return percent(value) if unit == POINTS else amount(value, unit)


def interval(low: float, high: float, level: float | None) -> str:
    """Return a share's interval; one without a level is said to be this night's only."""
    return f"[{percent(low)} to {percent(high)}{'' if level else ', this night'}]"


def criteria(rates: RatesReport) -> str:
    """Return what usable means, and of how many requests which part of it can't be told."""
    parts = ["usable means on time, complete and non-empty"]
    on_time = rates.criteria["on_time"]
    if not on_time.measured:
        parts.append(f"on time is known for only {percent(on_time.coverage)} of the 2xx answers")
    parts += [
        f"{CRITERION[name]} is unknown for {count:,} of them{_streamed(rates.unproven_streamed[name], count)}"
        for name, count in rates.unproven.items() if count
    ]
    return "; ".join(parts)


def _streamed(streamed: int, count: int) -> str:
    return " (streams)" if streamed == count else f" ({streamed:,} of them streams)" if streamed else ""


def usable(rates: RatesReport) -> str:
    """Return what the usable rate is a rate of, and between which shares of all it lies where some can't be told."""
    if rates.usable_rate_bounds is None:
        return "no valid request"
    low, high = (percent(bound) for bound in rates.usable_rate_bounds)
    untold = f"{rates.unknown:,} of {rates.valid:,} can't be judged: between {low} and {high} of all"
    if rates.usable_rate is None and not rates.unknown:
        return "can't be measured; on time is unknown for most 2xx answers"
    if rates.usable_rate is None:
        return f"can't be measured; {untold}"
    judged = f"{rates.usable:,} of {counted(rates.judged, 'judged request')}"
    return f"{judged} ({untold})" if rates.unknown else judged


def success(rates: RatesReport) -> str:
    """Return what the success rate is a rate of, and between which shares of all it lies where some can't be told."""
    known = rates.attempts - rates.outcome_unknown
    answered = f"{rates.successes:,} of {counted(known, 'attempt')} answered 2xx"
    if rates.success_rate_bounds is None:
        return answered
    low, high = (percent(bound) for bound in rates.success_rate_bounds)
    untold = f"the outcome of {rates.outcome_unknown:,} of {rates.attempts:,} is unknown: between {low} and {high} of all"
    return f"can't be measured; {untold}" if rates.success_rate is None else f"{answered} ({untold})"


def verdict(report: GateReport) -> str:
    """Return what a gate says in the end; a pass that hangs on a point says so."""
    if report.verdict is Verdict.PASS and any(check.notice for check in report.checks):
        return "passed, undecided in part"
    return {Verdict.PASS: "passed", Verdict.FAIL: "failed", Verdict.UNDECIDED: "undecided"}[report.verdict]


def reasons(not_usable: list[NotUsable]) -> str:
    """Return why requests got no usable answer, most first."""
    return ", ".join(f"{REASON[n.verdict]} {n.count:,} ({percent(n.share)})" for n in not_usable)


def per_sample(difference: DifferenceReport) -> str:
    """Return what these sample sizes could show, and what would settle a refused difference."""
    parts = []
    if difference.smallest_shown is not None:
        parts.append(f"at these sizes, only {amount(difference.smallest_shown, difference.unit)} or more would show")
    if difference.requests_to_settle is not None:
        parts.append(f"about {difference.requests_to_settle:,} requests on each side would settle this one")
    return "; ".join(parts)


def changed(models: ModelsReport) -> list[tuple[str, list[str]]]:
    """Return which models changed, as a label and names; nothing where none did."""
    labelled = [("Models only before", models.only_before), ("Models only after", models.only_after)]
    return [(label, names) for label, names in labelled if names]


def observed(finding: FindingReport) -> str:
    """Return what a finding observed, as far as it is known."""
    return ", ".join(_observed(name, value) for name, value in finding.observed.items() if value is not None)


def _observed(name: str, value: float | None) -> str:
    for suffix, shown in (("_ms", "ms"), ("_pct", "%")):
        if name.endswith(suffix):
            return f"{name.removesuffix(suffix).replace('_', ' ')} {number(value)} {shown}"
    is_share = name.endswith(("_share", "_rate")) or name.startswith("share_of")
    words = name.replace("_", " ").replace("two xx", "2xx answers").replace(" 2xx", " 2xx answers", name.count("_2xx"))
    return f"{words} {percent(value) if is_share and not isinstance(value, bool) else number(value)}"
