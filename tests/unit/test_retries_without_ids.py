"""SDKs count their retries and send no id: what the counts say of requests, on logs as nginx writes them."""

import json
from pathlib import Path
from typing import Any

import pytest

from quietburn.analysis.run import Request, analyze
from quietburn.common.config import Config
from quietburn.report.model import Report

FIRST = 1_788_833_640.0


def line(end_s: float, retry: int, status: str, **more: str) -> dict[str, Any]:
    """Return a line of an attempt that took 0.2 s and ended so many seconds after the first."""
    number = f"{end_s:.3f}-{retry}"
    return {
        "msec": f"{FIRST + end_s:.3f}", "request_id": number, "request_method": "POST", "uri": "/v1/chat/completions",
        "status": status, "request_time": "0.200", "request_completion": "" if status == "499" else "OK",
        "upstream_addr": "a:1", "http_user_agent": "OpenAI/Python 3.57.0", "sent_http_content_type": "application/json",
        "http_x_stainless_retry_count": str(retry), "http_x_stainless_read_timeout": "8.0", "sent_http_retry_after": "", **more,
    }


def report_of(lines: list[dict[str, Any]], folder: Path) -> Report:
    path = folder / "access.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return analyze([str(path)], Request(config=Config(deadline_ms=None)))


def requests_of(lines: list[dict[str, Any]], folder: Path) -> tuple[int, int]:
    """Return requests and those of them that ended usable."""
    rates = report_of(lines, folder).rates
    return rates.requests, rates.verdicts["usable"]


GOOD = [line(100 + second, 0, "200") for second in range(10)]
CASES = {
    # One caller is refused twice and then served: one request, usable. 8 s of patience from 0 s on.
    "served in the end": ([line(0, 0, "429"), line(1, 1, "429"), line(3, 2, "200")], (1, 1)),
    "given up": ([line(0, 0, "500"), line(1, 1, "500"), line(3, 2, "500")], (1, 0)),
    "the caller's own timeout": ([line(0, 0, "499"), line(1, 1, "200")], (1, 1)),
    "an answer that nothing repeats": ([line(0, 0, "200"), line(1, 1, "200")], (2, 2)),
    "too long ago": ([line(0, 0, "429"), line(40, 1, "200")], (2, 1)),
    "as long as it was told to wait": ([line(0, 0, "429", sent_http_retry_after="40"), line(40.5, 1, "200")], (1, 0)),
    "another kind of caller": ([line(0, 0, "429"), line(1, 1, "200", http_user_agent="Anthropic/Python 1.0")], (2, 1)),
    "two callers side by side": ([line(0, 0, "429"), line(0.1, 0, "429"), line(1, 1, "200"), line(1.2, 1, "200")], (2, 2)),
    "ids that callers send": ([line(0, 0, "429", http_x_request_id="q"), line(1, 1, "200", http_x_request_id="q")], (1, 1)),
    "without the count": ([line(0, 0, "429"), line(1, 1, "200", http_x_stainless_retry_count="")], (2, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_retry_belongs_to_the_request_that_it_repeats(name: str, tmp_path: Path) -> None:
    lines, (requests, usable) = CASES[name]
    assert requests_of(lines + GOOD, tmp_path) == (requests + len(GOOD), usable + len(GOOD))


def test_the_report_says_that_retries_were_joined_by_inference(tmp_path: Path) -> None:
    told = report_of([line(0, 0, "429"), line(1, 1, "200"), *GOOD], tmp_path).notices
    assert any(notice.startswith("1 retries carry no request id") for notice in told)
    assert not any("carry no request id" in notice for notice in report_of(GOOD, tmp_path).notices)
