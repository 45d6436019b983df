"""Events reduced to minutes, once for all rules; rolling windows over minutes.

The grid is Prometheus's: the value at minute t covers (t - window, t]. A subject can be flagged in
each minute with events, and in as many minutes after it as the longest window. Its sums change only
where a minute enters or leaves a window: they are worked out there, and hold until the next such point.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quietburn.engine.base import Engine
from quietburn.engine.floors import reaching
from quietburn.ruleset.files import Values, bind
from quietburn.ruleset.rule import Rule, window_minutes

MINUTES = "minute_facts"
GAUGES = "minute_gauges"
_SUBJECTS = ("route", "backend")


@dataclass(frozen=True)
class Reduction:
    """Which column of a table of minutes holds which bound expression."""

    columns: dict[str, str]
    table: str = MINUTES

    def column(self, rule: Rule, name: str, values: Values) -> str:
        """Return the column that holds a rule's minute expression."""
        return self.columns[bind(rule.minute_columns[name], values)]

    def minutes_select(self, rule: Rule, values: Values) -> str:
        """Return the SELECT of `minutes` as an event rule reads them: by route, backend and minute, under its own names."""
        held = {name: self.columns[bind(expression, values)] for name, expression in rule.minutes.items()}
        named = "".join(
            f", {_mean_of(column) if rule.is_gauge(name) else column} AS {name}" for name, column in held.items()
        )
        return f"SELECT route, backend, minute{named} FROM {MINUTES}"


def reduce_to_minutes(engine: Engine, rules: Iterable[tuple[Rule, Values]]) -> Reduction:
    """Make `minute_facts` (sums by route and backend) and `minute_gauges` (means by backend).

    A gauge belongs to the backend, whatever route its lines had: a minute's gauge is the mean
    of that minute. Equal expressions of several rules are computed once.
    """
    sums: dict[str, str] = {}
    gauges: dict[str, str] = {}
    for rule, values in rules:
        for name, expression in rule.reduced_columns.items():
            bound = bind(expression, values)
            if rule.is_gauge(name):
                gauges.setdefault(bound.strip()[len("avg(") : -1], f"g{len(gauges)}")
            else:
                sums.setdefault(bound, f"s{len(sums)}")
    parts = "".join(f", {_sum_of(value)} AS {column}_sum, count({value}) AS {column}_count" for value, column in gauges.items())
    listed = "".join(f", COALESCE({expression}, 0) AS {column}" for expression, column in sums.items())
    engine.make_table(
        MINUTES,
        f"SELECT route, COALESCE(backend, '') AS backend, minute{listed}{parts} FROM events "
        "WHERE minute IS NOT NULL AND route IS NOT NULL GROUP BY route, COALESCE(backend, ''), minute",
    )
    means = "".join(
        f", {_mean_of(column, over='sum')} AS {column}" for column in gauges.values()
    )
    engine.make_table(GAUGES, f"SELECT backend, minute{means} FROM {MINUTES} GROUP BY backend, minute")
    for value, table in engine.side_gauges.items():
        if value in gauges:
            _take_from_elsewhere(engine, gauges, value, table)
    return Reduction(sums | {f"avg({value})": column for value, column in gauges.items()})


def _take_from_elsewhere(engine: Engine, gauges: Mapping[str, str], value: str, table: str) -> None:
    """Put a gauge's means from elsewhere in the place of the ledger's, minute by minute.

    Means without a backend are those of every backend that has none of its own.
    """
    column = gauges[value]
    others = "".join(f", g.{name} AS {name}" for name in gauges.values() if name != column)
    engine.make_table(
        "side_gauge",
        "SELECT b.backend AS backend, s.minute AS minute, "
        "COALESCE(avg(CASE WHEN s.backend = b.backend THEN s.value END), avg(s.value)) AS value "
        f"FROM {table} s JOIN (SELECT DISTINCT backend FROM {MINUTES}) b ON s.backend = b.backend OR s.backend = '' "
        "GROUP BY b.backend, s.minute",
    )
    engine.make_table(
        "gauges_of_both",
        f"SELECT COALESCE(g.backend, s.backend) AS backend, COALESCE(g.minute, s.minute) AS minute{others}, "
        f"COALESCE(s.value, g.{column}) AS {column} FROM {GAUGES} g FULL JOIN side_gauge s "
        "ON g.backend = s.backend AND g.minute = s.minute",
    )
    engine.make_table(GAUGES, "SELECT * FROM gauges_of_both")


def _sum_of(value: str) -> str:
    """Return a sum in millionths as an integer: it comes out the same in whatever order rows are added."""
    return f"sum(CAST(round(({value}) * 1000000) AS BIGINT))"


def _mean_of(column: str, over: str = "") -> str:
    """Return a gauge's mean from its sum of millionths and its count, in a minute or over several (`over="sum"`)."""
    return f"CAST({over}({column}_sum) AS DOUBLE) / (NULLIF({over}({column}_count), 0) * 1000000.0)"


def exact_mean(value: str) -> str:
    """Return the SQL mean of a value to a millionth, the same whatever the order of rows."""
    return f"CAST({_sum_of(value)} AS DOUBLE) / (count({value}) * 1000000.0)"


