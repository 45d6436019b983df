"""What an event rule's SELECT returns, kept in a table: stretches without a quiet hour, and its minutes."""

from quietburn.engine.base import Engine
from quietburn.engine.minutes import Reduction
from quietburn.ruleset.files import Values, bind
from quietburn.ruleset.guard import RuleFault, running
from quietburn.ruleset.rule import Rule

SUSPECTS = "suspects"
HITS = "rule_hits"
HIT_MINUTES = "rule_hit_minutes"
_IN_TIME = "ts_us, file_id, line, item"
_QUIET_US = 3_600_000_000


def hits_select(rule: Rule, values: Values) -> str:
    """Return an event rule's SELECT with its numbers, beside each event's place, time, minute, kind and subject.

    It reads `events`, and where the rule has them `minutes` and `suspects`.
    """
    if rule.classify is None:
        raise ValueError(f"{rule.id} is no event rule")
    observed = "".join(f", h.{name}" for name in rule.classify.observed)
    told = rule.classify.subject
    owner = {"route": "e", "backend": "e"} | dict.fromkeys(told, "h")
    subject = "".join(f", COALESCE({table}.{key}, '') AS {key}" for key, table in owner.items())
    return (
        f"SELECT e.event_id, e.file_id, e.line, e.item, e.ts_us, e.minute, e.kind{subject}{observed} "
        f"FROM ({bind(rule.classify.sql, values)}) h JOIN events e ON e.event_id = h.event_id WHERE e.ts_us IS NOT NULL"
    )


def find_hits(engine: Engine, rule: Rule, values: Values, reduction: Reduction) -> Reduction:
    """Make the tables of an event rule's hits and of their minutes. Raises RuleFault.

    A minute's `stretch` numbers the subject's: more than an hour without a hit starts the next.
    """
    minutes = f"minutes AS ({reduction.minutes_select(rule, values)}), " if rule.minutes else ""
    if rule.classify and rule.classify.suspects:
        with running(rule, "classify.suspects"):
            engine.make_table(SUSPECTS, f"WITH {minutes}found AS ({bind(rule.classify.suspects, values)}) SELECT * FROM found")
    with running(rule, "classify.sql"):
        engine.make_table(HITS, f"WITH {minutes}found AS ({hits_select(rule, values)}) SELECT * FROM found")
        _refuse_repeats(engine, rule)
        columns = {bind(expression, values): name for name, expression in rule.minute_columns.items()}
        engine.make_table(HIT_MINUTES, _minutes_sql(rule, columns))
    return Reduction(columns, HIT_MINUTES)


def _refuse_repeats(engine: Engine, rule: Rule) -> None:
    """Raise RuleFault where an event stands among the hits more than once: it would count as several."""
    ((repeats,),) = engine.select(f"SELECT count(*) - count(DISTINCT event_id) AS n FROM {HITS}").to_pydict().values()
    if repeats:
        raise RuleFault(rule, "classify.sql", f"returns {repeats} events more than once")


def _minutes_sql(rule: Rule, columns: dict[str, str]) -> str:
    """Return the SELECT of a subject's minutes with hits: what is counted, and the stretch. They are few where hits are many."""
    keys = ", ".join(rule.rule.subject)
    counted = "".join(f", {expression} AS {name}" for expression, name in columns.items())
    order = f"PARTITION BY {keys} ORDER BY minute"
    opens = f"CASE WHEN first_us - lag(last_us) OVER ({order}) > {_QUIET_US} THEN 1 ELSE 0 END AS opens"
    return (
        f"WITH counted AS (SELECT {keys}, minute{counted}, min(ts_us) AS first_us, max(ts_us) AS last_us "
        f"FROM {HITS} GROUP BY {keys}, minute), "
        f"apart AS (SELECT *, {opens} FROM counted) "
        f"SELECT *, CAST(sum(opens) OVER ({order} ROWS UNBOUNDED PRECEDING) AS BIGINT) AS stretch FROM apart"
    )


def of_stretches(rule: Rule) -> str:
    """Return a subquery of the hits with the stretch that each is of."""
    on = " AND ".join(f"h.{key} = m.{key}" for key in (*rule.rule.subject, "minute"))
    return f"(SELECT h.*, m.stretch FROM {HITS} h JOIN {HIT_MINUTES} m ON {on})"


def stretches_sql(rule: Rule) -> str:
    """Return the SELECT of a rule's stretches: subject, first and last minute, and the worst hit's observed values."""
    keys = ", ".join(rule.rule.subject)
    observed = "".join(f", {name}" for name in rule.observed_names)
    by_subject = f"PARTITION BY {keys}, stretch"
    spans = (
        f"SELECT {keys}, stretch, min(minute) AS first_minute, max(minute) AS last_minute "
        f"FROM {HIT_MINUTES} GROUP BY {keys}, stretch"
    )
    order = f"{rule.finding.worst_by} DESC NULLS LAST, {_IN_TIME}"
    placed = f"SELECT *, row_number() OVER ({by_subject} ORDER BY {order}) AS place FROM {of_stretches(rule)}"
    worst = f"SELECT * FROM ({placed}) WHERE place = 1"
    on = " AND ".join(f"w.{key} = s.{key}" for key in (*rule.rule.subject, "stretch"))
    named = ", ".join(f"s.{key} AS {key}" for key in (*rule.rule.subject, "stretch"))
    return (
        f"SELECT {named}, s.first_minute, s.last_minute{observed} FROM ({worst}) w JOIN ({spans}) s ON {on} "
        f"ORDER BY {', '.join(f's.{key}' for key in (*rule.rule.subject, 'stretch'))}"
    )
