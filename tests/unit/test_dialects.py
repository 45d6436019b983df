"""Every dialect of real gateways against its own fixture, and against public samples where they are at hand.

A fixture folder holds `ledger.jsonl` and `expected.toml`, whose values were worked out by hand.
"""

import json
import os
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import conserved

from quietburn.analysis.run import Request, analyze
from quietburn.common.config import Config, Deadlines
from quietburn.dialects.mapping import shipped_mappings
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.engine.settings import Settings
from quietburn.errors import InputError
from quietburn.ledger.counts import FileCounts
from quietburn.records.inputs import LedgerFile
from quietburn.report.anonymous import anonymized, pseudonym
from quietburn.ruleset.files import shipped_rules

CHECKOUT = Path(__file__).resolve().parents[2]
FIXTURES = CHECKOUT / "fixtures" / "dialects"
# Public samples stay out of the repository: beside the checkout, or where the variable says.
SAMPLES = Path(os.environ.get("QUIETBURN_SAMPLES", CHECKOUT.parent / "shared" / "data"))
OF_SEEDS = {"admission", "adapter", "sweep", "gateway"}
REAL = sorted({mapping.dialect.name for mapping in shipped_mappings()} - OF_SEEDS)


@dataclass(frozen=True)
class Read:
    """What a file became: events by `line` or `line#place`, counts, and what was refused."""

    events: dict[str, dict[str, Any]]
    counts: FileCounts
    quarantine: list[list[object]]
    invalid: list[list[object]]


@cache
def read(path: Path) -> Read:
    with DuckEngine(zone=None, known=shipped_mappings(), threads=2) as engine:
        engine.load([LedgerFile("ledger", path)])
        engine.prepare(Settings())
        found = engine.connection.execute("SELECT * FROM all_events ORDER BY line, item")
        names = [column[0] for column in found.description or ()]
        events = {}
        for values in found.fetchall():
            row = {name: value for name, value in zip(names, values, strict=True) if value is not None}
            events[f"{row['line']}#{row['item']}" if "item" in row else str(row["line"])] = row
        quarantine: list[list[object]] = [[q.line, str(q.code)] for q in engine.quarantine()]
        invalid: list[list[object]] = [[i.line, i.field, str(i.code)] for i in engine.invalid_fields(100)]
        return Read(events, engine.files[0], quarantine, invalid)


def expected(name: str) -> dict[str, Any]:
    return tomllib.loads((FIXTURES / name / "expected.toml").read_text(encoding="utf-8"))


CASES = [pytest.param(name, place, id=f"{name}:{place}") for name in REAL for place in expected(name)["line"]]


@pytest.mark.parametrize(("name", "place"), CASES)
def test_a_line_of_a_real_dialect_becomes_what_was_worked_out_by_hand(name: str, place: str) -> None:
    wanted = dict(expected(name)["line"][place])
    event = read(FIXTURES / name / "ledger.jsonl").events[place]
    for column in wanted.pop("nulls", []):
        assert column not in event, (column, event[column])
    for column in wanted.pop("has", []):
        assert column in event, column
    assert {column: event.get(column) for column in wanted} == wanted


@pytest.mark.parametrize("name", REAL)
def test_a_real_ledger_is_recognised_and_every_line_is_accounted_for(name: str) -> None:
    wanted, made = expected(name), read(FIXTURES / name / "ledger.jsonl")
    counts = dict(wanted["counts"])
    assert made.counts.dialects == (name,)
    assert made.quarantine == counts.pop("quarantine", [])
    assert sorted(made.invalid) == counts.pop("invalid", [])
    assert {key: getattr(made.counts, key) for key in counts} == counts
    assert made.counts.naive_times == wanted.get("naive_times", 0)
    assert made.counts.lines == made.counts.used + sum(
        (made.counts.not_a_request, made.counts.duplicates, made.counts.quarantined, made.counts.blank)
    )
    assert len(made.events) == made.counts.events


@pytest.mark.parametrize("name", REAL)
def test_what_a_dialect_cannot_tell_is_not_evaluated_for_its_reason(name: str) -> None:
    reasons = next(mapping.cannot_tell for mapping in shipped_mappings() if mapping.dialect.name == name)
    report = analyze([str(FIXTURES / name / "ledger.jsonl")], Request())
    told = {entry.rule: entry.missing for entry in report.not_evaluated}
    ours = {rule.id for rule in shipped_rules()}
    wanted = {rule: [f"this dialect can't tell: {reason}"] for rule, reason in reasons.items() if rule in ours}
    assert {rule: told[rule] for rule in wanted} == wanted
    assert reasons


