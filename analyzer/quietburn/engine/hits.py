"""What an event rule's SELECT returns, kept in a table: stretches without a quiet hour, and its minutes."""

from quietburn.engine.base import Engine
from quietburn.engine.minutes import Reduction
from quietburn.ruleset.guard import RuleFault, running
from quietburn.ruleset.load import Values, bind
from quietburn.ruleset.model import Rule

SUSPECTS = "suspects"
HITS = "rule_hits"
_HIT_MINUTES = "rule_hit_minutes"
_IN_TIME = "ts_us, file_id, line, item"
_QUIET_US = 3_600_000_000


def hits_select(rule: Rule, values: Values) -> str:
    """Return an event rule's SELECT with its numbers, beside each event's place, time, minute and subject.

    It reads `events`, and where the rule has them `minutes` and `suspects`.
    """
    if rule.classify is None:
        raise ValueError(f"{rule.id} is no event rule")
    observed = "".join(f", h.{name}" for name in rule.classify.observed)
    owner = {key: "h" if key in rule.classify.subject else "e" for key in ("route", "backend")}
    subject = "".join(f", COALESCE({table}.{key}, '') AS {key}" for key, table in owner.items())
    return (
        f"SELECT e.event_id, e.file_id, e.line, e.item, e.ts_us, e.minute{subject}{observed} "
        f"FROM ({bind(rule.classify.sql, values)}) h JOIN events e ON e.event_id = h.event_id WHERE e.ts_us IS NOT NULL"
    )


def find_hits(engine: Engine, rule: Rule, values: Values, reduction: Reduction) -> Reduction:
    """Make the tables of an event rule's hits and of their count a minute. Raises RuleFault.

    `stretch` numbers a subject's hits: more than an hour without one starts the next.
    """
    keys = ", ".join(rule.rule.subject)
    order = f"PARTITION BY {keys} ORDER BY {_IN_TIME}"
    minutes = f"minutes AS ({reduction.minutes_select(rule, values)}), " if rule.minutes else ""
    if rule.classify and rule.classify.suspects:
        with running(rule, "classify.suspects"):
            engine.make_table(SUSPECTS, f"WITH {minutes}found AS ({bind(rule.classify.suspects, values)}) SELECT * FROM found")
    with running(rule, "classify.sql"):
        opens = f"CASE WHEN ts_us - lag(ts_us) OVER ({order}) > {_QUIET_US} THEN 1 ELSE 0 END AS opens"
        engine.make_table(
            HITS,
            f"WITH {minutes}found AS ({hits_select(rule, values)}), apart AS (SELECT *, {opens} FROM found) "
            f"SELECT *, CAST(sum(opens) OVER ({order} ROWS UNBOUNDED PRECEDING) AS BIGINT) AS stretch FROM apart",
        )
        _refuse_repeats(engine, rule)
    columns = {bind(expression, values): name for name, expression in rule.minute_columns.items()}
    counted = "".join(f", {expression} AS {name}" for expression, name in columns.items())
    engine.make_table(_HIT_MINUTES, f"SELECT {keys}, minute{counted} FROM {HITS} GROUP BY {keys}, minute")
    return Reduction(columns, _HIT_MINUTES)


def _refuse_repeats(engine: Engine, rule: Rule) -> None:
    """Raise RuleFault where an event stands among the hits more than once: it would count as several."""
    ((repeats,),) = engine.select(f"SELECT count(*) - count(DISTINCT event_id) AS n FROM {HITS}").to_pydict().values()
    if repeats:
        raise RuleFault(rule, "classify.sql", f"returns {repeats} events more than once")


def stretches_sql(rule: Rule) -> str:
    """Return the SELECT of a rule's stretches: subject, first and last minute, and the worst hit's observed values."""
    keys = ", ".join(rule.rule.subject)
    observed = "".join(f", {name}" for name in rule.observed_names)
    by_subject = f"PARTITION BY {keys}, stretch"
    return (
        f"SELECT {keys}, stretch, first_minute, last_minute{observed} FROM (SELECT *, "
        f"min(minute) OVER ({by_subject}) AS first_minute, max(minute) OVER ({by_subject}) AS last_minute, "
        f"row_number() OVER ({by_subject} ORDER BY {rule.finding.worst_by} DESC NULLS LAST, {_IN_TIME}) AS place "
        f"FROM {HITS}) WHERE place = 1 ORDER BY {keys}, stretch"
    )
