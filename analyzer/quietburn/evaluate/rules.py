"""Evaluate rules on an engine: outcomes and findings."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from quietburn.common.columns import STORED_AS
from quietburn.engine.base import Carries, Engine
from quietburn.engine.minutes import Reduction, reduce_to_minutes
from quietburn.evaluate.episodes import judge
from quietburn.evaluate.findings import Finding, findings
from quietburn.ruleset.files import Values
from quietburn.ruleset.guard import RuleFault, running
from quietburn.ruleset.rule import Rule


class Outcome(StrEnum):
    """What became of a rule in a run; never fewer than these four."""

    FIRED = "fired"
    QUIET = "quiet"
    NOT_EVALUATED = "not_evaluated"
    ERRORED = "errored"


@dataclass(frozen=True)
class RuleResult:
    """A rule's outcome; `missing` for what could not be evaluated, `problem` for what errored."""

    rule: Rule
    values: Values
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()
    problem: str | None = None


def classify(
    engine: Engine, rules: Iterable[tuple[Rule, Values]], cannot_tell: dict[str, str] | None = None,
    loggable: Collection[str] = (),
) -> list[RuleResult]:
    """Evaluate every rule.

    `cannot_tell` names rules that the ledger's dialects can't tell although the fields are
    there, with the reason; `loggable` fields that these dialects can carry. A rule of which any
    part fails is errored, never quiet, and costs no other rule its verdict.
    """
    rules = list(rules)
    results: dict[str, RuleResult] = {}
    ready: list[tuple[Rule, Values]] = []
    for rule, values in rules:
        missing = missing_fields(rule, values, engine, loggable)
        reason = (cannot_tell or {}).get(rule.id)
        if missing or reason:
            # Which fields are missing says nothing to someone whose gateway can't log them.
            listed = (f"this dialect can't tell: {reason}",) if reason else missing
            results[rule.id] = RuleResult(rule, values, Outcome.NOT_EVALUATED, missing=listed)
        else:
            ready.append((rule, values))
    for rule, values, reduce in reduced(engine, ready):
        results[rule.id] = _evaluate(engine, rule, values, reduce)
    return [results[rule.id] for rule, _ in rules]


def missing_fields(rule: Rule, values: Values, engine: Carries, loggable: Collection[str] = ()) -> tuple[str, ...]:
    """Return what the run lacks for a rule: fields as users log them, or `not configured: NAME`.

    Of fields that stand for each other the first that are all `loggable` are named, else the first.
    """

    def carries(field_name: str) -> bool:
        return engine.carries(STORED_AS.get(field_name, field_name))

    missing = [name for name in rule.rule.needs if not carries(name)]
    for group in rule.rule.any_of:
        lacks = [[name for name in entry.split("+") if not carries(name)] for entry in group]
        if all(lacks):
            named = next((names for names in lacks if set(names) <= set(loggable)), lacks[0])
            missing += [name for name in named if name not in missing]
    missing += [f"not configured: {n}" for n, p in rule.parameters.items() if p.required and values[n].number is None]
    return tuple(missing)


def reduced(
    engine: Engine, ready: list[tuple[Rule, Values]]
) -> Iterator[tuple[Rule, Values, Callable[[], Reduction]]]:
    """Yield rules with what gives their minutes: reduced for all at once, or, when that fails, for each when it is called."""
    try:
        of_all = reduce_to_minutes(engine, ready)
    except Exception:  # noqa: BLE001 - which rule it was shows when each is reduced alone
        for rule, values in ready:
            yield rule, values, partial(reduce_to_minutes, engine, [(rule, values)])
        return
    for rule, values in ready:
        yield rule, values, lambda: of_all


def _evaluate(engine: Engine, rule: Rule, values: Values, reduce: Callable[[], Reduction]) -> RuleResult:
    """Evaluate one rule inside of its guard."""
    try:
        with running(rule, "rule"):
            with running(rule, "minutes"):
                reduction = reduce()
            found = tuple(findings(engine, rule, judge(engine, rule, values, reduction)))
    except RuleFault as fault:
        return RuleResult(rule, values, Outcome.ERRORED, problem=fault.problem)
    return RuleResult(rule, values, Outcome.FIRED if found else Outcome.QUIET, found)