def test_lines_of_several_events_that_stand_twice_are_duplicates_as_lines(tmp_path: Path) -> None:
    lines = (FIXTURES / "otlp-genai" / "ledger.jsonl").read_bytes().split(b"\n")
    path = tmp_path / "twice.jsonl"
    path.write_bytes(b"\n".join([*lines[:2], lines[1], b""]))
    counts = read(path).counts
    # Line 3 is line 2 again: its three events are repeats, a tool's call among them.
    assert (counts.lines, counts.used, counts.events, counts.duplicates, counts.not_a_request) == (3, 2, 4, 1, 0)


def test_a_span_is_the_same_again_by_its_own_keys_whatever_its_document_is_called(tmp_path: Path) -> None:
    def document(name: str, note: str) -> str:
        span = {"trace_id": "t", "span_id": "s", "start_time": "2026-02-25T10:00:00Z", "end_time": "2026-02-25T10:00:02Z",
                "attributes": {"gen_ai.operation.name": "chat", "note": note}}  # fmt: skip
        return json.dumps({"trace_id": name, "spans": [span]}) + "\n"

    path = tmp_path / "spans.jsonl"
    path.write_text(document("t", "one") + document("copy of t", "one") + document("t", "two"))
    counts = read(path).counts
    # The third has another note: without a fraction of a second it may be another span (what-counts.md, "Twice").
    assert (counts.lines, counts.used, counts.events, counts.duplicates) == (3, 2, 2, 1)


def test_evidence_names_the_event_within_its_line(tmp_path: Path) -> None:
    start = 1_788_833_640  # 2026-09-08T02:14:00Z
    chat = {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}
    spans = [
        {"traceId": "t", "spanId": f"{second:02}", "startTimeUnixNano": f"{start + second}000000000",
         "endTimeUnixNano": f"{start + second + 3}000000000", "attributes": [chat]}
        for second in range(200)
    ]
    path = tmp_path / "spans.jsonl"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) + "\n")
    report = analyze([str(path)], Request(config=Config(deadline_ms=Deadlines(default=1000.0)), only=("late-but-200",)))
    (finding,) = report.findings
    assert (report.ledger.lines, report.ledger.used, report.ledger.events) == (1, 1, 200)
    assert [(place.line, place.item) for place in finding.evidence[:3]] == [(1, 1), (1, 2), (1, 3)]


def sample(name: str) -> Path:
    """Return a public sample, which stays out of the repository: a clone alone has none, under CI neither."""
    path = SAMPLES / name
    if not path.is_file():
        pytest.skip(f"the public sample {name} is not at hand: set QUIETBURN_SAMPLES to the folder that holds it")
    return path


def test_both_shapes_of_the_public_litellm_sample_are_read_in_one_file() -> None:
    made = read(sample("litellm_logging_payloads.jsonl"))
    assert made.counts.dialects == ("litellm", "litellm-spend")
    assert (made.counts.events, made.counts.naive_times, made.counts.invalid_values) == (2, 2, 0)
    payload, row = made.events["1"], made.events["2"]
    # 46.851954 - 46.847371 = 4.583 ms; response_time says 7.394 ms.
    assert payload["latency_ms"] == row["latency_ms"] == 4.583
    assert payload["answer_chars"] == 2
    assert payload["tokens"] == row["tokens"] == 30
    assert "finish_reason" not in payload
    assert "complete" not in payload


def test_the_public_envoy_ai_gateway_sample_holds_one_request_and_one_tool_call() -> None:
    made = read(sample("envoy_ai_gateway_access_log.jsonl"))
    assert made.counts.dialects == ("envoy-ai-gateway",)
    # A tool call that names its time and status is an event of its own kind (what-counts.md), and in no rate.
    assert (made.counts.lines, made.counts.events, made.counts.not_a_request, made.counts.coerced) == (2, 2, 0, 1)
    assert made.events["2"]["kind"] == "tool"
    event = made.events["1"]
    assert (event["latency_ms"], event["ttft_ms"], event["tokens"], event["status"]) == (1526, 451, 22, 200)


