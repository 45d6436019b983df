"""Which rules explain which others, as one graph over all rule files."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from quietburn.common.messages import nearest
from quietburn.errors import ConfigError
from quietburn.ruleset.rule import Rule

Explained = Mapping[str, frozenset[str]]


def check_explains(rules: Iterable[Rule]) -> None:
    """Refuse an `explains` that names no rule, or leads back to its own rule. Raises ConfigError."""
    explains = {rule.id: rule.rule.explains for rule in rules}
    for rule_id, names in explains.items():
        for name in names:
            if name not in explains:
                raise ConfigError(f"rule {rule_id}: explains names {name!r}, which is not a rule{nearest(name, explains)}.")
    _ordered(explains)


def explained_by(rules: Iterable[Rule]) -> Explained:
    """Return by rule all that it explains, directly or through another rule. Raises ConfigError where that goes in a circle."""
    direct = {rule.id: rule.rule.explains for rule in rules}
    found: dict[str, frozenset[str]] = {}
    for rule_id in _ordered(direct):
        names = direct.get(rule_id, ())
        found[rule_id] = frozenset(names).union(*(found[name] for name in names))
    return found


def _ordered(explains: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return rules so that what is explained comes before what explains it."""
    try:
        return list(TopologicalSorter(explains).static_order())
    except CycleError as problem:
        circle = problem.args[1][::-1]
        told = ", which explains ".join(circle)
        raise ConfigError(f"rule {circle[0]}: explains is circular: {told}. Remove one of them.") from None
