"""What is in neither rate is said, and a ledger in which nothing generates is no all-clear."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.ledgers import T0, jsonl

from quietburn.analysis.run import Request, analyze
from quietburn.common.config import load_config
from quietburn.errors import ConfigError
from quietburn.report.model import Report
from quietburn.report.text import render_text

CHAT = {
    "path": "/v1/chat/completions", "status": 200, "latency_ms": 900, "deadline_ms": 5000, "prompt_tokens": 10,
    "completion_tokens": 5,
}


def report_of(folder: Path, *events: dict[str, Any], config: str = "") -> Report:
    ledger, settings = folder / "ledger.jsonl", folder / "quietburn.toml"
    ledger.write_bytes(jsonl({"ts": T0 + place} | event for place, event in enumerate(events)))
    settings.write_text(config)
    return analyze([str(ledger)], Request(config=load_config(settings)))


def text_of(report: Report) -> str:
    told = StringIO()
    render_text(report, Console(width=200, file=told))
    return told.getvalue()


def test_each_event_is_in_the_rates_or_in_what_is_left_out(tmp_path: Path) -> None:
    embed = {"path": "/v1/embeddings", "status": 200, "prompt_tokens": 100}
    job = {"path": "/jobs/job_17/run", "latency_ms": 5}
    report = report_of(
        tmp_path, CHAT, embed, job | {"status": 500}, embed | {"status": 429, "prompt_tokens": None},
        {"route": "readyz", "status": 200}, job | {"path": "/jobs/job_18/run"},
    )
    assert (report.rates.attempts, report.rates.tokens.all) == (1, 115)
    told = [(one.pattern, one.kind, one.events, one.statuses, one.tokens, one.first_line) for one in report.left_out]
    assert told == [
        ("/jobs/*/run", "other", 2, {"500": 1, "none": 1}, None, 3),
        ("/v1/embeddings", "embed", 2, {"200": 1, "429": 1}, 100, 2),
        ("readyz", "ready", 1, {"200": 1}, None, 5),
    ]
    said = "left out of both rates: 2 events at /jobs/*/run (not known to generate: see [routes]), 2 at /v1/embeddings (embed)"
    assert said in text_of(report)


def test_of_many_routes_the_rest_stands_in_one_entry(tmp_path: Path) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    paths = [f"/{first}/{second}" for first in letters[:3] for second in letters]  # 78 of them
    report = report_of(tmp_path, CHAT, *({"path": path, "status": 404} for path in paths))
    assert len(report.left_out) == 50
    rest = report.left_out[-1]
    assert (rest.pattern, rest.kind, rest.events, rest.statuses) == ("29 others", "several", 29, {"404": 29})
    assert sum(entry.events for entry in report.left_out) == 78


def test_where_nothing_generates_there_is_no_all_clear(tmp_path: Path) -> None:
    report = report_of(tmp_path, *({"path": "/x/run", "status": 500, "latency_ms": 3} for _ in range(9)))
    text = text_of(report)
    assert "Nothing to judge" in text
    assert "No contradiction found" not in text
    assert any("nothing to judge" in notice for notice in report.notices)


def test_the_user_says_what_a_route_is_for(tmp_path: Path) -> None:
    events = [{"path": "/x/run", "status": 500}, {"path": "/v1/x/run?q=1", "status": 200}, {"route": "batch", "status": 200}]
    report = report_of(tmp_path, *events, config='[routes]\ngenerate = ["/x/run"]\nembed = ["Batch"]\n')
    assert (report.rates.attempts, report.rates.successes) == (2, 1)
    assert [(entry.pattern, entry.kind) for entry in report.left_out] == [("batch", "embed")]


@pytest.mark.parametrize(("text", "said"), [
    ('generate = ["/x/run"]\ntool = ["/X/run"]', "is listed under both generate and tool"),
    ('generate = ["*"]', "routes.generate.0: '*' is not a route"),
    ('generates = ["/x"]', "routes.generates: unknown key (did you mean 'generate'?)"),
])
def test_a_table_of_routes_that_can_not_hold_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "quietburn.toml"
    path.write_text(f"[routes]\n{text}\n")
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    assert said in str(refused.value)


def test_tokens_of_which_half_is_known_stand_apart(tmp_path: Path) -> None:
    half = {"prompt_tokens": None, "completion_tokens": None}
    report = report_of(tmp_path, CHAT, CHAT | half | {"completion_tokens": 7}, CHAT | half | {"prompt_tokens": 3})
    tokens = report.rates.tokens
    assert (tokens.all, tokens.completion_only, tokens.prompt_only) == (15, 7, 3)
    assert tokens.coverage == pytest.approx(1 / 3)
