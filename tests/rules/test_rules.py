"""Every rule there is, against its own ledgers: fires, stays quiet, says what it lacks, never hides that it failed."""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.rules.make import files, stale
from tests.rules.helpers import (
    FIXTURES,
    RULE_IDS,
    RULES,
    Opened,
    by_scenario,
    defaults,
    expected,
    in_time,
    judged_again,
    ledger_lines,
    ledger_path,
    only,
    report_on,
    rule,
    without,
    write_lines,
)

from quietburn.analysis.run import Request, analyze
from quietburn.dialects.mapping import Mapping, shipped_mappings
from quietburn.engine.binding import undeclared
from quietburn.evaluate.rules import Outcome
from quietburn.metrics.contract import ATTEMPT_EVENTS
from quietburn.metrics.rule_events import events_of
from quietburn.report.model import Report
from quietburn.ruleset.lint import lint

FOLDERS = {path.parent.name for path in FIXTURES.glob("*/expected.json")}
COVERED = [rule_id for rule_id in RULE_IDS if rule_id in FOLDERS]  # test_every_rule_has_fixtures names the others
LEDGERS = [(rule_id, ledger) for rule_id in COVERED for ledger in expected(rule_id).findings]
FLIPS = [
    pytest.param(rule_id, flip, id=f"{rule_id}-{flip['ledger']}-" + ",".join(f"{k}={v:g}" for k, v in flip["set"].items()))
    for rule_id in COVERED
    for flip in expected(rule_id).flips
]
NEEDS = [(rule_id, field) for rule_id in COVERED for field in rule(rule_id).rule.needs]
GROUPS = [(rule_id, group) for rule_id in COVERED for group in rule(rule_id).rule.any_of]


def timeless() -> Mapping:
    """Return a mapping such as a user writes for a ledger with canonical names and no time."""
    gateway = next(m for m in shipped_mappings() if m.dialect.name == "gateway")
    about = gateway.dialect.model_copy(update={"name": "timeless", "time": "none"})
    columns = {name: ways for name, ways in gateway.columns.items() if name not in {"ts", "started_at"}}
    return gateway.model_copy(update={"dialect": about, "columns": columns})


def missing_of(report: Report, rule_id: str) -> list[str] | None:
    return next((entry.missing for entry in report.not_evaluated if entry.rule == rule_id), None)


# Fixtures


@pytest.mark.parametrize("rule_id", RULE_IDS)
def test_every_rule_has_fixtures_that_fire_and_that_stay_quiet(rule_id: str) -> None:
    present = {path.name for path in (FIXTURES / rule_id).glob("*")}

    missing = {"fires.jsonl", "quiet.jsonl", "expected.json"} - present
    assert not missing, f"write fixtures/rules/cases/{rule_id.replace('-', '_')}.py and run `python fixtures/rules/make.py`"
    assert expected(rule_id).findings["fires"]
    assert not expected(rule_id).findings["quiet"]


def test_no_fixtures_are_left_of_a_rule_that_is_gone() -> None:
    assert set(RULE_IDS) >= FOLDERS


def test_fixtures_on_disk_are_what_the_script_makes() -> None:
    made = files()
    on_disk = {path.relative_to(FIXTURES) for path in FIXTURES.glob("*/*") if path.suffix in {".jsonl", ".json"}}

    assert stale(made) == [], "run `python fixtures/rules/make.py`"
    assert on_disk == set(made), "remove the folders of rules that are gone"


def test_the_script_makes_every_fixture_from_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "fixtures" / "rules"
    shutil.copytree(FIXTURES, folder, ignore=shutil.ignore_patterns("*.jsonl", "*.json", "__pycache__"))

    subprocess.run([sys.executable, str(folder / "make.py")], check=True, cwd=tmp_path)

    assert [path for path in files() if (folder / path).read_bytes() != (FIXTURES / path).read_bytes()] == []


@pytest.mark.parametrize(("rule_id", "ledger"), LEDGERS)
def test_every_line_of_a_fixture_is_used(rule_id: str, ledger: str) -> None:
    report = report_on(rule_id, ledger)

    assert report.ledger.used == report.ledger.lines == len(ledger_lines(rule_id, ledger))
    assert report.ledger.invalid_values == 0
    assert report.ledger.unknown_keys == []


# Firing


@pytest.mark.parametrize(("rule_id", "ledger"), LEDGERS)
def test_findings_are_the_expected_ones_with_minutes_counts_and_lines(rule_id: str, ledger: str) -> None:
    report = report_on(rule_id, ledger)
    wanted = sorted(expected(rule_id).findings[ledger], key=lambda f: (f["flagged"][0], sorted(f["subject"].items())))

    assert not report.errored
    assert report.quiet == ([] if wanted else [rule_id])
    assert [
        {
            "severity": f.severity, "subject": f.subject, "flagged": [f.alert_window.start, f.alert_window.end],
            "count": f.count, "window": [f.window.start, f.window.end], "evidence": [e.line for e in f.evidence],
        }
        for f in in_time(report)
    ] == [{key: value for key, value in f.items() if key not in {"scenario", "observed"}} for f in wanted]


