"""The events that a rule file names itself, as counts of `quietburn_events_total`: one definition for both."""

from quietburn.engine.hits import hits_select
from quietburn.metrics.contract import Count
from quietburn.ruleset.files import Values, bind
from quietburn.ruleset.rule import Rule


def event_label(name: str) -> str:
    """Return the value of the label `rule` for an event's name in a rule file."""
    return name.replace("_", "-")


def events_of(rule: Rule, values: Values) -> tuple[Count, ...]:
    """Return what a rule counts: each predicate of `[events]`, or what its SELECT returns of `events` alone.

    A gateway counts event by event: what a SELECT finds only beside `minutes` or `suspects`, it can't.
    """
    if rule.classify and (rule.minutes or rule.classify.suspects):
        return ()
    if rule.classify:
        source = f"({hits_select(rule, values)})"
        return (Count("TRUE", fixed=(("rule", rule.classify.event),), source=source),)
    return tuple(
        Count(bind(predicate, values), fixed=(("rule", event_label(name)),)) for name, predicate in rule.events.items()
    )
