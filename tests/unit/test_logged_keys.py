"""A key that is logged and empty is known: what it stands for was not sent, and nobody is told to log it."""

import json
from pathlib import Path
from typing import Any

import pytest

from quietburn.analysis.run import Request, analyze
from quietburn.report.model import Report

NGINX = {
    "request_id": "r", "request_method": "POST", "uri": "/v1/chat/completions", "status": "200", "request_time": "0.500",
    "request_completion": "OK", "upstream_addr": "10.0.0.1:8000",
}
ENVOY = {"path": "/v1/chat/completions", "method": "POST", "response_code": 200, "response_flags": "-", "duration": 500}


def report_of(lines: list[dict[str, Any]], folder: Path) -> Report:
    path = folder / "access.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return analyze([str(path)], Request())


def nginx(**more: str) -> list[dict[str, Any]]:
    """Return ten calls, the last two of which are refused."""
    statuses = ["200"] * 8 + ["429"] * 2
    return [
        NGINX | {"msec": f"{1_788_833_640 + second}.000", "request_id": f"r{second}", "status": status, **more}
        for second, status in enumerate(statuses)
    ]


def envoy(**more: Any) -> list[dict[str, Any]]:
    statuses = [200] * 8 + [429] * 2
    return [
        ENVOY | {"start_time": f"2026-09-08T02:14:{second:02}.000Z", "response_code": status, **more}
        for second, status in enumerate(statuses)
    ]


def lines_without_hint(report: Report) -> list[int]:
    return sorted(place.line for one in report.findings if one.rule == "shed-without-hint" for place in one.evidence)


@pytest.mark.parametrize(
    "lines",
    [nginx(sent_http_retry_after=""), nginx(sent_http_retry_after="-"), envoy(**{"retry-after": None}), envoy(retry_after="-")],
    ids=["nginx escape=json", "nginx escape=default", "envoy typed", "envoy text"],
)
def test_refusals_whose_hint_is_logged_and_empty_were_sent_without_one(lines: list[dict[str, Any]], tmp_path: Path) -> None:
    assert lines_without_hint(report_of(lines, tmp_path)) == [9, 10]


def test_without_the_key_nobody_can_tell_whether_a_hint_was_sent(tmp_path: Path) -> None:
    report = report_of(nginx(), tmp_path)
    assert lines_without_hint(report) == []
    missing = {left.rule: left.missing for left in report.not_evaluated}
    assert missing["shed-without-hint"] == ["retry_after_s"]


def test_what_is_to_be_pasted_leaves_out_the_keys_that_are_there(tmp_path: Path) -> None:
    lines = nginx(http_x_stainless_read_timeout="", sent_http_content_type="application/json")
    by_fields = {tuple(one.fields): one for one in report_of(lines, tmp_path).unlock}
    alone = by_fields["deadline_ms",]
    assert (alone.paste, alone.logged_already) == ({}, ["deadline_ms"])
    together = next(one for one in by_fields.values() if {"deadline_ms", "stream_complete"} <= set(one.fields))
    assert "read_timeout" not in together.paste["nginx"]
    assert '"sent_http_content_length":"$sent_http_content_length",' in together.paste["nginx"]


def test_of_a_paste_of_two_keys_only_the_one_that_is_missing_is_given(tmp_path: Path) -> None:
    report = report_of(nginx(http_x_stainless_read_timeout=""), tmp_path)
    (alone,) = [one for one in report.unlock if one.fields == ["deadline_ms"]]
    assert alone.paste == {"nginx": "  '\"sent_http_content_type\":\"$sent_http_content_type\",'"}
    assert alone.logged_already == []


def test_a_refusal_without_an_upstream_is_not_the_providers(tmp_path: Path) -> None:
    ours, theirs = nginx(sent_http_retry_after="1"), nginx(sent_http_retry_after="1")
    for line in ours[8:]:
        line["upstream_addr"] = ""
    for number, lines in enumerate((ours, theirs)):
        for line in lines[5:8]:
            line |= {"status": "429", "upstream_addr": "" if number == 0 else "10.0.0.1:8000"}
    fired = [{one.rule for one in report_of(lines, tmp_path).findings} for lines in (ours, theirs)]
    assert ["upstream-shed-rate" in rules for rules in fired] == [False, True]
