"""What rule SQL may do, and what it must declare: each thing outside of it is refused by name."""

import re
import tomllib

import duckdb
import pytest
from tests.rules.helpers import RULES, defaults, rule

from quietburn.engine.binding import undeclared
from quietburn.ruleset.lint import Issue, faults, lint
from quietburn.ruleset.rule import Rule

PORTABLE = (
    "SELECT event_id, line FROM events WHERE status BETWEEN 200 AND 299 AND NOT error IS NULL OR route IN ('a', 'b')",
    "WITH a AS (SELECT backend, count(*) AS n FROM events GROUP BY backend HAVING count(*) > 3) SELECT n FROM a",
    "SELECT e.line FROM events e LEFT JOIN events f ON e.request_key = f.request_key AND e.nth = f.nth WHERE f.line IS NULL",
    "SELECT lag(ts_us, 2) OVER (PARTITION BY route ORDER BY ts_us, line) AS before_us FROM events",
    "SELECT max(ts_us) OVER w FROM events WINDOW w AS (ORDER BY ts_us RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)",
    "SELECT 1 AS n UNION ALL SELECT 2",
    "SELECT CAST(round(greatest(abs(a), sqrt(b)) * 10) AS BIGINT) // 3 AS n FROM (SELECT * FROM events)",
    "SELECT CASE WHEN COALESCE(a, 0) <> 0 THEN sum(b) / avg(a) END FROM events GROUP BY a",
)

MEDIAN = "calls median(); engines compute it differently; select the row by rank with row_number() (CONTRIBUTING.md, Medians)"
REFUSED = {
    "SELECT 1; SELECT 2": "holds 2 statements; write one SELECT",
    "DROP TABLE events": "is not one SELECT that can be parsed",
    "SELECT 1; DROP TABLE events": "is not one SELECT that can be parsed",
    "INSERT INTO events SELECT 1": "is not one SELECT that can be parsed",
    "COPY events TO 'x'": "is not one SELECT that can be parsed",
    "SELECT a FROM": "is not one SELECT that can be parsed",
    "": "holds 0 statements; write one SELECT",
    "SELECT a FROM events QUALIFY row_number() OVER (ORDER BY a) = 1": "uses QUALIFY",
    "SELECT count(*) FILTER (WHERE a > 1) FROM events": "uses FILTER",
    "SELECT list(a) FROM events": "calls list()",
    "SELECT [a, b] FROM events": "calls list_value()",
    "SELECT median(a) FROM events": MEDIAN,
    "SELECT quantile_cont(a, 0.5) FROM events": MEDIAN.replace("median", "quantile_cont"),
    "SELECT time_bucket(a, b) FROM events": "calls time_bucket()",
    "SELECT unnest(a) FROM events": "calls unnest()",
    "SELECT getenv('HOME') FROM events": "calls getenv()",
    "SELECT a LIKE 'x%' FROM events": "calls ~~()",
    "SELECT a, count(*) FROM events GROUP BY ALL": "uses GROUP BY ALL",
    "SELECT count(*) FROM events GROUP BY a + 1": "groups by something other than named columns",
    "SELECT count(*) FROM events GROUP BY ROLLUP (a, b)": "uses grouping sets",
    "SELECT a FROM events e ASOF JOIN events f ON e.a >= f.a": "uses a join that is neither inner nor left (asof inner)",
    "SELECT 1 FROM events FULL JOIN events f ON events.a = f.a": "uses a join that is neither inner nor left (regular full)",
    "SELECT 1 FROM events, events f": "uses a join that is neither inner nor left (cross inner)",
    "SELECT 1 FROM events e JOIN events f ON e.a > f.a":
        "joins on something other than equalities; put other conditions into WHERE",
    "SELECT 1 FROM events e JOIN events f ON e.a = f.a OR e.b = f.b":
        "joins on something other than equalities; put other conditions into WHERE",
    "SELECT DISTINCT a FROM events": "uses distinct on a result",
    "SELECT a FROM events LIMIT 1": "uses limit on a result",
    "SELECT a FROM events ORDER BY a": "uses order on a result",
    "SELECT count(DISTINCT a) FROM events": "counts DISTINCT values",
    "SELECT count(DISTINCT a) OVER () FROM events": "uses DISTINCT or FILTER in a window",
    "SELECT lag(a IGNORE NULLS) OVER (ORDER BY b) FROM events": "uses IGNORE NULLS",
    "SELECT ntile(4) OVER (ORDER BY b) FROM events": "calls ntile() over a window",
    "SELECT sum(a) OVER (ORDER BY b GROUPS 1 PRECEDING) FROM events": "uses a frame other than ROWS or RANGE",
    "SELECT a FROM other": "reads from 'other'; it may read only 'events' and the names in WITH",
    "SELECT a FROM '/etc/passwd'": "reads from '/etc/passwd'; it may read only 'events' and the names in WITH",
    "SELECT a FROM main.events": "reads from 'events' of another schema; it may read only 'events' and the names in WITH",
    "SELECT a FROM read_csv('x')": "reads from something other than a table (table function)",
    "SELECT a FROM (VALUES (1)) AS t (a)": "reads from something other than a table (expression list)",
    "SELECT (SELECT max(a) FROM events) FROM events": "uses an expression that is not portable (subquery)",
    "SELECT a FROM events WHERE a IN (SELECT b FROM events)": "uses an expression that is not portable (subquery)",
    "SELECT TRY_CAST(a AS BIGINT) FROM events": "uses TRY_CAST",
    "SELECT CAST(a AS DATE) FROM events": "casts to DATE; allowed types are BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR",
    "SELECT a IS DISTINCT FROM 1 FROM events": "uses compare distinct from",
    "SELECT * EXCLUDE (a) FROM events": "uses a star with EXCLUDE, REPLACE or COLUMNS",
    "SELECT COLUMNS('a.*') FROM events": "uses a star with EXCLUDE, REPLACE or COLUMNS",
    "SELECT a FROM events UNION SELECT b FROM events": "combines results by something other than UNION ALL",
    "SELECT a FROM events USING SAMPLE 10%": "uses TABLESAMPLE",
    "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r) SELECT a FROM r":
        "is a recursive cte node, not a plain SELECT",
}


