"""What the tests of rules share: fixtures from disk, reports reduced to what is promised, binding."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from quietburn.analysis import Request, analyze
from quietburn.engine.derive import DERIVED
from quietburn.engine.hits import hits_select
from quietburn.ledger.events import BY_NAME, STORED_AS
from quietburn.ledger.mapping import Mapping
from quietburn.report.model import FindingReport, Report
from quietburn.ruleset.load import bind, load_rule, parameter_values
from quietburn.ruleset.model import Rule

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "rules"
FIXTURES = ROOT / "fixtures" / "rules"
RULE_IDS = sorted(path.stem for path in RULES.glob("*.toml"))

# What each derived column is made from, as users log it (ledger.md, usable-answers.md).
_REQUEST = {"ts", "latency_ms", "deadline_ms"}
_CHAIN = {"request_id", "ts", "latency_ms"}
_QUESTIONS = {"answer_chars", "finish_reason", "terminal_seen", "stream_complete"}
MADE_FROM = {
    "is_2xx": {"status"},
    "request_has_2xx": {"status"},
    "on_time": _REQUEST,
    "request_started_us": {"ts", "latency_ms"},
    "request_start_known": {"ts", "latency_ms"},
    "start_known": {"ts", "latency_ms"},
    "request_key": _CHAIN,
    "nth": _CHAIN,
    "of_request": _CHAIN,
    "timed_out": {"error"},
    "request_deadline_us": _REQUEST,
    "non_empty": {"answer_chars"},
    "complete": {"finish_reason", "terminal_seen", "stream_complete"},
    "verdict": {"status"} | _REQUEST | _QUESTIONS,
    "decides": {"status"} | _REQUEST | _QUESTIONS,
    "tokens": {"actual_tokens", "prompt_tokens", "completion_tokens"},
    "prefix_is_new": {"ts", "prefix_fp"},
    "minute": {"ts"},
}


@dataclass(frozen=True)
class Expected:
    """A rule's expected.json."""

    findings: dict[str, list[dict[str, Any]]]
    scenarios: dict[str, dict[str, tuple[int, int]]]
    flips: list[dict[str, Any]]
    settings: dict[str, float]


@cache
def rule(rule_id: str) -> Rule:
    return load_rule(RULES / f"{rule_id}.toml")


@cache
def expected(rule_id: str) -> Expected:
    content = json.loads((FIXTURES / rule_id / "expected.json").read_text(encoding="utf-8"))
    scenarios = {name: {s: (a, b) for s, (a, b) in places.items()} for name, places in content["scenarios"].items()}
    return Expected(content["findings"], scenarios, content["flips"], content["settings"])


def ledger_path(rule_id: str, ledger: str) -> Path:
    return FIXTURES / rule_id / f"{ledger}.jsonl"


def ledger_lines(rule_id: str, ledger: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ledger_path(rule_id, ledger).read_text(encoding="utf-8").splitlines()]


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def only(rule_id: str, settings: tuple[str, ...] = (), mapping: Mapping | None = None) -> Request:
    """Return the request for one rule with the numbers that its ledgers take for granted."""
    usual = tuple(f"{rule_id}.{name}={number}" for name, number in expected(rule_id).settings.items())
    return Request(only=(rule_id,), settings=(*usual, *settings), mapping=mapping)


@cache
def report_on(rule_id: str, ledger: str, settings: tuple[str, ...] = ()) -> Report:
    """Judge a fixture by its rule alone."""
    return analyze([str(ledger_path(rule_id, ledger))], only(rule_id, settings))


def in_time(report: Report) -> list[FindingReport]:
    """Return the findings of a report from the first to the last."""
    return sorted(report.findings, key=lambda f: (f.alert_window.start, sorted(f.subject.items())))


def by_scenario(rule_id: str, ledger: str, report: Report) -> list[tuple[str, str]]:
    """Return (scenario, severity) of each finding, by where its evidence lies."""
    places = expected(rule_id).scenarios[ledger]
    found = []
    for finding in in_time(report):
        names = {name for e in finding.evidence for name, (first, last) in places.items() if first <= e.line <= last}
        found.append((" and ".join(sorted(names)), finding.severity))
    return found


def without(fields: tuple[str, ...], lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key not in fields} for line in lines]


def reads(judged: Rule) -> frozenset[str]:
    """Return the columns of `events` that a rule's SQL names, as they are stored."""
    flags = [grade.flag for grade in judged.grades]
    select = judged.classify.sql if judged.classify else judged.evidence
    measure = judged.finding.measure or ""
    text = [*judged.minute_columns.values(), *flags, *judged.window_observed.values(), select, measure]
    words = set(re.findall(r"[a-z_][a-z0-9_]*", " ".join(text)))
    return frozenset(words & (set(BY_NAME) | set(DERIVED)))


def declared(judged: Rule) -> set[str]:
    """Return the columns that a rule says it needs, may use instead, or reads where a ledger has them."""
    return {STORED_AS.get(name, name) for name in judged.rule.fields}


def bind_against(judged: Rule, columns: set[str]) -> None:
    """Compute every expression of a rule on an empty `events` of these and the derived columns.

    Raises duckdb.Error where one doesn't bind.
    """
    values = parameter_values(judged, dialects=frozenset(), configured={}, given={})
    labels = {"route", "backend"} - declared(judged) if judged.classify else set()  # every event rule gives them back
    types = {name: BY_NAME[name].sql_type for name in columns | labels} | DERIVED
    connection = duckdb.connect(":memory:")
    try:
        connection.execute(f"CREATE TABLE events ({', '.join(f'{name} {kind}' for name, kind in types.items())})")
        if judged.classify:
            connection.execute(f"SELECT * FROM ({hits_select(judged, values)})").fetchall()
        else:
            minutes = [f"{bind(text, values)} AS {name}" for name, text in judged.minute_columns.items()]
            connection.execute(f"SELECT minute, {', '.join(minutes)} FROM events GROUP BY minute").fetchall()
            measure = bind(judged.finding.measure, values) if judged.finding.measure else "NULL"
            connection.execute(f"SELECT {measure} FROM events WHERE {bind(judged.evidence, values)}").fetchall()
        rolled = ", ".join(f"{name} DOUBLE" for name in judged.rolled)
        connection.execute(f"CREATE TABLE windows (grade INTEGER, {rolled})")
        over_windows = [*(grade.flag for grade in judged.grades), *judged.window_observed.values()]
        connection.execute(f"SELECT {', '.join(bind(text, values) for text in over_windows)} FROM windows").fetchall()
    finally:
        connection.close()
