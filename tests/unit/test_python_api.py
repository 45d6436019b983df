"""`import quietburn`: reports and frames from Python, as a notebook or a script asks for them."""

import importlib.metadata
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import quietburn

T0 = 1_788_833_640  # 2026-09-08T02:14:00Z


def answer(second: float, **fields: Any) -> dict[str, Any]:
    usual = {"ts": T0 + second, "route": "complete", "status": 200, "latency_ms": 300, "deadline_ms": 1000, "answer_chars": 80}
    return usual | {"finish_reason": "stop"} | fields


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Two requests in time, one late, one that needed two attempts: four requests of five attempts."""
    events = [
        answer(1, request_id="a", client="app", prompt_tokens=10, completion_tokens=5),
        answer(2, request_id="b", client="app"),
        answer(3, request_id="c", client="slow", latency_ms=2500),
        answer(61, request_id="d", client="app", status=503),
        answer(61.5, request_id="d", client="app"),
    ]
    path = tmp_path / "night.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return path


def test_a_report_is_one_call_for_a_text_a_path_or_a_list_of_both(ledger: Path) -> None:
    named: list[Any] = [str(ledger), ledger, [str(ledger)], [ledger, str(ledger)], (ledger,)]
    reports = [quietburn.analyze(names) for names in named]
    assert [report.rates.attempts for report in reports] == [5] * 5
    assert [report.rates.usable for report in reports] == [3] * 5


def test_the_configuration_is_found_as_the_command_finds_it(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "quietburn.toml").write_text("max_retries = 3\n", encoding="utf-8")
    inside = tmp_path / "deep"
    inside.mkdir()
    monkeypatch.chdir(inside)
    found = quietburn.analyze(ledger)
    assert ("retry-cap-exceeded", 3.0) in {(t.rule, t.value) for t in found.thresholds}
    (inside / "other.toml").write_text("max_retries = 7\n", encoding="utf-8")
    given = quietburn.analyze(ledger, config=inside / "other.toml")
    assert ("retry-cap-exceeded", 7.0) in {(t.rule, t.value) for t in given.thresholds}


def test_events_requests_and_minutes_are_polars_frames(ledger: Path) -> None:
    with quietburn.open(ledger) as night:
        events, requests, minutes = night.events(), night.requests(), night.minutes()
    assert events["line"].to_list() == [1, 2, 3, 4, 5]
    assert dict(zip(requests["client"], requests["verdict"], strict=True)) == {"app": "usable", "slow": "late"}
    assert sorted(zip(requests["verdict"], requests["attempts"], strict=True)) == [
        ("late", 1), ("usable", 1), ("usable", 1), ("usable", 2),
    ]  # fmt: skip
    # The first three end in the minute to 02:15, the other two in the next.
    assert minutes["minute"].to_list() == [T0 // 60 + 1, T0 // 60 + 2]
    assert minutes["attempts"].to_list() == [3, 2]
    assert minutes["successes"].to_list() == [3, 1]
    assert minutes["usable"].to_list() == [2, 1]
    assert minutes["false_successes"].to_list() == [1, 0]


def test_findings_are_a_frame_also_when_there_are_none(tmp_path: Path) -> None:
    quiet = tmp_path / "quiet.jsonl"
    quiet.write_text(json.dumps(answer(1)) + "\n", encoding="utf-8")
    late = tmp_path / "late.jsonl"
    late.write_text("".join(json.dumps(answer(n, latency_ms=2500)) + "\n" for n in range(20)), encoding="utf-8")
    with quietburn.open(quiet) as night:
        assert night.findings().is_empty()
        columns = night.findings().schema
    with quietburn.open(late, only=["late-but-200"]) as night:
        found = night.findings()
    assert found.schema == columns
    assert found.select("rule", "severity", "route", "count").rows() == [("late-but-200", "page", "complete", 20)]


def test_sql_is_one_select_over_the_events(ledger: Path) -> None:
    with quietburn.open(ledger) as night:
        late = night.sql("SELECT client, count(*) AS n FROM events WHERE verdict = 'late' GROUP BY client")
        assert late.equals(pl.DataFrame({"client": ["slow"], "n": [1]}))
        with pytest.raises(quietburn.QuietburnError, match="no_such_column"):
            night.sql("SELECT no_such_column FROM events")


def test_what_cannot_be_used_is_one_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(quietburn.QuietburnError, match="no such file"):
        quietburn.analyze(tmp_path / "missing.jsonl")


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)


def test_a_notebook_shows_the_report_and_hostile_names_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "night.jsonl"
    hostile = "<script>alert(1)</script>"
    path.write_text("".join(json.dumps(answer(n, latency_ms=2500, client=hostile)) + "\n" for n in range(20)), encoding="utf-8")
    shown = quietburn.analyze(path)._repr_html_()
    assert "Success rate" in shown
    assert "&lt;script&gt;" in shown
    parser = _Tags()
    parser.feed(shown)
    assert parser.tags <= {"pre", "span"}


def test_the_version_is_that_of_the_installed_package() -> None:
    assert quietburn.__version__ == importlib.metadata.version("quietburn")


def test_public_names_are_listed_and_others_are_an_attribute_error() -> None:
    assert set(quietburn.__all__) == set(dir(quietburn))
    with pytest.raises(AttributeError, match="no_such_name"):
        quietburn.no_such_name  # noqa: B018 - the access is what is tried