@pytest.mark.parametrize("sql", PORTABLE)
def test_what_every_engine_has_is_let_through(sql: str) -> None:
    assert faults(sql) == []


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_portable_is_refused_by_its_name(sql: str) -> None:
    assert REFUSED[sql] in faults(sql)


def test_a_fault_is_found_however_deep_it_stands() -> None:
    inner = "WITH b AS (SELECT CASE WHEN median(x) > 1 THEN 1 END AS a FROM events) SELECT a FROM b"
    deep = f"SELECT a FROM (SELECT a FROM ({inner}))"

    assert faults(deep) == [MEDIAN]


def test_a_name_of_an_inner_with_is_not_known_outside_of_it() -> None:
    outside = "SELECT a FROM (WITH b AS (SELECT 1 AS a) SELECT a FROM b) JOIN b ON b.a = 1"

    assert faults(outside) == ["reads from 'b'; it may read only 'events' and the names in WITH"]


def test_minutes_and_suspects_are_tables_of_the_rules_that_have_them() -> None:
    both = "SELECT s.a FROM minutes m JOIN suspects s ON m.minute = s.minute"

    unknown = [f"reads from '{name}'; it may read only 'events' and the names in WITH" for name in ("minutes", "suspects")]
    assert faults(both) == unknown
    assert faults(both, frozenset({"events", "minutes", "suspects"})) == []
    own = rule("readiness-gap")
    assert [i.where for i in lint(own.model_copy(update={"minutes": {}}), defaults(own))] == ["classify.suspects"]


def changed(rule_id: str, old: str, new: str) -> Rule:
    """Return a shipped rule with another text in one place."""
    text = (RULES / f"{rule_id}.toml").read_text(encoding="utf-8")
    assert old in text
    return Rule.model_validate(tomllib.loads(text.replace(old, new)))


@pytest.mark.parametrize(
    ("rule_id", "old", "new", "issue"),
    [
        ("over-envelope", "WHERE is_attempt", "WHERE is_attempt AND median(line) > 1", Issue("classify.sql", MEDIAN)),
        ("saturation", '"waiting_5m"', '"list(waiting_5m)"', Issue("window.observed.waiting", "calls list()")),
        ("slow-ready", '"ready_ms > $slow_ms"', '"ready_ms IN (SELECT 1)"',
         Issue("events.slow_ready", "uses an expression that is not portable (subquery)")),
        ("readiness-gap", "s.checks = 0 AND", "median(s.checks) = 0 AND", Issue("alert.grades[0].minutes", MEDIAN)),
        ("saturation", '"avg(cpu_pct)"', '"avg(cpu_pct) FILTER (WHERE TRUE)"', Issue("minutes.cpu", "uses FILTER")),
    ],
)
def test_lint_names_the_key_of_the_rule_file(rule_id: str, old: str, new: str, issue: Issue) -> None:
    judged = changed(rule_id, old, new)

    assert issue in lint(judged, defaults(judged))


def test_an_expression_that_closes_its_bracket_and_goes_on_is_no_expression() -> None:
    judged = changed("queue-cause-unclear", 'evidence = "queue_age_ms > $wait_ms"', 'evidence = "TRUE) FROM events; SELECT (1"')

    assert [issue.problem for issue in lint(judged, defaults(judged))] == ["holds 2 statements; write one SELECT"]


@pytest.mark.parametrize(
    ("rule_id", "name"),
    [
        ("over-envelope", "inflight"), ("over-envelope", "decision"), ("retry-below-floor", "status"),
        ("retry-below-floor", "retry_after_s"), ("cpu-without-traffic", "cpu_pct"), ("saturation", "queue_age_ms"),
    ],
)
def test_a_column_that_is_read_and_not_declared_is_named(rule_id: str, name: str) -> None:
    about = rule(rule_id).rule
    less = about.model_copy(update={"needs": tuple(other for other in about.needs if other != name)})
    judged = rule(rule_id).model_copy(update={"rule": less})

    problem = f"reads {name!r} and doesn't declare it; name it in needs, any_of or optional"
    assert undeclared(judged, defaults(judged)) == [Issue("rule.needs", problem)]


@pytest.mark.parametrize("rule_id", ["over-envelope", "saturation"])
def test_a_need_that_nothing_reads_is_found(rule_id: str) -> None:
    judged = rule(rule_id)
    more = judged.model_copy(update={"rule": judged.rule.model_copy(update={"needs": (*judged.rule.needs, "ttft_ms")})})

    assert undeclared(more, defaults(more)) == [Issue("rule.needs", "declares 'ttft_ms' and doesn't read it")]


def test_the_median_that_contributing_shows_keeps_to_the_subset_and_is_the_one_in_the_middle() -> None:
    text = (RULES.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    rows = [("a", 0, 9), ("a", 1, 1), ("a", 59, 5), ("a", 60, 7), ("b", 0, 4), ("b", 0, 3), ("b", 1, 2), ("b", 1, 1)]

    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE TABLE events (route VARCHAR, minute BIGINT, ttft_ms DOUBLE)")
        connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
        medians = connection.execute(shown).fetchall()

    assert faults(shown) == []
    assert sorted(medians) == [("a", 0, 5.0), ("a", 1, 7.0), ("b", 0, 2.0)]
