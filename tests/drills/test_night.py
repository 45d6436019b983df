"""The nights hold the labs' own lines, and quietburn finds in them what the labs put there."""

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from fixtures.drills.labs import DEFAULT_SEED, on_one_core
from fixtures.drills.ledger import read
from fixtures.drills.night import DEMO, NIGHTS, SHORT, Night, compose, ordinary, story
from fixtures.drills.outcome import Outcome

from quietburn.analysis.run import analyze
from quietburn.report.model import Report

REGENERATE = "run python -m fixtures.drills night"
ANY_NIGHT = pytest.mark.parametrize("night", NIGHTS, ids=lambda night: night.name)


@cache
def report_of(night: Night) -> Report:
    return analyze([str(night.path)])


@pytest.fixture(scope="module")
def report() -> Report:
    """The demo's night as quietburn reads it."""
    return report_of(DEMO)


@ANY_NIGHT
def test_every_scene_of_a_night_is_what_its_lab_writes(night: Night, outcomes: dict[str, Outcome]) -> None:
    told = compose(story(night, outcomes)).splitlines()
    lines = set(night.path.read_text(encoding="utf-8").splitlines())
    assert len(told) == len(set(told)) > 300
    assert [line for line in told if line not in lines] == [], REGENERATE
    assert {scene.lab for scene in night.scenes} == set(outcomes)


def test_the_short_night_is_composed_again_byte_for_byte(outcomes: dict[str, Outcome], tmp_path: Path) -> None:
    """The demo's night is made by the same functions; ten hours of users would take half a minute here."""
    with on_one_core():
        rows = ordinary(SHORT, tmp_path, DEFAULT_SEED)

    assert compose(rows + story(SHORT, outcomes)).encode() == SHORT.path.read_bytes(), REGENERATE


@ANY_NIGHT
def test_what_callers_got_is_what_the_labs_callers_counted(night: Night, outcomes: dict[str, Outcome]) -> None:
    """No verdict is taken from quietburn: callers of the labs know whether they had an answer when they left."""
    gateway, envelope = (outcomes[lab].measures for lab in ("gateway", "envelope"))
    counted = {
        "gateway-unbounded": {"late": gateway["unbounded.callers_left"]},
        "gateway-bounded": {"late": gateway["bounded.callers_left"], "refused": gateway["bounded.fast_refusals"]},
        "gateway-attempt-counted": {"late": gateway["attempt_counted.logged_200"]},
        "truncation": {"truncated": envelope["truncation.cut"]},
        "gateway-empty": {"empty": gateway["empty.callers_with_nothing"]},
    }
    assert gateway["attempt_counted.in_time"] == 0
    expected: Counter[str] = Counter()
    for scene in night.scenes:
        expected.update({verdict: scene.times * int(count) for verdict, count in counted.get(scene.name, {}).items()})

    verdicts = report_of(night).rates.verdicts
    assert {name: count for name, count in verdicts.items() if count and name != "usable"} == dict(expected)
    # As in the seeds, from the 31 of 32, the 24 refusals of 32, the eight behind the slow backend.
    known = {DEMO: {"late": 3 * 31 + 4 * 8, "truncated": 10, "empty": 2 * 4},
             SHORT: {"late": 2 * 31 + 2 * 2 + 4 * 8, "truncated": 10, "empty": 2 * 4, "refused": 2 * 24}}
    assert expected == known[night]


@ANY_NIGHT
def test_rates_are_those_that_counting_the_lines_gives(night: Night) -> None:
    rows = [row for row in read(night.path) if row["route"] == "complete"]
    by_callers = {row["request_id"] for row in rows if row["traffic"] != "probe"}
    rates = report_of(night).rates

    assert (rates.attempts, rates.requests) == (len(rows), len(by_callers))
    assert rates.successes == sum(200 <= row.get("status", 0) < 300 for row in rows)
    spent = Counter[str]()
    told = [row for row in rows if {"prompt_tokens", "completion_tokens"} <= row.keys()]  # a refusal has no completion
    for row in told:
        spent[row["traffic"]] += row["prompt_tokens"] + row["completion_tokens"]
    assert rates.tokens.by_traffic == dict(spent)
    assert rates.tokens.coverage == pytest.approx(len(told) / len(rows))


