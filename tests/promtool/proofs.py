"""What the proofs of alerts share: rules and ledgers by glob, one rule on one ledger, mutants."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

import promql_parser as promql

from quietburn.alerts.groups import AlertRule, Group, Options, alerts_of, alerts_yaml
from quietburn.alerts.input_series import stepped_values
from quietburn.alerts.promql import bound_expression
from quietburn.alerts.promtool import run_tests
from quietburn.alerts.prove import Subject, Verdict, alert_minutes, frames, prove, reach_minutes, series_for
from quietburn.alerts.templates import rendered
from quietburn.analysis.run import Request, analyzing
from quietburn.common.resources import rule_files
from quietburn.engine.base import Engine
from quietburn.engine.minutes import Reduction, reduce_to_minutes
from quietburn.evaluate.rules import missing_fields
from quietburn.metrics.samples import EventRows, Frame, Series
from quietburn.ruleset.files import Values, load_rule
from quietburn.ruleset.rule import Rule

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "fixtures" / "rules"
NIGHT = ROOT / "fixtures" / "ledgers" / "short_night.jsonl"


@cache
def every_rule() -> tuple[Rule, ...]:
    """Return every rule file there is."""
    return tuple(load_rule(path) for path in rule_files())


WITH_ALERT = [rule.id for rule in every_rule() if not rule.alert.none]


def samples(rule_id: str, ending: str = "") -> list[Path]:
    """Return a rule's own ledgers whose names end so (`fires`, `quiet`)."""
    return sorted(path for path in (SAMPLES / rule_id).glob("*.jsonl") if path.stem.endswith(ending))


@dataclass(frozen=True)
class Opened:
    """One rule on one ledger, its events at hand."""

    rule: Rule
    values: Values
    engine: Engine
    reduction: Reduction
    lacks: tuple[str, ...]
    _series: dict[Frame, list[Series]] = field(default_factory=dict)

    @cached_property
    def alerts(self) -> list[AlertRule]:
        """The rule's alerts with the numbers of this run."""
        return alerts_of(self.rule, self.values, Options())

    @cached_property
    def frames(self) -> list[Frame]:
        """The spans that are judged."""
        return frames(self.engine, reach_minutes(self.rule, self.alerts))

    def series(self, frame: Frame) -> list[Series]:
        """Return the series that the alerts select, made once for each span."""
        if frame not in self._series:
            self._series[frame] = series_for(EventRows(self.engine), self.rule, self.values, self.alerts, frame)
        return self._series[frame]

    @cached_property
    def flagged(self) -> list[dict[Subject, list[int]]]:
        """The minutes by subject in which each alert should hold."""
        grades = self.rule.alert.grades
        return [alert_minutes(self.engine, self.rule, grade, self.values, self.reduction) for grade in grades]

    def prove(self, offset: int = 0) -> list[Verdict]:
        """Judge the alerts by the real promtool."""
        return prove(self.engine, self.rule, self.values, self.reduction, offset=offset)


Judged = Callable[[str, Path], Opened]


@contextmanager
def open_ledger(rule_id: str, ledger: Path) -> Iterator[Opened]:
    """Read a ledger for one rule alone."""
    expected = json.loads((SAMPLES / rule_id / "expected.json").read_text(encoding="utf-8"))
    settings = tuple(f"{rule_id}.{name}={number}" for name, number in expected["settings"].items())
    with analyzing([str(ledger)], Request(only=(rule_id,), settings=settings, threads=1)) as analysis:
        rule, values = analysis.rules[0]
        reduction = reduce_to_minutes(analysis.engine, analysis.rules)
        yield Opened(rule, values, analysis.engine, reduction, tuple(missing_fields(rule, values, analysis.engine)))


# Mutants


@dataclass(frozen=True)
class Mutant:
    """An expression that says something else, and what was done to it."""

    name: str
    expr: str


def mutants_of(expression: str, values: Values) -> list[Mutant]:
    """Return an alert's mutants: thresholds doubled and halved, comparisons turned, clauses dropped.

    `expression` is the rule's own, its parameters still unbound.
    """
    usual = bound_expression(expression, values)
    found = [*_moved(expression, values), *_by_node(usual, _clause_dropped), *_by_node(usual, _comparison_turned)]
    names = Counter(mutant.name for mutant in found)
    seen: Counter[str] = Counter()
    numbered = []
    for mutant in found:
        seen[mutant.name] += 1
        number = f", occurrence {seen[mutant.name]}" if names[mutant.name] > 1 else ""
        numbered.append(replace(mutant, name=mutant.name + number))
    return numbered