@pytest.mark.parametrize(("rule_id", "ledger"), LEDGERS)
def test_observed_values_are_those_of_the_worst_minute(rule_id: str, ledger: str) -> None:
    wanted = sorted(expected(rule_id).findings[ledger], key=lambda f: (f["flagged"][0], sorted(f["subject"].items())))

    for finding, want in zip(in_time(report_on(rule_id, ledger)), wanted, strict=True):
        for name, value in want["observed"].items():
            same = value if value is None or isinstance(value, bool) else pytest.approx(value, rel=1e-9, abs=1e-12)
            assert finding.observed[name] == same, (want["scenario"], name)


@pytest.mark.parametrize("rule_id", COVERED)
def test_every_grade_of_a_rule_is_seen_firing(rule_id: str) -> None:
    seen = {f["severity"] for findings in expected(rule_id).findings.values() for f in findings}

    assert seen == {grade.severity.value for grade in rule(rule_id).grades}


@pytest.mark.parametrize("rule_id", COVERED)
def test_findings_do_not_depend_on_the_order_of_lines(rule_id: str, tmp_path: Path) -> None:
    turned = write_lines(tmp_path / "turned.jsonl", ledger_lines(rule_id, "fires")[::-1])

    report = analyze([str(turned)], only(rule_id))

    def facts(of: Report) -> list[tuple[str, str, str, int, dict[str, Any]]]:
        return [(f.severity, f.alert_window.start, f.alert_window.end, f.count, f.observed) for f in in_time(of)]

    assert facts(report) == facts(report_on(rule_id, "fires"))


# Thresholds


@pytest.mark.parametrize(("rule_id", "flip"), FLIPS)
def test_a_parameter_moved_past_a_near_miss_changes_the_verdict(rule_id: str, flip: dict[str, Any], opened: Opened) -> None:
    result = judged_again(opened(rule_id, flip["ledger"]), flip["set"])

    assert result.outcome in {Outcome.FIRED, Outcome.QUIET}
    assert by_scenario(flip["ledger"], result) == sorted(flip["findings"].items())


@pytest.mark.parametrize("rule_id", COVERED)
def test_every_parameter_is_proven_to_decide_something(rule_id: str) -> None:
    usual = {name: {f["scenario"]: f["severity"] for f in found} for name, found in expected(rule_id).findings.items()}
    deciding = {
        name
        for flip in expected(rule_id).flips
        if len(flip["set"]) == 1 and flip["findings"] != usual[flip["ledger"]]
        for name in flip["set"]
    }

    assert deciding == set(rule(rule_id).parameters)


# What a ledger lacks


@pytest.mark.parametrize(("rule_id", "field"), NEEDS)
def test_a_rule_without_a_field_it_needs_is_not_evaluated_and_names_it(rule_id: str, field: str, tmp_path: Path) -> None:
    ledger = write_lines(tmp_path / "less.jsonl", without((field,), ledger_lines(rule_id, "fires")))
    mapping = timeless() if field == "ts" else None

    report = analyze([str(ledger)], only(rule_id, mapping=mapping))

    assert missing_of(report, rule_id) == [field]
    assert (report.findings, report.quiet, report.errored) == ([], [], [])


@pytest.mark.parametrize(("rule_id", "group"), GROUPS)
def test_a_rule_without_any_of_its_alternatives_is_not_evaluated_and_names_the_first(
    rule_id: str, group: tuple[str, ...], tmp_path: Path
) -> None:
    fields = tuple(name for entry in group for name in entry.split("+"))
    left = without(fields, ledger_lines(rule_id, "fires"))
    ledger = write_lines(tmp_path / "less.jsonl", left)

    report = analyze([str(ledger)], only(rule_id))

    logged = {key for line in left for key in line}
    unmet = [g for g in rule(rule_id).rule.any_of if not any(set(entry.split("+")) <= logged for entry in g)]
    assert group in unmet
    assert missing_of(report, rule_id) == list(dict.fromkeys(name for g in unmet for name in g[0].split("+")))
    assert (report.findings, report.quiet, report.errored) == ([], [], [])


