"""The demo night holds the labs' own lines, and quietburn finds in it what the labs put there."""

from pathlib import Path

import pytest
from fixtures.drills.night import DEMO, SCENES, compose, story
from fixtures.drills.outcome import Outcome

from quietburn.analysis import analyze
from quietburn.report.model import Report


@pytest.fixture(scope="module")
def report() -> Report:
    return analyze([str(DEMO)])


def test_every_scene_of_the_night_is_what_its_lab_writes(outcomes: dict[str, Outcome]) -> None:
    told = compose(story(outcomes)).splitlines()
    lines = set(DEMO.read_text(encoding="utf-8").splitlines())
    assert len(told) == len(set(told)) > 1500
    assert [line for line in told if line not in lines] == [], "run python -m fixtures.drills night"
    assert {scene.lab for scene in SCENES} == set(outcomes)


def test_the_night_is_read_whole(report: Report) -> None:
    ledger = report.ledger
    assert 9_000 < ledger.lines < 11_000
    assert ledger.used == ledger.events == ledger.lines
    assert (ledger.duplicates, ledger.invalid_values, ledger.unknown_keys) == (0, 0, [])


def test_the_night_looks_well_and_is_not(report: Report) -> None:
    rates = report.rates
    assert rates.success_rate is not None
    assert rates.success_rate > 0.99
    # three crowds of 31 and four times eight behind the slow backend; ten cut streams; twice four empty answers
    assert (rates.verdicts["late"], rates.verdicts["truncated"], rates.verdicts["empty"]) == (3 * 31 + 4 * 8, 10, 2 * 4)


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


def test_the_night_names_nobody(report: Report) -> None:
    text = Path(DEMO).read_text(encoding="utf-8")
    assert report.ledger.lines
    assert "prompt\"" not in text
    assert "prefix\"" not in text
