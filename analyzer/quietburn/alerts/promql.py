"""PromQL of the rule files: parameters put in, names and bounds read out."""

import re
from collections.abc import Iterable
from decimal import Decimal

from quietburn.metrics.contract import canonical_bound
from quietburn.ruleset.files import Values

_PARAMETER = re.compile(r"\$([a-z][a-z0-9_]*)(:le|:h)?")
_RANGE = re.compile(r"\[([1-9][0-9]*)([smh])\]")
_UNIT_S = {"s": 1, "m": 60, "h": 3600}
_METRIC = re.compile(r"\bquietburn_[a-z0-9_]+")
_BOUND = re.compile(r'\ble="([^"]+)"')
_IN_DESCRIPTION = re.compile(r"<<([a-z][a-z0-9_]*)>>")


def promql_number(value: float) -> str:
    """Return a number as PromQL reads it best, and exactly: exponents from 1000 on."""
    if abs(value) < 1000:
        return str(int(value)) if value == int(value) else repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    fraction = "." + "".join(rest) if rest else ""
    return f"{'-' if sign else ''}{first}{fraction}e{int(exponent) + len(rest)}"


def bound_expression(expression: str, values: Values) -> str:
    """Put the parameters' numbers into an expression.

    `$name:le` is a bucket bound in seconds, `$name:h` a duration of so many hours.
    """

    def put(match: re.Match[str]) -> str:
        number = values[match[1]].number
        if number is None:
            raise ValueError(f"parameter {match[1]!r} has no number")
        return {None: promql_number, ":le": canonical_bound, ":h": _hours}[match[2]](number)

    return _PARAMETER.sub(put, expression.strip())


def _hours(number: float) -> str:
    """Return hours as a duration of Prometheus, which has no fractions."""
    return f"{int(number)}h" if number == int(number) else f"{round(number * 3600)}s"


def longest_range_s(expressions: Iterable[str]) -> int:
    """Return the longest range of bound expressions in seconds; 0 where there is none."""
    ranges = [int(n) * _UNIT_S[unit] for expression in expressions for n, unit in _RANGE.findall(expression)]
    return max(ranges, default=0)


def described(text: str, values: Values) -> str:
    """Put the parameters' numbers into a description; shares read as percentages."""

    def put(match: re.Match[str]) -> str:
        name, number = match[1], values[match[1]].number
        if number is None:
            return "not configured"
        return f"{number * 100:g} %" if "share" in name else f"{number:g}"

    return _IN_DESCRIPTION.sub(put, text)


def metrics_in(expressions: Iterable[str]) -> set[str]:
    """Return the names of the series that expressions select."""
    return {name for expression in expressions for name in _METRIC.findall(expression)}


def bounds_in(expressions: Iterable[str]) -> set[str]:
    """Return the bucket bounds that expressions select, but for +Inf."""
    return {bound for expression in expressions for bound in _BOUND.findall(expression)} - {"+Inf"}


def one_line(expression: str) -> str:
    """Return an expression on one line."""
    return " ".join(expression.split())
