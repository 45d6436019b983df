"""Deadlines that nobody can miss are pointed out, and configured ones meet what the user's log shows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, jsonl, read, report_of

from quietburn.common.config import Config, Deadlines
from quietburn.errors import ConfigError
from quietburn.report.model import Report

FAST, SLOW, PATIENT = 100.0, 1000.0, 1001.0  # ten times the fast latency is SLOW, more than that PATIENT


def calls(deadlines: Sequence[float | None], slowest: float = FAST) -> list[dict[str, Any]]:
    """Return a call a second with these deadlines; the last takes longest."""
    latencies = [FAST] * (len(deadlines) - 1) + [slowest]
    return [
        {"ts": T0 + second, "status": 200, "latency_ms": latency} | ({} if deadline is None else {"deadline_ms": deadline})
        for second, (deadline, latency) in enumerate(zip(deadlines, latencies, strict=True))
    ]


def pointed_out(report: Report) -> list[str]:
    return [notice for notice in report.notices if "can miss that" in notice]


@pytest.mark.parametrize(
    ("deadlines", "slowest"),
    [
        ([PATIENT] * 100, 5000.0),  # the slowest of a hundred is beyond the 99th percentile
        ([PATIENT] * 96 + [SLOW] * 4, FAST),
        ([PATIENT] * 96 + [SLOW] * 4 + [None] * 50, FAST),  # who has none says nothing
    ],
)
def test_a_deadline_far_over_every_latency_is_pointed_out(
    deadlines: list[float | None], slowest: float, tmp_path: Path
) -> None:
    (notice,) = pointed_out(report_of(tmp_path, calls(deadlines, slowest)))
    assert f"allow more than ten times what 99 % of {len(deadlines)} attempts took (at most 100 ms; " in notice


@pytest.mark.parametrize(
    ("deadlines", "slowest"),
    [
        ([SLOW] * 100, FAST),  # ten times exactly is not more
        ([PATIENT] * 95 + [SLOW] * 5, FAST),  # 95 % is not over 95 %
        ([PATIENT] * 99, FAST),  # too few to know the 99th percentile
        ([None] * 100, FAST),
    ],
)
def test_a_deadline_that_can_be_missed_is_not_pointed_out(
    deadlines: list[float | None], slowest: float, tmp_path: Path
) -> None:
    assert pointed_out(report_of(tmp_path, calls(deadlines, slowest))) == []


def test_two_slow_answers_of_a_hundred_are_the_99th_percentile(tmp_path: Path) -> None:
    events = calls([PATIENT] * 100)
    for event in events[:2]:
        event["latency_ms"] = 101.0  # ten times that is 1,010 ms
    assert pointed_out(report_of(tmp_path, events)) == []


def test_what_an_sdk_waits_where_nobody_set_anything_is_pointed_out(tmp_path: Path) -> None:
    (notice,) = pointed_out(report_of(tmp_path, calls([600_000.0] * 20)))
    assert notice.startswith("20 of 20 deadlines are 600 s, the SDK default")
    assert pointed_out(report_of(tmp_path, calls([600_000.0] * 19 + [SLOW]))) == []  # 95 %


def test_a_configured_deadline_that_cannot_be_missed_is_pointed_out_as_well(tmp_path: Path) -> None:
    config = Config(deadline_ms=Deadlines(default=PATIENT))
    assert len(pointed_out(report_of(tmp_path, calls([None] * 100), config=config))) == 1


def test_without_times_the_deadlines_of_single_calls_are_compared(tmp_path: Path) -> None:
    rows = [{"i": number, "status": 200, "ms": FAST} for number in range(100)]
    report = report_of(tmp_path, rows, config=Config(deadline_ms=Deadlines(default=PATIENT)))
    assert report.ledger.files[0].dialect == "sweep"
    assert len(pointed_out(report)) == 1


CHAT, OLD = "/v1/chat/completions", "/v1/completions"


def nginx_line(second: int, uri: str) -> dict[str, Any]:
    """Return a line of an answer after three seconds."""
    return {"msec": f"{T0 + second}.000", "uri": uri, "status": "200", "request_time": "3.000"}


def of_routes(folder: Path, routes: dict[str, float], default: float | None = None) -> Report:
    """Analyze two calls of one path and one of another, which are all the route `complete` in reports."""
    lines = [nginx_line(1, CHAT), nginx_line(2, f"{CHAT}?stream=1"), nginx_line(3, OLD)]
    config = Config(deadline_ms=Deadlines(default=default, route=routes), origin="quietburn.toml")
    return report_of(folder, lines, config=config)


@pytest.mark.parametrize(
    ("routes", "default", "late"),
    [
        ({"complete": 2000.0}, None, 3),
        ({"complete": 4000.0}, None, 0),
        ({CHAT: 2000.0}, 4000.0, 2),  # as the log shows it, whatever the query
        ({f"{CHAT}/": 2000.0}, 4000.0, 2),
        ({OLD: 2000.0}, 4000.0, 1),
        ({"complete": 4000.0, OLD: 2000.0}, None, 1),  # the path says more than the name of all of them
        ({OLD: 4000.0, "complete": 2000.0}, None, 2),
    ],
)
def test_a_deadline_by_route_meets_the_path_of_the_log_and_the_name_of_the_report(
    routes: dict[str, float], default: float | None, late: int, tmp_path: Path
) -> None:
    report = of_routes(tmp_path, routes, default)
    assert report.rates.verdicts["late"] == late
    for name, number in routes.items():
        said = f"If a line has no deadline, {number:g} ms is assumed where route is {name.rstrip('/')} (quietburn.toml)."
        assert said in report.notices


def test_a_deadline_for_a_route_that_no_line_has_is_said_to_be_used_nowhere(tmp_path: Path) -> None:
    report = of_routes(tmp_path, {"/v1/chat": 2000.0}, 4000.0)
    assert report.rates.verdicts["late"] == 0
    assert (
        "No line of this ledger matches where route is /v1/chat (quietburn.toml): that deadline is not used. "
        "Its routes are: complete."
    ) in report.notices


def test_one_route_with_two_deadlines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"quietburn.toml: deadline_ms.route: lists /v1/completions twice"):
        of_routes(tmp_path, {OLD: 1.0, f"{OLD}/": 2.0})


def test_a_path_of_a_gateway_ledger_is_met_too(tmp_path: Path) -> None:
    events = [{"ts": T0 + second, "path": path, "status": 200, "latency_ms": 3000.0} for second, path in ((1, CHAT), (2, OLD))]
    report = report_of(tmp_path, events, config=Config(deadline_ms=Deadlines(route={OLD: 2000.0, CHAT: 4000.0})))
    assert (report.rates.verdicts["late"], report.rates.verdicts["usable"]) == (1, 1)


NGINX = {"msec": f"{T0}.000", "uri": CHAT, "status": "200", "request_time": "3.000"}
ENVOY = {"start_time": "2026-09-08T02:14:00.000Z", "response_code": 200, "duration": 3000}
LITELLM = {
    "id": "a", "call_type": "acompletion", "status": "success", "startTime": float(T0), "endTime": T0 + 3.0, "response_time": 3.0,
    "stream": False,
}
PIECE, STREAM = "application/json", "text/event-stream"


@pytest.mark.parametrize(
    ("line", "deadline"),
    [
        (NGINX | {"http_x_stainless_read_timeout": "5", "sent_http_content_type": PIECE}, 5000.0),
        (NGINX | {"http_x_stainless_timeout": "6.5", "sent_http_content_type": PIECE}, 6500.0),  # Anthropic's SDK
        (NGINX | {"http_x_stainless_timeout": "6.5", "sent_http_content_type": STREAM}, None),
        # What a caller says to the gateway comes before what its SDK has by default.
        (NGINX | {"http_x_litellm_timeout": "7", "http_x_stainless_read_timeout": "9", "sent_http_content_type": PIECE}, 7000.0),
        (NGINX | {"http_x_deadline_ms": "1500", "http_x_litellm_timeout": "7", "sent_http_content_type": PIECE}, 1500.0),
        (ENVOY | {"path": CHAT, "x-envoy-expected-rq-timeout-ms": "15000"}, 15_000.0),
        (ENVOY | {"path": CHAT, "x-stainless-timeout": "5", "content-type": PIECE}, 5000.0),
        (ENVOY | {"path": CHAT, "x_litellm_timeout": "7", "content_type": PIECE}, 7000.0),
        (ENVOY | {"path": CHAT, "x-litellm-timeout": "7", "content-type": STREAM}, None),
        (ENVOY | {"x-envoy-origin-path": CHAT, "x-stainless-timeout": "5", "content-type": PIECE}, 5000.0),
        (ENVOY | {"x-envoy-origin-path": CHAT, "x-litellm-timeout": "7", "content-type": PIECE}, 7000.0),
        (LITELLM | {"metadata": {"requester_custom_headers": {"x-litellm-timeout": "7"}}}, 7000.0),
        (LITELLM | {"stream": True, "metadata": {"requester_custom_headers": {"x-litellm-timeout": "7"}}}, None),
    ],
)
def test_a_deadline_is_taken_from_every_header_that_carries_one(
    line: dict[str, Any], deadline: float | None, tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(jsonl([line]))
    event = read(path).events[1]
    assert event.get("deadline_ms", event.get("read_timeout_ms")) == deadline


@pytest.mark.parametrize(
    ("line", "attempt"),
    [
        (NGINX | {"http_x_stainless_retry_count": "0"}, 1),  # no retry yet: the first
        (ENVOY | {"path": CHAT, "x-stainless-retry-count": "2"}, 3),
        (ENVOY | {"path": CHAT, "x_stainless_retry_count": 2}, 3),
        (ENVOY | {"x-envoy-origin-path": CHAT, "x-stainless-retry-count": "1"}, 2),
    ],
)
def test_the_attempt_is_taken_from_the_count_of_retries(line: dict[str, Any], attempt: int, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(jsonl([line]))
    assert read(path).events[1]["attempt"] == attempt


@pytest.mark.parametrize(
    ("agent", "traffic"),
    [
        ("kube-probe/1.29", "probe"), ("GoogleHC/1.0", "probe"), ("ELB-HealthChecker/2.0", "probe"),
        ("Amazon-Route53-Health-Check-Service (ref 1; report http://amzn.to/1vsZADi)", "probe"), ("Consul Health Check", "probe"),
        ("OpenAI/Python 3.57.0", None),
    ],
)
def test_a_probe_is_told_by_its_user_agent_unless_the_log_labels_it(agent: str, traffic: str | None, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    line = NGINX | {"http_user_agent": agent}
    path.write_bytes(jsonl([line, line | {"http_x_traffic_class": "eval"}]))
    inferred, labelled = read(path).events.values()
    assert (inferred.get("traffic"), inferred.get("traffic_source")) == (traffic, "user_agent" if traffic else None)
    assert (labelled["traffic"], labelled["traffic_source"]) == ("eval", "label")