def test_the_public_genai_traces_hold_73_spans_of_which_7_have_usage() -> None:
    made = read(sample("inference_perf_genai_traces.jsonl"))
    # One document of three spans stands twice, under another id of its own: its spans are the same again.
    assert (made.counts.lines, made.counts.used, made.counts.duplicates) == (9, 8, 1)
    assert made.counts.events == 73 - 3
    assert sum("prompt_tokens" in event for event in made.events.values()) == 7
    assert made.counts.naive_times == 66  # 7 of the 73 name a zone


def test_a_public_span_that_is_no_generation_is_no_request() -> None:
    path = sample("otlp_proto_example_trace.jsonl")
    made = read(path)
    assert (made.counts.dialects, made.counts.events, made.counts.not_a_request) == (("otlp-genai",), 0, 1)
    with pytest.raises(InputError, match=r"none of its 1 lines is a request of dialect 'otlp-genai'.*--map"):
        analyze([str(path)], Request())


@pytest.mark.parametrize(
    "name", ["mooncake_synthetic_trace.jsonl", "llmperf_leaderboard_2023-12.jsonl", "azure_llm_2023_conv.csv"]
)
def test_public_samples_of_no_dialect_are_refused_in_words_that_name_map(name: str) -> None:
    with pytest.raises(InputError, match="--map"):
        read(sample(name))


def test_lines_of_flat_dialects_are_accounted_for_too() -> None:
    assert conserved(read(FIXTURES / "nginx" / "ledger.jsonl").counts)


HOSTILE = [
    '"metadata":"{\\"usage_object\\": \\"\\\\ud800\\"}"',
    '"metadata":"' + "[" * 5000 + '"',
    '"metadata":[1]',
    '"metadata":"[not JSON"',
    '"response":{"choices":{"0":1}}',
    '"response":{"choices":[null]}',
    '"response":{"choices":[{"message":[]}]}',
    '"messages":[[]]',
    '"request_tags":{"a":1}',
    '"error_information":"x"',
    '"model_parameters":7',
    '"metadata":{"a":1,"a":2}',
]


@pytest.mark.parametrize("member", HOSTILE)
def test_a_field_of_another_shape_costs_no_more_than_itself(member: str, tmp_path: Path) -> None:
    line = (
        '{"id":"a","call_type":"acompletion","status":"success","startTime":1767000000.0,"endTime":1767000001.0,'
        f'"response_time":1.0,"model":"m",{member}}}\n'
    )
    path = tmp_path / "payloads.jsonl"
    path.write_text(line)
    made = read(path)
    assert (made.counts.events, made.events["1"]["status"], made.events["1"]["latency_ms"]) == (1, 200, 1000)


def test_a_key_that_says_two_things_within_a_path_refuses_the_line(tmp_path: Path) -> None:
    good = {"id": "a", "call_type": "acompletion", "status": "success", "startTime": 1767000000.0, "endTime": 1767000001.0,
            "response_time": 1.0}
    bad = json.dumps(good | {"error_information": {}}).replace("{}", '{"error_code":"429","error_code":"500"}')
    path = tmp_path / "payloads.jsonl"
    path.write_text(json.dumps(good) + "\n" + bad + "\n")
    assert read(path).quarantine == [[2, "conflicting_key"]]


DOCS = CHECKOUT / "docs" / "log-formats.md"
# What needs no more than time, route, status, durations, a deadline, an id and the upstream, and Retry-After's key.
TOLD_BY_AN_ACCESS_LOG = {
    "clock-skew", "failover-never-called", "failover-starved", "failover-too-late", "healthy-but-silent", "late-but-200",
    "readiness-gap", "retry-below-floor", "retry-cap-exceeded", "retry-herd", "shed-without-hint", "slow-refusal",
    "success-hides-outage", "truncated-as-success", "upstream-shed-rate", "vantage-points-disagree",
}


