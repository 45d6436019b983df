"""The text report is a list of incidents, then each with its cause; `--brief` stops early, `--full` prints every finding."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import T0, call, run, run_all, write


def late(second: float, minute: int = 0, **fields: Any) -> dict[str, Any]:
    return call(second, **{"ts": T0 + 60 * minute + second, "latency_ms": 9_000, "client": "app-1"} | fields)


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """Twenty late answers of twenty: a page, and the outage that the success rate hides."""
    return write(tmp_path / "night.jsonl", [late(i, request_id=f"r{i}") for i in range(20)])


def test_an_incident_is_a_line_and_its_cause_is_told_with_what_followed(tmp_path: Path, night: Path) -> None:
    normal, brief, full = run_all(tmp_path, [["analyze", night.name, *flags] for flags in ([], ["--brief"], ["--full"])])
    line = "  02:14\u201302:15  PAGE    Answers arrive as 200 after the caller's deadline \u00b7 complete \u00b7 20 requests"
    for done in (normal, brief, full):
        assert (done.status, done.err) == (0, "")
        assert next(shown for shown in done.out.splitlines() if shown.startswith("  02:14")).startswith(line)
    assert "  PAGE   late-but-200  route complete  2026-09-08T02:14:00Z to 2026-09-08T02:15:00Z\n" in normal.out
    assert "page success-hides-outage: The success rate is fine but callers get nothing usable\n" in normal.out
    assert "  PAGE   success-hides-outage" not in normal.out
    assert "  PAGE   success-hides-outage  route complete" in full.out
    assert "  Findings (" in full.out
    assert len(brief.out.splitlines()) < 14
    assert "inference" not in brief.out


def test_brief_and_full_together_are_refused(tmp_path: Path, night: Path) -> None:
    done = run(tmp_path, "analyze", night.name, "--brief", "--full")
    assert (done.status, done.out) == (2, "")
    assert done.err == "quietburn: --brief and --full: can't be combined. Use one of them.\n"


def test_a_quiet_night_fits_a_screen_of_24_lines(tmp_path: Path) -> None:
    write(tmp_path / "quiet.jsonl", [call(7 * i, request_id=f"r{i}") for i in range(60)])
    done = run(tmp_path, "analyze", "quiet.jsonl")
    assert "  No contradiction found by " in done.out
    assert len(done.out.splitlines()) <= 24


def test_the_rates_come_again_at_the_end_of_a_long_report_only(tmp_path: Path, night: Path) -> None:
    write(tmp_path / "one.jsonl", [call(7 * i, request_id=f"r{i}") for i in range(60)])
    full, short = run_all(tmp_path, [["analyze", night.name, "--full"], ["analyze", "one.jsonl"]])
    assert len(full.out.splitlines()) > 48
    assert full.out.count("  Usable rate ") == 2
    assert "  Usable rate " in "\n".join(full.out.splitlines()[-6:])
    assert short.out.count("  Usable rate ") == 1


def test_days_are_named_where_a_report_is_longer_than_one(tmp_path: Path) -> None:
    events = [call(0, request_id="first"), *(late(i, minute=2 * 24 * 60, request_id=f"r{i}") for i in range(20))]
    write(tmp_path / "days.jsonl", events)
    done = run(tmp_path, "analyze", "days.jsonl", "--brief")
    assert "  2026-09-10 02:14\u201302:15  PAGE " in done.out


def test_markdown_lists_incidents_folds_the_details_and_names_no_caller(tmp_path: Path, night: Path) -> None:
    done = run(tmp_path, "analyze", night.name, "--format", "markdown")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("<!-- quietburn analyze -->\n### quietburn: 1 incident (1 page)\n")
    shown, folded = done.out.split("<details>")
    (item,) = [line for line in shown.splitlines() if line.startswith("- ")]
    assert item.startswith("- 02:14\u201302:15 **page** Answers arrive as 200 after the caller's deadline \u00b7 complete")
    assert "also page success-hides-outage: " in folded
    assert "app-1" not in done.out


def test_github_annotates_each_incident_and_names_no_caller(tmp_path: Path, night: Path) -> None:
    done = run(tmp_path, "analyze", night.name, "--format", "github")
    assert (done.status, done.err) == (0, "")
    annotation, summary = done.out.splitlines()
    assert annotation.startswith("::warning title=quietburn%3A page late-but-200::02:14\u201302:15 Answers arrive as 200 after ")
    assert summary == "quietburn analyze: 1 incident (1 page); success 100.0 %, usable 0.0 %"
    assert "app-1" not in done.out


def test_a_name_of_a_backend_does_not_act_in_markdown_or_as_a_command(tmp_path: Path) -> None:
    hostile = "x](http://e.vil)<script>\n::error::@all"
    waiting: dict[str, Any] = {"backend": hostile, "queue_age_ms": 5_000, "cpu_pct": 90}
    write(tmp_path / "night.jsonl", [late(i, request_id=f"r{i}", **waiting) for i in range(20)])
    markdown, github = run_all(tmp_path, [["analyze", "night.jsonl", "--format", name] for name in ("markdown", "github")])
    assert "saturation" in markdown.out
    assert "<script" not in markdown.out
    assert "http://" not in markdown.out
    assert "[" not in markdown.out.replace("\\[", "").partition("<details>")[0]
    assert "@all" not in markdown.out
    assert not [line for line in github.out.splitlines() if line.startswith("::error")]
