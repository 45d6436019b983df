"""The two rates as recording rules, and burn-rate alerts on the usable-answer objective.

Windows and factors are those of the SRE Workbook, chapter 5, table 5-8 (multiwindow,
multi-burn-rate). Requests that can't be judged burn nothing and count as nothing, nor do attempts
whose outcome nobody knows, and where they are more than half there is no rate.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from quietburn.alerts.promql import promql_number
from quietburn.metrics.contract import ATTEMPTS, EVENTS, REQUESTS
from quietburn.ruleset.severity import Severity

RULE_ID, NAME = "usable-answer-objective", "LLMGatewayUsableAnswersBurn"
SILENT_ID, SILENT_NAME = "ledger-silent", "LLMGatewayLedgerSilent"
_WINDOWS = ("5m", "30m", "1h", "6h")
_VALID = f'{REQUESTS}{{verdict!~"invalid|abandoned"}}'
_TRIED = f'{ATTEMPTS}{{kind="generate"}}'
_SUCCEEDED = f'{ATTEMPTS}{{kind="generate",code=~"2.."}}'
_UNTOLD = f'{EVENTS}{{rule="any-outcome-unknown"}}'
_JUDGED = f'{REQUESTS}{{verdict!~"invalid|abandoned|unknown"}}'
_MIN_REQUESTS = 20  # judged requests in the long window; below it a share says little


@dataclass(frozen=True)
class Burn:
    """One burn-rate alert."""

    name: str
    severity: Severity
    window: str
    expr: str
    hold: str
    keep_firing_for: str
    summary: str
    description: str


def usable_record(window: str) -> str:
    """Return the recording rule's name of the usable share over a window."""
    return f"route:quietburn_requests:usable_ratio_rate{window}"


def records() -> Iterator[tuple[str, str]]:
    """Yield the recording rules: the success rate and the usable rate by route."""
    yield "route:quietburn_attempts:success_ratio_rate5m", _success("5m")
    for window in _WINDOWS:
        share = _share(f'{REQUESTS}{{verdict="usable"}}', _JUDGED, window)
        yield usable_record(window), f"{share}\nand on (route) (\n  {_half_judged(window)}\n)"


def _success(window: str) -> str:
    """Return the successes over attempts whose outcome is known, by route, where these are at least half of all."""
    total = f"sum by (route) (rate({_TRIED}[{window}]))"
    known = f"(\n  {total}\n  -\n  (sum by (route) (rate({_UNTOLD}[{window}])) or 0 * {total})\n)"
    part = f"(\n  sum by (route) (rate({_SUCCEEDED}[{window}]))\n  or\n  0 * {total}\n)"
    return f"{part}\n/ ({known} > 0)\nand on (route) (\n  2 * {known}\n  >= {total}\n)"


def _half_judged(window: str) -> str:
    """Return the condition that at least half of the valid requests are judged: of fewer no rate is stated."""
    return f"2 * sum by (route) (rate({_JUDGED}[{window}]))\n  >= sum by (route) (rate({_VALID}[{window}]))"


def _share(part: str, whole: str, window: str) -> str:
    """Return part over whole by route; a part that was never born is zero, not absent."""
    total = f"sum by (route) (rate({whole}[{window}]))"
    return f"(\n  sum by (route) (rate({part}[{window}]))\n  or\n  0 * {total}\n)\n/ ({total} > 0)"


def burn_alerts(objective: float) -> Iterator[Burn]:
    """Yield the fast and the slow burn for an objective between 0 and 1."""
    yield _burn(Severity.PAGE, "1h", "5m", objective, ("2m", "5m"))
    yield _burn(Severity.TICKET, "6h", "30m", objective, ("15m", "15m"))


_FACTORS = {Severity.PAGE: 14.4, Severity.TICKET: 6.0}


def burning_share(severity: Severity, objective: float) -> float:
    """Return the share of requests without a usable answer above which an alert burns."""
    # An objective so low that the factor asks for more than everything still fires at nothing usable.
    return round(min(_FACTORS[severity] * _budget(objective), 0.999), 9)


def _budget(objective: float) -> float:
    return round(1 - objective, 9)


def _burn(severity: Severity, long: str, short: str, objective: float, times: tuple[str, str]) -> Burn:
    share, factor = burning_share(severity, objective), _FACTORS[severity]
    limit = promql_number(share)
    expr = (
        f"(1 - {usable_record(long)} > {limit})\n"
        f"and on (route) (1 - {usable_record(short)} > {limit})\n"
        f"and on (route) (sum by (route) (increase({_JUDGED}[{long}])) > {_MIN_REQUESTS} - 0.5)"
    )
    observed = "{{ $value | humanizePercentage }} of the judged requests to {{ $labels.route }} got no usable answer in " + long
    times_budget = f", {factor:g} times the budget" if share == round(factor * _budget(objective), 9) else ""
    return Burn(
        NAME, severity, long, expr, times[0], times[1],
        "The usable-answer rate is below its objective.",
        f"{observed} (threshold {share * 100:.4g} %{times_budget}). Inference: callers get less than promised, "
        "whatever the success rate says. Run: quietburn analyze LEDGER --since 1h",
    )
