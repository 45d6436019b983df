"""The portable subset that a rule's SQL keeps to, checked on DuckDB's own parse tree.

Nothing is matched in the text: `json_serialize_sql` gives the tree, and whatever is not known to
be portable is refused by its name. The subset is listed in docs and in the tests.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from quietburn.ruleset.files import Values, bind
from quietburn.ruleset.rule import Rule

Node = dict[str, Any]

EVENTS, MINUTES, SUSPECTS = "events", "minutes", "suspects"
FUNCTIONS = frozenset({
    "+", "-", "*", "/", "//", "abs", "round", "floor", "sqrt", "power", "greatest", "least",
    "sum", "count", "count_star", "min", "max", "avg",
})
_QUANTILES = frozenset({
    "median", "mad", "quantile", "quantile_cont", "quantile_disc", "approx_quantile", "percentile_cont", "percentile_disc",
})
_NO_QUANTILE = "engines compute it differently; select the row by rank with row_number() (CONTRIBUTING.md, Medians)"
WINDOW_FUNCTIONS = frozenset({"row_number", "lag", "lead", "sum", "count", "count_star", "min", "max", "avg"})
_CASTS = frozenset({"BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN"})
_OPERATORS = frozenset({
    "COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_COALESCE",
})
_COMPARISONS = frozenset({
    "COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_LESSTHAN", "COMPARE_GREATERTHAN", "COMPARE_LESSTHANOREQUALTO",
    "COMPARE_GREATERTHANOREQUALTO",
})


@dataclass(frozen=True)
class Issue:
    """One thing that a rule's SQL must not do, and where it stands in the rule file."""

    where: str
    problem: str


def lint(rule: Rule, values: Values) -> list[Issue]:
    """Return what is not portable in a rule's SQL; nothing for a good rule."""
    return [
        Issue(where, problem)
        for where, sql in _statements(rule, values)
        for problem in faults(sql, _tables_of(rule, where))
    ]


def _tables_of(rule: Rule, where: str) -> frozenset[str]:
    """Return the tables that a SQL text of a rule may read, by its key."""
    tables = {EVENTS}
    if rule.classify and where.startswith("classify."):
        tables |= {MINUTES} if rule.minutes else set()
        tables |= {SUSPECTS} if rule.classify.suspects and where == "classify.sql" else set()
    return frozenset(tables)


def _statements(rule: Rule, values: Values) -> Iterator[tuple[str, str]]:
    """Yield every SQL text of a rule as one SELECT, with its key."""
    if rule.classify:
        if rule.classify.suspects:
            yield "classify.suspects", bind(rule.classify.suspects, values)
        yield "classify.sql", bind(rule.classify.sql, values)
    for place, alert in enumerate(rule.alert.grades):
        if alert.minutes:
            yield f"alert.grades[{place}].minutes", bind(alert.minutes, values)
    expressions = {f"minutes.{name}": text for name, text in rule.minutes.items()}
    expressions |= {f"events.{name}": text for name, text in rule.events.items()}
    expressions |= {f"window.observed.{name}": text for name, text in rule.window_observed.items()}
    expressions |= {f"grades[{place}].flag": grade.flag for place, grade in enumerate(rule.grades)}
    if rule.finding.measure:
        expressions["finding.measure"] = rule.finding.measure
    if not rule.classify:
        expressions["finding.evidence"] = rule.evidence_sql
    for where, text in expressions.items():
        yield where, f"SELECT ({bind(text, values)}) AS value FROM {EVENTS}"


