"""Replay ledgers through the alerts: when each would have fired, and whether the classifier agrees."""

from collections.abc import Callable, Iterable

from pydantic import BaseModel, ConfigDict

from quietburn.alerts.promtool import PromtoolError
from quietburn.alerts.prove import Verdict, prove
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.engine.minutes import Reduction
from quietburn.evaluate.rules import missing_fields, reduced
from quietburn.ruleset.files import Values
from quietburn.ruleset.guard import RuleFault, running
from quietburn.ruleset.rule import Rule

_DAY_US = 86_400_000_000


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AlertHistory(_Frozen):
    """One alert over the ledger; minutes are evaluations, summed over subjects."""

    rule: str
    severity: str
    pages: int
    pages_a_night: float
    minutes_flagged: int
    minutes_firing: int
    matched: int
    missed: int
    false: int


class Backtest(_Frozen):
    """All alerts over the ledger; `nights` are the nights (noon to noon UTC) that hold events."""

    nights: int
    alerts: list[AlertHistory]
    not_evaluated: dict[str, list[str]]
    without_alert: dict[str, str]
    errored: dict[str, str]

    @property
    def agrees(self) -> bool:
        """Whether every alert fired as the classifier says."""
        return not any(alert.missed or alert.false for alert in self.alerts)


def backtest(engine: DuckEngine, chosen: Iterable[tuple[Rule, Values]], keep: dict[str, str] | None = None) -> Backtest:
    """Judge every rule's alerts on the engine's events by the real promtool.

    `keep` collects the generated promtool files by name. Raises PromtoolError where promtool is
    missing or can't evaluate.
    """
    nights = _nights(engine)
    histories: list[AlertHistory] = []
    missing: dict[str, list[str]] = {}
    without: dict[str, str] = {}
    ready: list[tuple[Rule, Values]] = []
    for rule, values in chosen:
        lacks = missing_fields(rule, values, engine)
        if lacks:
            missing[rule.id] = list(lacks)
        elif rule.alert.none:
            without[rule.id] = rule.alert.none
        else:
            ready.append((rule, values))
    errored: dict[str, str] = {}
    for rule, values, reduce in reduced(engine, ready):
        try:
            histories += [_history(verdict, nights) for verdict in _proven(engine, rule, values, reduce, keep)]
        except RuleFault as fault:
            errored[rule.id] = fault.problem
    return Backtest(nights=nights, alerts=histories, not_evaluated=missing, without_alert=without, errored=errored)


def _proven(
    engine: DuckEngine, rule: Rule, values: Values, reduce: Callable[[], Reduction], keep: dict[str, str] | None
) -> list[Verdict]:
    """Judge one rule's alerts inside of its guard. Raises RuleFault, and PromtoolError, which is no fault of a rule."""
    with running(rule, "alert", passing=(PromtoolError,)):
        return prove(engine, rule, values, reduce(), keep=keep)


def _nights(engine: DuckEngine) -> int:
    """Return how many nights, noon to noon UTC, hold events: a stray time adds one, not years."""
    rows = engine.select(
        f"SELECT count(*) AS n FROM (SELECT DISTINCT (ts_us - {_DAY_US // 2}) // {_DAY_US} AS night FROM events WHERE ts_us > 0)"
    ).to_pylist()
    return max(1, int(rows[0]["n"]))


def _history(verdict: Verdict, nights: int) -> AlertHistory:
    return AlertHistory(
        rule=verdict.rule,
        severity=verdict.severity,
        pages=verdict.pages,
        pages_a_night=verdict.pages / nights,
        minutes_flagged=verdict.flagged,
        minutes_firing=len(verdict.actual),
        matched=len(verdict.expected & verdict.actual),
        missed=len(verdict.missed),
        false=len(verdict.false),
    )