@ANY_NIGHT
def test_a_night_is_read_whole(night: Night) -> None:
    ledger = report_of(night).ledger
    assert ledger.lines == len(night.path.read_bytes().splitlines())
    assert ledger.used == ledger.events == ledger.lines
    assert (ledger.duplicates, ledger.invalid_values, ledger.unknown_keys) == (0, 0, [])


def test_the_demos_night_is_as_long_as_its_page_says_and_looks_well(report: Report) -> None:
    page = (Path(__file__).parents[2] / "docs" / "demo.md").read_text(encoding="utf-8")
    assert f"The night has {report.ledger.lines:,} lines from 20:00 to 06:00 UTC." in page
    assert 9_000 < report.ledger.lines < 11_000
    assert report.rates.success_rate is not None
    assert report.rates.success_rate > 0.99


@pytest.mark.parametrize(
    ("rule", "hour"),
    [
        ("probe-spend-share", "2026-09-07T2"), ("late-but-200", "2026-09-08T00"), ("cache-busting-prefix", "2026-09-08T02"),
        ("late-but-200", "2026-09-08T03"), ("stuck-worker", "2026-09-08T04"), ("success-hides-outage", "2026-09-08T04"),
        ("empty-but-billed", "2026-09-08T05"),
    ],
)
def test_each_contradiction_is_found_at_its_hour(rule: str, hour: str, report: Report) -> None:
    assert any(finding.rule == rule and finding.window.start.startswith(hour) for finding in report.findings)


def test_hours_in_which_nothing_happens_stay_quiet(report: Report) -> None:
    assert not [finding for finding in report.findings if finding.window.start < "2026-09-07T21:30"]
    assert not [finding for finding in report.findings if "2026-09-08T00:30" < finding.window.start < "2026-09-08T02:13"]


@ANY_NIGHT
def test_a_night_names_nobody(night: Night) -> None:
    keys = {key for line in night.path.read_text(encoding="utf-8").splitlines() for key in json.loads(line)}
    assert "prefix_fp" in keys
    assert not keys & {"prompt", "prefix", "text", "content", "messages"}


def test_the_demos_faults_are_incidents_with_their_causes(report: Report) -> None:
    """Each scene of docs/demo.md is one incident, whatever rules it sets off; its cause gives the title; there is no other."""
    begun = sorted((incident.window.start, incident.rule) for incident in report.incidents)
    assert [(start[11:16], rule) for start, rule in begun] == [
        ("21:31", "probe-spend-share"), ("00:00", "late-but-200"), ("02:14", "cache-busting-prefix"), ("03:15", "late-but-200"),
        ("04:00", "stuck-worker"), ("04:45", "truncated-as-success"), ("05:15", "empty-but-billed"),
        ("05:30", "replay-without-key"),
    ]  # fmt: skip
    by_start = {incident.window.start[11:16]: incident for incident in report.incidents}
    assert by_start["02:14"].window.end[11:16] == "02:18"  # the evals alone, not the slow backend an hour later
    stuck = [report.findings[place].rule for place in by_start["04:00"].findings]
    assert stuck[0] == "stuck-worker"
    assert set(stuck[1:]) == {"queue-over-budget", "queue-wait-past-deadline"}
    # 31 of 32 left each of three crowds; 32 waited for the slow backend; ten streams broke off; eight answers were empty.
    lost = [by_start[start].requests_not_served for start in ("00:00", "03:15", "04:45", "05:15")]
    assert lost == [3 * 31, 32, 10, 8]