def flagged_minutes_sql(rule: Rule, values: Values, reduction: Reduction) -> str:
    """Return the SELECT of a rule's flagged minutes; a row for as many of them as are alike.

    Columns: the subject's, the first `minute` (its end, in minutes since 1970), how many minutes
    it `lasts`, `grade` (index into the rule's grades, the most severe that holds), and the observed values.
    """
    subject = list(rule.rule.subject)
    keys = ", ".join(subject)
    sums = [name for name in rule.minute_columns if not rule.is_gauge(name)]
    gauges = [name for name in rule.minute_columns if rule.is_gauge(name)]
    summed = "".join(f", COALESCE(sum(CASE WHEN later = 0 THEN {reduction.column(rule, n, values)} END), 0) AS {n}" for n in sums)
    rolled_sums = "".join(_rolled(rule, n, keys, "sum") for n in sums)
    over = f"OVER (PARTITION BY {keys} ORDER BY minute"
    points = _points(keys, _suspects(rule, values, reduction), f"{summed}, min(later) AS point_later", _offsets(rule))
    parts = [
        f"points AS ({points})",
        f"sums AS (SELECT {keys}, minute{rolled_sums}, COALESCE(lead(minute) {over}) - minute, 1) AS point_lasts, "
        f"min(point_later) {over} RANGE BETWEEN {rule.longest_window - 1} PRECEDING AND CURRENT ROW) AS point_held FROM points)",
    ]
    source = "sums"
    if gauges:
        parts += _gauge_parts(rule, values, reduction, gauges)
        on = "sums.minute = means.minute" + (" AND sums.backend = means.backend" if "backend" in subject else "")
        source = f"sums LEFT JOIN means ON {on}"
    picked = ", ".join(f"sums.{k} AS {k}" for k in subject)
    rolled = "".join(f", {name}" for name in rule.rolled)
    cases = " ".join(f"WHEN {bind(g.flag, values)} THEN {i}" for i, g in enumerate(rule.grades))
    observed = "".join(f", {bind(e, values)} AS {n}" for n, e in rule.window_observed.items())
    return (
        f"WITH {', '.join(parts)}, windows AS (SELECT {picked}, sums.minute AS minute, point_lasts{rolled} FROM {source} "
        f"WHERE point_held = 0), graded AS (SELECT *, CASE {cases} END AS grade FROM windows) "
        f"SELECT {keys}, minute, CAST(point_lasts AS BIGINT) AS lasts, grade{observed} FROM graded "
        f"WHERE grade IS NOT NULL ORDER BY {keys}, minute"
    )


def _suspects(rule: Rule, values: Values, reduction: Reduction) -> str:
    """Return the table of minutes, of those subjects alone that the rule can flag at all."""
    held = {name: reduction.column(rule, name, values) for name in rule.minute_columns if not rule.is_gauge(name)}
    may_flag = reaching(rule, values, held)
    if may_flag is None:
        return reduction.table
    keys = ", ".join(rule.rule.subject)
    return (
        f"(SELECT * FROM {reduction.table} JOIN (SELECT {keys} FROM {reduction.table} GROUP BY {keys} HAVING {may_flag}) "
        f"AS may_be USING ({keys})) AS suspects"
    )


def _offsets(rule: Rule) -> list[int]:
    """Return how long after an event's minute a rule's sums change.

    All offsets for a rule with gauges, which change at minutes of their own.
    """
    if any(rule.is_gauge(name) for name in rule.minute_columns):
        return list(range(rule.longest_window + 1))
    return sorted({0, rule.longest_window, *(window_minutes(length) for _, length in rule.rolled.values())})


def _points(keys: str, table: str, columns: str, offsets: Iterable[int]) -> str:
    """Return the SELECT of the minutes that lie `later` by one of these offsets than a minute of a table."""
    return (
        f"SELECT {keys}, minute + later AS minute{columns} FROM {table} CROSS JOIN {_listed(offsets)} "
        f"GROUP BY {keys}, minute + later"
    )


def _listed(numbers: Iterable[int]) -> str:
    return "(VALUES " + ", ".join(f"({number})" for number in numbers) + ") AS offsets(later)"


def _rolled(rule: Rule, name: str, keys: str, function: str) -> str:
    parts = []
    for column, (source, length) in rule.rolled.items():
        if source == name:
            rows = window_minutes(length) - 1
            frame = f"ORDER BY minute RANGE BETWEEN {rows} PRECEDING AND CURRENT ROW"
            parts.append(f", {function}({name}) OVER (PARTITION BY {keys} {frame}) AS {column}")
    return "".join(parts)


def _gauge_parts(rule: Rule, values: Values, reduction: Reduction, gauges: list[str]) -> list[str]:
    """Roll gauges on their own grid: a window's mean is the mean over minutes that have one."""
    keyed = "backend" in rule.rule.subject
    keys = "backend" if keyed else "backend_of_all"
    table = GAUGES if keyed else f"(SELECT *, '' AS backend_of_all FROM {GAUGES}) AS gauges"
    means = "".join(f", avg(CASE WHEN later = 0 THEN {reduction.column(rule, n, values)} END) AS {n}" for n in gauges)
    rolled = "".join(_rolled(rule, n, keys, "avg") for n in gauges)
    return [
        f"gauge_points AS ({_points(keys, table, means, _offsets(rule))})",
        f"means AS (SELECT {keys}, minute{rolled} FROM gauge_points)",
    ]
