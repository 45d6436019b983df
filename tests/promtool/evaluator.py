"""A few words of PromQL in Python, to ask what left-open ranges (Prometheus 3) make of the same samples.

Only what the rules' alerts use; anything else fails loudly. That it evaluates as promtool does is
seen where both are held against the classifier on the same ledgers.
"""

import operator
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import promql_parser as promql

from quietburn.metrics.samples import STEP_S, Series

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
LOOKBACK_S = 300

_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": lambda a, b: a / b if b else float("nan") if a == 0 else float("inf"),
}
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq,
}
_AGGREGATE: Mapping[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min, "count": len}


@dataclass(frozen=True)
class Samples:
    """One series as scraped: times in seconds, and values."""

    name: str
    labels: dict[str, str]
    times: list[int]
    values: list[float]


def scraped(series: Iterable[Series], seconds: int, *, held: bool) -> list[Samples]:
    """Return series as samples: counters every 15 s, and a second later again when held."""
    found = []
    for one in series:
        labels = {name: value for name, value in one.labels if value}
        if one.is_counter:
            times, values = _counter(dict(one.points), seconds, held=held)
        else:
            times, values = [t for t, _ in one.points], [value for _, value in one.points]
        found.append(Samples(one.name, labels, times, values))
    return found


def _counter(changes: dict[int, float], seconds: int, *, held: bool) -> tuple[list[int], list[float]]:
    times: list[int] = []
    values: list[float] = []
    value = 0.0
    for second in range(0, seconds + 1, STEP_S):
        value = changes.get(second, value)
        for at in (second, second + 1) if held else (second,):
            times.append(at)
            values.append(value)
    return times, values


@dataclass(frozen=True)
class Evaluator:
    """Evaluates expressions over samples; `left_open` leaves out a range's left edge."""

    samples: list[Samples]
    left_open: bool

    def at(self, expression: promql.Expr, second: int) -> Vector:
        """Return the vector that an expression has at a time."""
        value = self._value(expression, second)
        if isinstance(value, float):
            raise TypeError("an alert's expression is a vector")
        return value

    def _value(self, node: promql.Expr, at: int) -> Vector | float:
        if isinstance(node, promql.NumberLiteral):
            return float(node.val)
        if isinstance(node, promql.ParenExpr):
            return self._value(node.expr, at)
        if isinstance(node, promql.Call):
            return self._call(node, at)
        if isinstance(node, promql.AggregateExpr):
            return self._aggregate(node, at)
        if isinstance(node, promql.BinaryExpr):
            return self._binary(node, at)
        if isinstance(node, promql.VectorSelector):
            windows = self._windows(node, at, LOOKBACK_S)
            return {labels: values[-1] for labels, _, values in windows}
        raise NotImplementedError(f"the tests' evaluator does not know {node}")

    def _windows(self, node: promql.VectorSelector, at: int, length: int) -> list[tuple[Labels, list[int], list[float]]]:
        cut = bisect_right if self.left_open else bisect_left
        found = []
        for one in self.samples:
            if one.name == node.name and _matches(one.labels, node.matchers):
                first, end = cut(one.times, at - length), bisect_right(one.times, at)
                if first < end:
                    found.append((frozenset(one.labels.items()), one.times[first:end], one.values[first:end]))
        return found

    def _call(self, node: promql.Call, at: int) -> Vector:
        selector = node.args[0]
        if not isinstance(selector, promql.MatrixSelector):
            raise NotImplementedError(f"the tests' evaluator does not know {node}")
        length = int(selector.range.total_seconds())
        windows = self._windows(selector.vector_selector, at, length)
        if node.func.name == "avg_over_time":
            return {labels: sum(values) / len(values) for labels, _, values in windows}
        if node.func.name == "increase":
            return {key: increase(times, values, at - length, at) for key, times, values in windows if len(times) > 1}
        raise NotImplementedError(f"the tests' evaluator does not know {node.func.name}")

    def _aggregate(self, node: promql.AggregateExpr, at: int) -> Vector:
        inner = self._value(node.expr, at)
        if isinstance(inner, float) or (node.modifier is not None and node.modifier.type != promql.AggModifierType.By):
            raise NotImplementedError(f"the tests' evaluator does not know {node}")
        kept = set(node.modifier.labels) if node.modifier is not None else set()
        groups: dict[Labels, list[float]] = {}
        for labels, value in inner.items():
            groups.setdefault(frozenset(pair for pair in labels if pair[0] in kept), []).append(value)
        return {labels: _AGGREGATE[str(node.op)](values) for labels, values in groups.items()}

    def _binary(self, node: promql.BinaryExpr, at: int) -> Vector | float:
        left, right = self._value(node.lhs, at), self._value(node.rhs, at)
        name = str(node.op)
        if isinstance(left, float) and isinstance(right, float):
            return _ARITHMETIC[name](left, right)
        if isinstance(left, dict) and isinstance(right, dict):
            return _matched(node, left, right)
        if isinstance(left, dict) and isinstance(right, float):
            return _pairwise(name, ((labels, value, right, value) for labels, value in left.items()))
        if isinstance(left, float) and isinstance(right, dict):
            return _pairwise(name, ((labels, left, value, value) for labels, value in right.items()))
        raise AssertionError("a value is a number or a vector")


