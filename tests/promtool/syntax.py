"""What PromQL's syntax tree says of an expression: labels that survive, conditions, selectors."""

from collections.abc import Iterator, Mapping

import promql_parser as promql

from quietburn.metrics.contract import COUNTERS, GAUGES, HISTOGRAM_SUFFIXES, HISTOGRAMS, LEDGER_LINES

COUNTER_NAMES = {counter.name for counter in COUNTERS} | {LEDGER_LINES}
SERIES_OF_HISTOGRAMS = {histogram.name + suffix for histogram in HISTOGRAMS for suffix in HISTOGRAM_SUFFIXES}
GAUGE_NAMES = {gauge.name for gauge in GAUGES}
CONTRACT = COUNTER_NAMES | SERIES_OF_HISTOGRAMS | GAUGE_NAMES

SET_OPERATORS = {"and", "or", "unless"}
COMPARISONS = {">", ">=", "<", "<=", "==", "!="}


def nodes(expression: promql.Expr) -> list[promql.Expr]:
    """Return every node of an expression."""
    found: list[promql.Expr] = []

    def visit(node: promql.Expr) -> bool:
        found.append(node)
        return True

    promql.walk(expression, visit)
    return found


def binaries(expression: promql.Expr) -> Iterator[promql.BinaryExpr]:
    """Yield every operation on two sides."""
    return (node for node in nodes(expression) if isinstance(node, promql.BinaryExpr))


def selectors(expression: promql.Expr) -> list[promql.VectorSelector]:
    """Return every selector, those inside ranges too."""
    found = [node for node in nodes(expression) if isinstance(node, promql.VectorSelector)]
    inside = [node.vector_selector for node in nodes(expression) if isinstance(node, promql.MatrixSelector)]
    return list({str(selector): selector for selector in [*found, *inside]}.values())


def bare(node: promql.Expr) -> promql.Expr:
    """Return a node without the parentheses around it."""
    while isinstance(node, promql.ParenExpr):
        node = node.expr
    return node


def is_number(node: promql.Expr) -> bool:
    """Whether a node is a number, computed or not."""
    node = bare(node)
    if isinstance(node, promql.BinaryExpr):
        return is_number(node.lhs) and is_number(node.rhs)
    return isinstance(node, promql.NumberLiteral)


def is_condition(node: promql.Expr) -> bool:
    """Whether a vector is empty unless something is compared, or absent."""
    node = bare(node)
    if isinstance(node, promql.Call):
        return bool(node.func.name == "absent")
    if not isinstance(node, promql.BinaryExpr):
        return False
    if str(node.op) == "or":
        return is_condition(node.lhs) and is_condition(node.rhs)
    return is_condition(node.lhs) if str(node.op) in SET_OPERATORS else str(node.op) in COMPARISONS


def surviving_labels(node: promql.Expr, records: Mapping[str, promql.Expr]) -> frozenset[str]:
    """Return the labels that every series of a vector has, whatever the ledger; recording rules by name.

    Raises AssertionError where sides with different labels meet and nobody said how.
    """
    node = bare(node)
    if isinstance(node, promql.NumberLiteral):
        return frozenset()
    if isinstance(node, promql.VectorSelector):
        return surviving_labels(records[node.name or ""], records) if node.name in records else _own(node.name or "")
    if isinstance(node, promql.Call):
        return _of_call(node)
    if isinstance(node, promql.AggregateExpr):
        assert node.modifier is None or node.modifier.type is promql.AggModifierType.By, f"{node}: name the labels kept"
        return frozenset(node.modifier.labels if node.modifier is not None else ())
    assert isinstance(node, promql.BinaryExpr), f"unexpected {node}"
    return _of_binary(node, records)


def _own(name: str) -> frozenset[str]:
    """Return the labels that the contract gives a series."""
    fixed = {counter.name: {key for count in counter.counts for key, _ in count.fixed} for counter in COUNTERS}
    labels = {counter.name: frozenset(key for key, _ in counter.labels) | fixed[counter.name] for counter in COUNTERS}
    labels |= {gauge.name: frozenset(gauge.labels) for gauge in GAUGES}
    for histogram in HISTOGRAMS:
        for suffix in HISTOGRAM_SUFFIXES:
            le = {"le"} if suffix == "_bucket" else set()
            labels[histogram.name + suffix] = frozenset({key for key, _ in histogram.labels} | le)
    return labels[name]


def _of_call(node: promql.Call) -> frozenset[str]:
    argument = bare(node.args[0])
    selector = argument.vector_selector if isinstance(argument, promql.MatrixSelector) else argument
    assert isinstance(selector, promql.VectorSelector), f"unexpected {node}"
    if node.func.name == "absent":
        return frozenset(m.name for m in selector.matchers.matchers if m.op is promql.MatchOp.Equal)
    return _own(selector.name or "")


def _of_binary(node: promql.BinaryExpr, records: Mapping[str, promql.Expr]) -> frozenset[str]:
    if is_number(node.lhs):
        return surviving_labels(node.rhs, records)
    if is_number(node.rhs):
        return surviving_labels(node.lhs, records)
    if str(node.op) in SET_OPERATORS:
        left = surviving_labels(node.lhs, records)
        return left & surviving_labels(node.rhs, records) if str(node.op) == "or" else left
    return _of_matching(node, surviving_labels(node.lhs, records), surviving_labels(node.rhs, records))


def _of_matching(node: promql.BinaryExpr, left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    matching = node.modifier.matching if node.modifier is not None else None
    if node.modifier is None or matching is None:
        assert left == right, f"{node}: {set(left)} meet {set(right)}, and nothing says on which labels"
        return left
    if node.modifier.card is promql.VectorMatchCardinality.ManyToOne:
        return left
    return frozenset(matching.labels) if matching.type is promql.LabelModifierType.Include else left - set(matching.labels)