def _moved(expression: str, values: Values) -> Iterator[Mutant]:
    for name in dict.fromkeys(re.findall(r"\$([a-z][a-z0-9_]*)", expression)):
        number = values[name].number
        for word, factor in (("doubled", 2.0), ("halved", 0.5)):
            moved = values | {name: replace(values[name], number=None if number is None else number * factor)}
            yield Mutant(f"{name} {word}", bound_expression(expression, moved))


def _by_node(expression: str, change: Callable[[promql.BinaryExpr], list[tuple[str, str]]]) -> Iterator[Mutant]:
    """Yield the expression with one node exchanged, for each node and each way to change it."""
    nodes: list[promql.BinaryExpr] = []

    def collect(node: promql.Expr) -> bool:
        if isinstance(node, promql.BinaryExpr):
            nodes.append(node)
        return True

    promql.walk(promql.parse(expression), collect)
    for index, node in enumerate(nodes):
        for name, text in change(node):
            yield Mutant(name, _exchanged(expression, index, text))


def _exchanged(expression: str, index: int, text: str) -> str:
    seen = -1

    def put(node: promql.Expr) -> promql.Expr | None:
        nonlocal seen
        seen += isinstance(node, promql.BinaryExpr)
        if seen == index and isinstance(node, promql.BinaryExpr):
            seen = 1_000_000
            return promql.parse(f"({text})")
        return None

    return str(promql.transform(promql.parse(expression), put))


def _clause_dropped(node: promql.BinaryExpr) -> list[tuple[str, str]]:
    """Return one side each of a logical operator; what `unless` takes away is never left alone."""
    operator = str(node.op)
    if operator not in {"and", "or", "unless"}:
        return []
    dropped = [(f"without `{operator} {_short(node.rhs)}`", str(node.lhs))]
    return dropped if operator == "unless" else [*dropped, (f"without `{_short(node.lhs)} {operator}`", str(node.rhs))]


_TURNED = {">": "<", ">=": "<", "<": ">=", "<=": ">"}


def _comparison_turned(node: promql.BinaryExpr) -> list[tuple[str, str]]:
    operator = str(node.op)
    if operator not in _TURNED:
        return []
    left, right = str(node.lhs), str(node.rhs)
    between = str(node)[len(left):-len(right)]
    return [(f"`{operator} {_short(node.rhs)}` turned", f"{left}{between.replace(operator, _TURNED[operator], 1)}{right}")]


def _short(node: promql.Expr) -> str:
    text = str(node)
    return text if len(text) <= 60 else f"{text[:30]}…{text[-25:]}"


def survivors(opened: Opened, mutants: dict[int, list[Mutant]]) -> set[tuple[int, str]]:
    """Return the mutants (grade, name) that fire exactly as the alert itself does on this ledger.

    All of them stand in one rule file, and promtool is asked once for all spans: in which minutes
    does one fire and not the other?
    """
    usual = opened.alerts
    named = {f"Mutant{grade}x{n}": (grade, m) for grade, found in mutants.items() for n, m in enumerate(found)}
    changed = [replace(usual[grade], name=name, expr=mutant.expr, annotations={}) for name, (grade, mutant) in named.items()]
    tests = [_asked(opened, frame, [*usual, *changed], named) for frame in opened.frames]
    files = {
        "rules.yaml": alerts_yaml([Group("mutants", (*usual, *changed))], Options(), []),
        "test.yaml": rendered("alerts_test.yaml.j2", header=[], rule_file="rules.yaml", tests=tests),
    }
    differing = {name for d in run_tests(files, "test.yaml") for name in re.findall(r"Mutant\d+x\d+", d.expr)}
    return {(grade, mutant.name) for name, (grade, mutant) in named.items() if name not in differing}


def _asked(opened: Opened, frame: Frame, alerts: list[AlertRule], named: dict[str, tuple[int, Mutant]]) -> dict[str, object]:
    series = series_for(EventRows(opened.engine), opened.rule, opened.values, alerts, frame)
    return {
        "name": f"from minute {frame.first}",
        "interval": "15s",
        "series": [{"selector": one.selector, "text": stepped_values(one, frame.minutes * 60)} for one in series],
        "checks": [
            {"expr": _disagreement(opened, name, opened.alerts[grade], frame), "minute": frame.minutes, "labels": []}
            for name, (grade, _) in named.items()
        ],
    }


def _disagreement(opened: Opened, mutant: str, usual: AlertRule, frame: Frame) -> str:
    subject = ", ".join(opened.rule.rule.subject)
    one = f'ALERTS{{alertname="{mutant}",alertstate="firing"}}'
    other = f'ALERTS{{alertname="{usual.name}",alertstate="firing",severity="{usual.labels["severity"]}"}}'
    either = f"({one} unless on ({subject}) {other}) or ({other} unless on ({subject}) {one})"
    return f"count_over_time(({either})[{frame.minutes - 1}m:1m])"