def _matches(labels: dict[str, str], matchers: promql.Matchers) -> bool:
    return all(_matches_one(labels.get(m.name, ""), m) for m in matchers.matchers)


def _matches_one(value: str, matcher: promql.Matcher) -> bool:
    wanted: str = matcher.value
    if matcher.op in (promql.MatchOp.Equal, promql.MatchOp.NotEqual):
        return (value == wanted) is (matcher.op is promql.MatchOp.Equal)
    return (re.fullmatch(wanted, value) is not None) is (matcher.op is promql.MatchOp.Re)


def _pairwise(name: str, pairs: Iterable[tuple[Labels, float, float, float]]) -> Vector:
    """Return arithmetic, or what a comparison keeps; pairs are labels, both operands and what is kept."""
    if name in _COMPARE:
        return {labels: kept for labels, a, b, kept in pairs if _COMPARE[name](a, b)}
    return {labels: _ARITHMETIC[name](a, b) for labels, a, b, _ in pairs}


def _matched(node: promql.BinaryExpr, left: Vector, right: Vector) -> Vector:
    key = _key_of(node)
    name = str(node.op)
    rights = {key(labels): value for labels, value in right.items()}
    if name == "and":
        return {labels: value for labels, value in left.items() if key(labels) in rights}
    if name == "unless":
        return {labels: value for labels, value in left.items() if key(labels) not in rights}
    if name == "or":
        lefts = {key(labels) for labels in left}
        return left | {labels: value for labels, value in right.items() if key(labels) not in lefts}
    if len(rights) != len(right):
        raise ValueError(f"many-to-many matching in {node}")
    return _pairwise(
        name, ((labels, value, rights[key(labels)], value) for labels, value in left.items() if key(labels) in rights)
    )


def _key_of(node: promql.BinaryExpr) -> Callable[[Labels], Labels]:
    matching = node.modifier.matching if node.modifier is not None else None
    if matching is None:
        return lambda labels: labels
    listed = set(matching.labels)
    if matching.type == promql.LabelModifierType.Include:
        return lambda labels: frozenset(pair for pair in labels if pair[0] in listed)
    return lambda labels: frozenset(pair for pair in labels if pair[0] not in listed)


def increase(times: list[int], values: list[float], start: int, end: int) -> float:
    """Return `increase` of a counter without resets, extrapolated as promql/functions.go does."""
    gained = values[-1] - values[0]
    sampled = times[-1] - times[0]
    between = sampled / (len(times) - 1)
    to_start, to_end = float(times[0] - start), float(end - times[-1])
    if gained > 0:
        to_start = min(to_start, sampled * values[0] / gained)
    reach = sum(gap if gap < between * 1.1 else between / 2 for gap in (to_start, to_end))
    return gained * (sampled + reach) / sampled
