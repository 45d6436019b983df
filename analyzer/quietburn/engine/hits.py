"""What an event rule's SELECT returns, kept in a table: stretches without a quiet hour, and its minutes."""

from quietburn.engine.base import Engine
from quietburn.engine.minutes import Reduction
from quietburn.ruleset.guard import running
from quietburn.ruleset.load import Values, bind
from quietburn.ruleset.model import Rule

SUSPECTS = "suspects"
HITS = "rule_hits"
_HIT_MINUTES = "rule_hit_minutes"
_MINUTE_US = 60_000_000
_QUIET_US = 3_600_000_000


def hits_select(rule: Rule, values: Values) -> str:
    """Return an event rule's SELECT with its numbers, and the minute that each event falls into.

    It reads `events`, and where the rule has them `minutes` and `suspects`.
    """
    if rule.classify is None:
        raise ValueError(f"{rule.id} is no event rule")
    observed = "".join(f", {name}" for name in rule.classify.observed)
    return (
        f"SELECT file, line, ts_us, COALESCE(route, '') AS route, COALESCE(backend, '') AS backend{observed}, "
        f"(ts_us + {_MINUTE_US - 1}) // {_MINUTE_US} AS minute FROM ({bind(rule.classify.sql, values)}) WHERE ts_us IS NOT NULL"
    )


def find_hits(engine: Engine, rule: Rule, values: Values, reduction: Reduction) -> Reduction:
    """Make the tables of an event rule's hits and of their count a minute. Raises RuleFault.

    `stretch` numbers a subject's hits: more than an hour without one starts the next.
    """
    keys = ", ".join(rule.rule.subject)
    order = f"PARTITION BY {keys} ORDER BY ts_us, file, line"
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
    columns = {bind(expression, values): name for name, expression in rule.minute_columns.items()}
    counted = "".join(f", {expression} AS {name}" for expression, name in columns.items())
    engine.make_table(_HIT_MINUTES, f"SELECT {keys}, minute{counted} FROM {HITS} GROUP BY {keys}, minute")
    return Reduction(columns, _HIT_MINUTES)


def stretches_sql(rule: Rule) -> str:
    """Return the SELECT of a rule's stretches: subject, first and last minute, and the worst hit's observed values."""
    keys = ", ".join(rule.rule.subject)
    observed = "".join(f", {name}" for name in rule.observed_names)
    by_subject = f"PARTITION BY {keys}, stretch"
    return (
        f"SELECT {keys}, stretch, first_minute, last_minute{observed} FROM (SELECT *, "
        f"min(minute) OVER ({by_subject}) AS first_minute, max(minute) OVER ({by_subject}) AS last_minute, "
        f"row_number() OVER ({by_subject} ORDER BY {rule.finding.worst_by} DESC NULLS LAST, ts_us, file, line) AS place "
        f"FROM {HITS}) WHERE place = 1 ORDER BY {keys}, stretch"
    )