def faults(sql: str, tables: frozenset[str] = frozenset({EVENTS})) -> list[str]:
    """Return what a statement does outside of the subset, each once, in the order of the tree; `tables` it may read."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        row = connection.execute("SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)", [sql]).fetchone()
    tree: Node = json.loads(row[0]) if row else {"error": True}
    if tree["error"]:
        return ["is not one SELECT that can be parsed"]
    statements: list[Node] = tree["statements"]
    if len(statements) != 1:
        return [f"holds {len(statements)} statements; write one SELECT"]
    return list(dict.fromkeys(_walk(statements[0]["node"], tables)))


def _walk(node: object, tables: frozenset[str]) -> Iterator[str]:
    """Yield the faults of a part of the tree; `tables` are the names that it may read from."""
    if isinstance(node, list):
        for part in node:
            yield from _walk(part, tables)
    if not isinstance(node, dict):
        return
    yield from _of_node(node, tables)
    tables |= {entry["key"] for entry in (node.get("cte_map") or {}).get("map", [])}
    for part in node.values():
        yield from _walk(part, tables)


def _of_node(node: Node, tables: frozenset[str]) -> Iterator[str]:
    if "class" in node:
        check = _EXPRESSIONS.get(node["class"])
        yield from check(node) if check else [f"uses an expression that is not portable ({_words(node['class'])})"]
    elif str(node.get("type", "")).endswith("_NODE"):
        yield from _query(node)
    elif str(node.get("type", "")).endswith("_MODIFIER"):
        if node["type"] != "ORDER_MODIFIER" or node["orders"]:
            yield f"uses {_words(node['type'].removesuffix('_MODIFIER'))} on a result"
    elif "sample" in node and "type" in node:
        yield from _table(node, tables)


def _query(node: Node) -> Iterator[str]:
    if node["type"] == "SET_OPERATION_NODE":
        if node["setop_type"] != "UNION" or not node["setop_all"]:
            yield "combines results by something other than UNION ALL"
        return
    if node["type"] != "SELECT_NODE":
        yield f"is a {_words(node['type'])}, not a plain SELECT"
        return
    if node["qualify"]:
        yield "uses QUALIFY"
    if node["sample"]:
        yield "uses TABLESAMPLE"
    if node["aggregate_handling"] != "STANDARD_HANDLING":
        yield "uses GROUP BY ALL"
    if len(node["group_sets"]) > 1:
        yield "uses grouping sets"
    if any(part["class"] != "COLUMN_REF" for part in node["group_expressions"]):
        yield "groups by something other than named columns"


def _table(node: Node, tables: frozenset[str]) -> Iterator[str]:
    kind = node["type"]
    if kind == "BASE_TABLE":
        elsewhere = " of another schema" if node["schema_name"] or node["catalog_name"] else ""
        if elsewhere or node["table_name"] not in tables:
            yield f"reads from {node['table_name']!r}{elsewhere}; it may read only {EVENTS!r} and the names in WITH"
    elif kind == "JOIN":
        yield from _join(node)
    elif kind not in {"SUBQUERY", "EMPTY"}:
        yield f"reads from something other than a table ({_words(kind)})"


def _join(node: Node) -> Iterator[str]:
    if node["join_type"] not in {"INNER", "LEFT"} or node["ref_type"] != "REGULAR":
        yield f"uses a join that is neither inner nor left ({_words(node['ref_type'])} {_words(node['join_type'])})"
    elif not _only_equalities(node["condition"]):
        yield "joins on something other than equalities; put other conditions into WHERE"


def _only_equalities(condition: Node | None) -> bool:
    if condition is None:
        return False
    if condition["type"] == "CONJUNCTION_AND":
        return all(_only_equalities(part) for part in condition["children"])
    return bool(condition["type"] == "COMPARE_EQUAL")


# Expressions


def _fine(node: Node) -> Iterator[str]:  # noqa: ARG001 - stands beside the checks that look
    return iter(())


def _of(allowed: frozenset[str]) -> Callable[[Node], Iterator[str]]:
    def check(node: Node) -> Iterator[str]:
        if node["type"] not in allowed:
            yield f"uses {_words(node['type'])}"

    return check


def _function(node: Node) -> Iterator[str]:
    if node["function_name"] not in FUNCTIONS:
        yield f"calls {node['function_name']}()" + (f"; {_NO_QUANTILE}" if node["function_name"] in _QUANTILES else "")
    if node["filter"]:
        yield "uses FILTER"
    if node["distinct"]:
        yield "counts DISTINCT values"
    if node["order_bys"]["orders"]:
        yield "orders inside an aggregate"


def _window(node: Node) -> Iterator[str]:
    if node["function_name"] not in WINDOW_FUNCTIONS:
        yield f"calls {node['function_name']}() over a window"
    if node["distinct"] or node["filter_expr"]:
        yield "uses DISTINCT or FILTER in a window"
    if node["ignore_nulls"]:
        yield "uses IGNORE NULLS"
    if node["exclude_clause"] != "NO_OTHER" or "GROUPS" in f"{node['start']} {node['end']}":
        yield "uses a frame other than ROWS or RANGE"


def _cast(node: Node) -> Iterator[str]:
    if node["try_cast"]:
        yield "uses TRY_CAST"
    name = node["type_expr"]["type_name"] if "type_expr" in node else ""
    if name.upper() not in _CASTS:
        yield f"casts to {name or 'a type'}; allowed types are {', '.join(sorted(_CASTS))}"


def _star(node: Node) -> Iterator[str]:
    if any(node.get(key) for key in ("exclude_list", "replace_list", "rename_list", "expr")) or node.get("columns"):
        yield "uses a star with EXCLUDE, REPLACE or COLUMNS"


_EXPRESSIONS: dict[str, Callable[[Node], Iterator[str]]] = {
    "COLUMN_REF": _fine,
    "CONSTANT": _fine,
    "BETWEEN": _fine,
    "CASE": _fine,
    "CONJUNCTION": _fine,
    "TYPE": _fine,
    "COMPARISON": _of(_COMPARISONS),
    "OPERATOR": _of(_OPERATORS),
    "FUNCTION": _function,
    "WINDOW": _window,
    "CAST": _cast,
    "STAR": _star,
}


def _words(name: str) -> str:
    """Return a name of the tree in words."""
    return name.replace("_", " ").lower()
