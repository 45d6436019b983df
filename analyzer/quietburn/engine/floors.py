"""Find the subjects that a rule can flag at all: those whose totals reach the floors in its flag.

A flag such as `late_5m >= $min_late AND late_5m >= $late_share * two_xx_5m` can hold nowhere for a subject that
has fewer late answers in the whole ledger. Its windows need not be worked out: of ten thousand routes few remain.
"""

import re

from quietburn.ruleset.files import Values, bind
from quietburn.ruleset.rule import Rule

_WORD = re.compile(r"[()]|\b(?:AND|OR|CASE)\b", re.IGNORECASE)
_FLOOR = re.compile(r"\s*(\w+)\s*>=?\s*(?:CAST\(([0-9.eE+-]+) AS DOUBLE\)|([0-9]+(?:\.[0-9]+)?))\s*")
_ROUNDING = 1e-9  # a sum of fractions may come out so much smaller in another order


def floors(flag: str, rule: Rule) -> dict[str, float]:
    """Return the least that a bound flag asks of sums, by minute column: of each condition that must hold by itself.

    Empty where the flag is no conjunction, or names none.
    """
    found: dict[str, float] = {}
    for condition in _conjuncts(flag):
        asked = _FLOOR.fullmatch(condition)
        source, _ = rule.rolled.get(asked[1], ("", "")) if asked else ("", "")
        if asked and source and not rule.is_gauge(source):
            found[source] = max(found.get(source, 0.0), float(asked[2] or asked[3]))
    return found


def reaching(rule: Rule, values: Values, columns: dict[str, str]) -> str | None:
    """Return the HAVING predicate over a subject's minutes: they may reach a grade's floors. None where a grade names none.

    `columns` hold the rule's minute expressions. A sum over a window is at most that of all positive minutes.
    """
    grades = [floors(bind(grade.flag, values), rule) for grade in rule.grades]
    if not all(grades):
        return None
    return " OR ".join(
        "(" + " AND ".join(
            f"sum(GREATEST({columns[name]}, 0)) >= {least * (1 - _ROUNDING)!r}" for name, least in asked.items()
        ) + ")"
        for asked in grades
    )  # fmt: skip


def _conjuncts(flag: str) -> list[str]:
    """Return what a flag joins by AND outside of parentheses; nothing where it is no conjunction."""
    depth, start, parts = 0, 0, []
    for word in _WORD.finditer(flag):
        if word[0] in "()":
            depth += 1 if word[0] == "(" else -1
        elif depth == 0 and word[0].upper() != "AND":
            return []
        elif depth == 0:
            parts.append(flag[start : word.start()])
            start = word.end()
    return [*parts, flag[start:]]