@pytest.mark.parametrize(("rule_id", "group"), GROUPS)
def test_one_alternative_is_enough_to_be_evaluated(rule_id: str, group: tuple[str, ...], tmp_path: Path) -> None:
    fields = {name for entry in group for name in entry.split("+")} - set(rule(rule_id).rule.needs)
    lines = ledger_lines(rule_id, "fires")
    logged = {key for line in lines for key in line}
    entries = [entry for entry in group if set(entry.split("+")) <= logged]
    assert entries
    for entry in entries:
        others = tuple(fields - set(entry.split("+")))
        ledger = write_lines(tmp_path / "less.jsonl", without(others, lines))

        report = analyze([str(ledger)], only(rule_id))

        assert missing_of(report, rule_id) is None, entry
        assert not report.errored, entry


# Declarations


@pytest.mark.parametrize("rule_id", RULE_IDS)
def test_a_rule_declares_the_columns_that_it_reads_and_no_other(rule_id: str) -> None:
    assert undeclared(rule(rule_id), defaults(rule(rule_id))) == []


@pytest.mark.parametrize("rule_id", RULE_IDS)
def test_the_sql_of_a_rule_keeps_to_the_portable_subset(rule_id: str) -> None:
    assert lint(rule(rule_id), defaults(rule(rule_id))) == []


def test_no_two_rules_count_different_things_under_one_event() -> None:
    named: dict[str, set[str]] = {name: {where} for name, where in ATTEMPT_EVENTS.items()}
    for rule_id in RULE_IDS:
        for count in events_of(rule(rule_id), defaults(rule(rule_id))):
            ((_, event),) = count.fixed
            named.setdefault(event, set()).add(f"{count.source} {count.where}")

    assert {event for event, definitions in named.items() if len(definitions) > 1} == set()


def texts(value: object, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a TOML document with its place."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from texts(inner, f"{where}[{index}]")


@pytest.mark.parametrize("rule_id", RULE_IDS)
def test_every_rule_says_when_it_is_wrong_and_leaves_no_text_empty(rule_id: str) -> None:
    content = tomllib.loads((RULES / f"{rule_id}.toml").read_text(encoding="utf-8"))

    assert content["rule"]["false_positives"]
    assert [where for where, text in texts(content) if not text.strip()] == []


@pytest.mark.parametrize("rule_id", COVERED)
def test_every_sentence_of_a_finding_is_filled_in(rule_id: str) -> None:
    for ledger in expected(rule_id).findings:
        for finding in report_on(rule_id, ledger).findings:
            for text in (finding.title, finding.inference, finding.action):
                assert text.strip()
                assert "{" not in text
                assert "None" not in text


# Ledgers on which a rule must give a verdict


def test_noisy_prefixes_that_the_gate_refused_before_counting_tokens_still_fire(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = []
    for i in range(30):
        noisy = i % 2 == 0
        line = {"ts": 1_767_225_600.5 + i * 5, "request_id": f"r-{i}", "queue_age_ms": 3, "cpu_pct": 9, "prefix_noisy": noisy}
        served = {"status": 200, "decision": "allow", "prompt_tokens": 2000, "completion_tokens": 50}
        lines.append(line | ({"status": 429, "decision": "reject"} if noisy else served))
    ledger = write_lines(tmp_path / "refused.jsonl", lines)

    report = analyze([str(ledger)], Request(only=("cache-busting-prefix",)))

    assert report.errored == []
    assert [(f.severity, f.count) for f in report.findings] == [("page", 15)]


def test_prompts_that_grow_behind_a_steady_fingerprint_get_a_verdict(tmp_path: Path) -> None:
    lines = [
        {
            "ts": 1_767_225_600.5 + i * 5, "request_id": f"r-{i}", "status": 200, "queue_age_ms": 3, "cpu_pct": 9,
            "prefix_fp": "steady", "prompt_tokens": 4000 if i >= 240 else 300, "completion_tokens": 50,
        }
        for i in range(480)
    ]
    ledger = write_lines(tmp_path / "steady.jsonl", lines)

    report = analyze([str(ledger)], Request(only=("cache-busting-prefix",)))

    assert report.errored == []


def test_a_load_test_of_long_unique_prompts_stays_quiet(tmp_path: Path) -> None:
    lines = [
        {
            "ts": 1_767_225_600.5 + i * 5, "request_id": f"r-{i}", "traffic": "loadtest", "status": 200, "queue_age_ms": 3,
            "cpu_pct": 9, "prefix_fp": f"unique-{i}", "cached_tokens": 0, "prompt_tokens": 4000, "completion_tokens": 50,
        }
        for i in range(60)
    ]
    ledger = write_lines(tmp_path / "loadtest.jsonl", lines)

    report = analyze([str(ledger)], Request(only=("cache-busting-prefix",)))

    assert report.quiet == ["cache-busting-prefix"]


@pytest.mark.parametrize("rule_id", COVERED)
def test_no_rule_fails_on_any_fixture_of_another(rule_id: str) -> None:
    for ledger in expected(rule_id).findings:
        assert analyze([str(ledger_path(rule_id, ledger))]).errored == [], ledger