def test_the_recommended_nginx_format_is_read_to_its_last_key_and_unlocks_what_it_says(tmp_path: Path) -> None:
    recommended = re.findall(r'"([a-z_]+)":"\$', DOCS.read_text(encoding="utf-8"))
    values = {
        "status": "200", "request_time": "6.200", "request_completion": "OK", "uri": "/v1/chat/completions",
        "upstream_addr": "10.1.2.3:8000", "upstream_status": "200", "upstream_header_time": "6.1",
        "upstream_response_time": "6.19", "http_user_agent": "OpenAI/Python 3.57.0",
        "sent_http_content_type": "application/json", "http_x_stainless_retry_count": "0",
        "http_x_stainless_read_timeout": "5", "http_idempotency_key": "k", "sent_http_retry_after": "", "request_method": "POST",
        "body_bytes_sent": "40", "sent_http_content_length": "40", "http_x_request_id": "", "http_x_traffic_class": "user",
    }
    lines = [values | {"msec": f"{1_788_833_640 + second}.000", "request_id": f"r{second}"} for second in range(200)]
    assert set(recommended) == set(lines[0])
    path = tmp_path / "access.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = analyze([str(path)], Request())
    assert report.ledger.unknown_keys == []
    evaluated = {finding.rule for finding in report.findings} | set(report.quiet)
    assert evaluated == TOLD_BY_AN_ACCESS_LOG
    assert "late-but-200" in {finding.rule for finding in report.findings}  # 6.2 s against 5 s
    reasons = {entry.rule: entry.missing for entry in report.not_evaluated}
    assert all(":" in missing for rule in ("saturation", "probe-spend-share") for missing in reasons[rule])


def test_the_recommended_envoy_keys_are_all_read(tmp_path: Path) -> None:
    block = DOCS.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    recommended = re.findall(r"^([a-z_-]+): ", block, re.MULTILINE)
    line = {
        "start_time": "2026-09-08T02:14:00.000Z", "response_code": 200, "response_flags": "-", "duration": 6200,
        "response_duration": 6100, "upstream_host": "10.1.2.3:8000", "upstream_hosts_attempted": "10.1.2.3:8000",
        "upstream_request_attempt_count": 1, "x-envoy-origin-path": "/v1/chat/completions", "x-request-id": "r",
        "user-agent": "OpenAI/Python 3.57.0", "content-type": "application/json", "retry-after": None,
        "x-stainless-retry-count": "0", "x-stainless-read-timeout": "5", "idempotency-key": "k", "x-traffic-class": "user",
    }
    assert set(recommended) == set(line)
    path = tmp_path / "access.jsonl"
    path.write_text("".join(json.dumps(line | {"x-request-id": f"r{second}"}) + "\n" for second in range(200)))
    report = analyze([str(path)], Request())
    assert report.ledger.unknown_keys == []
    assert [file.dialect for file in report.ledger.files] == ["envoy-ai-gateway"]
    evaluated = {finding.rule for finding in report.findings} | set(report.quiet)
    assert evaluated == TOLD_BY_AN_ACCESS_LOG


def test_what_would_unlock_a_rule_can_be_pasted_into_the_format_of_the_log_and_then_does(tmp_path: Path) -> None:
    bare = {"uri": "/v1/chat/completions", "status": "200", "request_time": "6.200", "request_completion": "OK"}
    lines = [bare | {"msec": f"{1_788_833_640 + second}.000"} for second in range(200)]
    path = tmp_path / "access.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (unlock,) = [one for one in analyze([str(path)], Request()).unlock if one.fields == ["deadline_ms"]]
    added = re.findall(r'"([a-z_]+)":"\$([a-z_]+)"', unlock.paste["nginx"])
    assert all(key == variable for key, variable in added)
    values = {"http_x_stainless_read_timeout": "5", "sent_http_content_type": "application/json"}
    assert {key for key, _ in added} == set(values)
    path.write_text("".join(json.dumps(line | values) + "\n" for line in lines))
    after = analyze([str(path)], Request())
    assert "late-but-200" in {finding.rule for finding in after.findings} | set(after.quiet)
    assert ["deadline_ms"] not in [one.fields for one in after.unlock]


def test_an_anonymized_report_names_callers_by_stable_pseudonyms(tmp_path: Path) -> None:
    lines = [
        {"ts": 1_788_833_640 + second, "status": 200, "latency_ms": 3000.0, "client": "alice@example", "tenant": "acme"}
        for second in range(200)
    ]
    path = tmp_path / "ledger.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = Config(deadline_ms=Deadlines(tenant={"acme": 1000.0}))
    plain = analyze([str(path)], Request(config=config))
    hidden = anonymized(plain, config.deadlines.tenant)
    assert "alice@example" in plain.model_dump_json()
    assert "where tenant is acme" in plain.model_dump_json()
    assert "alice" not in hidden.model_dump_json()
    assert "acme" not in hidden.model_dump_json()
    named = {str(entry["client"]) for finding in hidden.findings for entry in finding.top}
    assert named == {pseudonym("client", "alice@example")}
    assert pseudonym("client", "alice@example") != pseudonym("client", "bob@example")
