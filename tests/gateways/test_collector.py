"""GenAI spans through the suggested collector configuration, against what the report of the bare spans promises."""

import json
from pathlib import Path
from typing import Any

from tests.gateways.collector import as_otlp, statements_of, target_of, transformed

from quietburn.analysis.run import Request, analyze
from quietburn.dialects.mapping import shipped_mappings
from quietburn.report.model import Report

DOCS = Path(__file__).resolve().parents[2] / "docs" / "log-formats.md"
OTLP = next(mapping for mapping in shipped_mappings() if mapping.dialect.name == "otlp-genai")
T0 = 1_788_833_640  # 2026-09-08T02:14:00Z
CALLER = {"service.name": "shop", "quietburn.deadline_ms": "1500", "quietburn.traffic": "eval"}
SERVER = {"service.name": "vllm", "host.name": "gpu-0"}
# kind 3 is the caller's span, 2 the server's
SPANS: list[tuple[int, dict[str, Any], dict[str, Any]]] = [
    (3, CALLER, {"gen_ai.operation.name": "chat", "gen_ai.request.stream": False}),
    (2, SERVER, {"gen_ai.operation.name": "chat"}),
]


def write(path: Path, statements: list[str]) -> Report:
    """Write four seconds of spans, each two seconds long, through statements, and analyze them."""
    lines = []
    for second in range(4):
        for kind, resource, attributes in SPANS:
            span = {
                "traceId": f"{second:032x}", "spanId": f"{second * 2 + kind:016x}", "kind": kind,
                "startTimeUnixNano": f"{T0 + second}000000000", "endTimeUnixNano": f"{T0 + second + 2}000000000",
                "attributes": as_otlp(transformed(attributes, kind, resource, statements)),
            }
            lines.append({"resourceSpans": [{"resource": {"attributes": as_otlp(resource)}, "scopeSpans": [{"spans": [span]}]}]})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return analyze([str(path)], Request())


def evaluated(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings} | set(report.quiet)


def test_each_collector_snippet_enables_exactly_the_rules_that_it_promises(tmp_path: Path) -> None:
    bare = write(tmp_path / "bare.jsonl", [])
    promises = [one for one in bare.unlock if "otlp-genai" in one.paste]
    assert [one.fields for one in promises] == [["backend", "deadline_ms"], ["deadline_ms"]]
    for promise in promises:
        after = write(tmp_path / "after.jsonl", statements_of(promise.paste["otlp-genai"]))
        assert evaluated(after) - evaluated(bare) == set(promise.rule_ids), promise.fields
    # 2,000 ms against the 1,500 ms that the caller declared; nobody declared any for the server's spans.
    assert (after.rates.verdicts["late"], after.rates.verdicts["unknown"]) == (4, 4)


def test_every_statement_sets_what_the_dialect_reads_and_stands_in_the_documentation() -> None:
    page = DOCS.read_text(encoding="utf-8")
    for column, text in OTLP.log.items():
        (statement,) = statements_of(OTLP.pasted([OTLP.log[column]]))
        assert f"/attributes/{target_of(statement)}" in {key for way in OTLP.columns[column] for key in way.sources}
        assert text.strip("\n") in page
    block = page.partition("## OpenTelemetry collector")[2].partition("```yaml\n")[2].partition("```")[0]
    assert [target_of(statement) for statement in statements_of(block)] == [
        target_of(statement) for statement in statements_of(OTLP.pasted(OTLP.log.values()))
    ]


def test_what_the_collector_put_on_a_span_is_read(tmp_path: Path) -> None:
    report = write(tmp_path / "spans.jsonl", statements_of(OTLP.pasted(OTLP.log.values())))
    assert report.ledger.unknown_keys == []
    assert {one.traffic: one.attempts for one in report.rates.by_traffic} == {"eval": 4, "unlabelled": 4}
