"""Find the fewest fields that would let the most rules be evaluated, and the snippet that logs them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quietburn.common.columns import STORED_AS
from quietburn.dialects.mapping import Mapping as Dialect
from quietburn.engine.base import Carries, Logs
from quietburn.evaluate.rules import Outcome, RuleResult, missing_fields
from quietburn.report.model import UnlockReport

_MOST_SETS = 5
Fields = frozenset[str]


@dataclass(frozen=True)
class _WithFields:
    """A run as if its ledger carried some more fields."""

    run: Carries
    stored: Fields

    def carries(self, field: str) -> bool:
        """Whether the run would have a value in this column."""
        return field in self.stored or self.run.carries(field)


def unlock(results: list[RuleResult], run: Logs, mappings: Mapping[str, Dialect]) -> list[UnlockReport]:
    """Return sets of fields with the rules that they would unlock, most for their number first.

    At most five, and behind them for each dialect all that its log can be made to carry, so that
    what to paste is at hand where the shortest ways are others.
    """
    open_rules = [
        result
        for result in results
        if result.outcome is Outcome.NOT_EVALUATED and not any(":" in name for name in result.missing)
    ]
    wanted = {frozenset(result.missing) for result in open_rules}
    unlocked = {fields: _unlocked(fields, open_rules, run) for fields in wanted}
    ranked = sorted(wanted, key=lambda fields: (-len(unlocked[fields]) / len(fields), len(fields), sorted(fields)))[:_MOST_SETS]
    for fields in _loggable_sets(wanted, mappings):
        if fields not in ranked:
            ranked.append(fields)
            unlocked[fields] = _unlocked(fields, open_rules, run)
    return [
        UnlockReport(
            fields=sorted(fields), rules=len(rules), rule_ids=rules, paste=_paste(fields, mappings, run),
            logged_already=_logged_already(fields, mappings, run),
        )
        for fields, rules in ((fields, unlocked[fields]) for fields in ranked)
    ]


def _unlocked(fields: Fields, open_rules: list[RuleResult], run: Carries) -> list[str]:
    """Return the rules that would miss nothing any more, in order of their names."""
    then = _WithFields(run, frozenset(STORED_AS.get(name, name) for name in fields))
    return sorted(result.rule.id for result in open_rules if not missing_fields(result.rule, result.values, then))


def _loggable_sets(wanted: set[Fields], mappings: Mapping[str, Dialect]) -> Iterator[Fields]:
    """Yield for each dialect all fields that its log can carry and that make rules complete."""
    for mapping in mappings.values():
        fields = frozenset[str]().union(*(one for one in wanted if one <= mapping.log.keys()))
        if fields:
            yield fields


def _paste(fields: Fields, mappings: Mapping[str, Dialect], run: Logs) -> dict[str, str]:
    """Return by dialect what its log's format lacks for these fields; nothing where one can't be logged, or all are."""
    found = {name: _lacking(fields, mapping, run) for name, mapping in mappings.items() if fields <= mapping.log.keys()}
    return {name: mappings[name].pasted(texts.values()) for name, texts in found.items() if texts}


def _logged_already(fields: Fields, mappings: Mapping[str, Dialect], run: Logs) -> list[str]:
    """Return those of the fields that a log has all keys for, though no line gives a value."""
    logged = [(fields & mapping.log.keys()) - _lacking(fields, mapping, run).keys() for mapping in mappings.values()]
    return sorted(frozenset[str]().union(*logged))


def _lacking(fields: Fields, mapping: Dialect, run: Logs) -> dict[str, str]:
    return mapping.lacking(sorted(fields & mapping.log.keys()), run.logged_keys(mapping.dialect.name))
