"""The JSON report keeps its contract, its schema describes it, and the text report leads with the two rates."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import Done, call, jsonl, run, run_all

ROOT = Path(__file__).parents[2]
SCHEMA_FILE = ROOT / "docs" / "report.schema.json"
NUMBER = (int, float)

# Names and types that readers may rely on (schema_version 2). A list holds the type of its entries,
# a tuple the types that are allowed.
CONTRACT: dict[str, Any] = {
    "schema_version": int,
    "ledger": {
        "files": [
            {
                "path": str, "dialect": str, "lines": int, "used": int, "events": int, "quarantined": int, "not_a_request": int,
                "blank": int,
            }
        ],
        "lines": int, "used": int, "events": int, "quarantined": int, "not_a_request": int, "blank": int, "duplicates": int,
        "reshipped": int, "reshipped_keys": dict, "same_call": int, "same_traffic": list, "conflicting_ids": int,
        "invalid_values": int, "coerced": int, "unknown_keys": [{"key": str, "lines": int}],
        "first_ts": str, "last_ts": str,
    },
    "rates": {
        "attempts": int, "successes": int, "outcome_unknown": int, "success_rate": float, "success_rate_bounds": type(None),
        "requests": int, "valid": int, "judged": int, "judged_share": float, "usable": int, "unknown": int,
        "unproven": {"complete": int, "non_empty": int},
        "usable_rate": float, "usable_rate_of_all": float, "usable_rate_bounds": [float], "usable_rate_interval95": [float],
        "false_success_share": float,
        "verdicts": dict.fromkeys(
            ("usable", "unknown", "late", "truncated", "empty", "abandoned", "refused", "failed", "invalid"), int
        ),
        "request_success_rate": float, "amplification": float,
        "tokens": {"all": NUMBER, "coverage": float, "wasted": NUMBER, "probe": NUMBER},
        "criteria": {
            name: {"measured": bool, "coverage": (float, type(None))} for name in ("on_time", "complete", "non_empty")
        },
    },
    "failure_domains": [{"domain": str, "attempts": int, "action": str}],
    "incidents": [
        {
            "rule": str, "title": str, "severity": str, "window": {"start": str, "end": str}, "subjects": [{"route": str}],
            "requests_not_served": int, "tokens": (*NUMBER, type(None)), "who": [{"client": str, "share": float}],
            "findings": [int],
        }
    ],
    "findings": [
        {
            "rule": str, "severity": str, "confidence": str, "window": {"start": str, "end": str}, "subject": {"route": str},
            "observed": {"late_2xx": NUMBER, "two_xx": NUMBER, "late_share": float, "p50_overrun_ms": NUMBER},
            "top": [{"client": str, "share": float, "tokens": (*NUMBER, type(None))}],
            "inference": str, "action": str, "count": int, "evidence": [{"file": str, "line": int}],
        }
    ],
    "not_evaluated": [{"rule": str, "missing": [str]}],
    "unlock": [{"fields": [str], "rules": int}],
    "errored": [],
    "quarantine": [{"file": str, "line": int, "reason": str}],
}

# Every part of the report holds something: a finding, a refused line, an unknown key, a rule that can't be told.
NIGHT = jsonl(
    [call(s, latency_ms=1700, client="eval-7", actual_tokens=100, colour="red") for s in range(6)] + [call(7, client="b")]
) + b"{broken\n"


def missing_or_wrong(wanted: Any, got: Any, where: str = "report") -> list[str]:
    """Return where a value does not hold what the contract names."""
    if isinstance(wanted, dict):
        if not isinstance(got, dict):
            return [f"{where} is no object"]
        absent = [f"{where}.{key} is missing" for key in wanted if key not in got]
        return absent + [
            p for key, part in wanted.items() if key in got for p in missing_or_wrong(part, got[key], f"{where}.{key}")
        ]
    if isinstance(wanted, list):
        if not isinstance(got, list) or (wanted and not got):
            return [f"{where} is no list, or an empty one"]
        return [p for part in wanted for i, item in enumerate(got) for p in missing_or_wrong(part, item, f"{where}[{i}]")]
    allowed = wanted if isinstance(wanted, tuple) else (wanted,)
    fits = isinstance(got, allowed) and (bool in allowed or not isinstance(got, bool))
    return [] if fits else [f"{where} is {type(got).__name__}"]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    folder = tmp_path_factory.mktemp("contract")
    (folder / "night.jsonl").write_bytes(NIGHT)
    (folder / "idle.jsonl").write_bytes(jsonl([{"ts": 1_788_833_640, "route": "readyz", "status": 200}]))
    only = ["analyze", "night.jsonl", "--max-quarantined", "100%"]
    calls = {
        "json": [*only, "--format", "json", "--only", "late-but-200", "--only", "saturation"],
        "all rules": [*only, "--format", "json"],
        "text": only,
        "idle": ["analyze", "idle.jsonl", "--format", "json"],
        "schema": ["analyze", "--json-schema"],
    }
    return dict(zip(calls, run_all(folder, list(calls.values())), strict=True))


def test_every_named_field_is_there_with_its_type(reports: dict[str, Done]) -> None:
    report = reports["json"].report
    assert [finding["rule"] for finding in report["findings"]] == ["late-but-200"]
    assert missing_or_wrong(CONTRACT, report) == []
    assert report["schema_version"] == 2


def test_rates_that_cannot_be_measured_are_null_and_not_zero(reports: dict[str, Done]) -> None:
    rates = reports["idle"].report["rates"]
    unmeasured = {name for name, value in rates.items() if value is None}
    assert unmeasured >= {
        "success_rate", "usable_rate", "usable_rate_of_all", "usable_rate_bounds", "usable_rate_interval95",
        "false_success_share", "request_success_rate", "amplification",
    }
    assert rates["tokens"]["all"] is None
    assert rates["tokens"]["wasted"] is None


def test_every_finding_keeps_observation_inference_and_action_apart(reports: dict[str, Done]) -> None:
    findings = reports["all rules"].report["findings"]
    assert findings
    for finding in findings:
        assert finding["observed"]
        assert finding["inference"]
        assert finding["action"]
        assert finding["evidence"]
        assert finding["window"]["start"] < finding["window"]["end"]
        assert finding["window"]["end"].endswith("Z")
        assert finding["count"] >= len(finding["evidence"])


def test_each_chosen_rule_has_exactly_one_outcome(reports: dict[str, Done]) -> None:
    report = reports["all rules"].report
    outcomes = [
        *{finding["rule"] for finding in report["findings"]}, *report["quiet"],
        *(entry["rule"] for part in ("not_evaluated", "errored") for entry in report[part]),
    ]
    assert len(outcomes) == len(set(outcomes))
    assert {"late-but-200", "saturation", "stuck-worker"} <= set(outcomes)


def test_lines_are_conserved_in_all_and_in_each_file(reports: dict[str, Done]) -> None:
    ledger = reports["all rules"].report["ledger"]
    for counts in (ledger, *ledger["files"]):
        parts = ("used", "not_a_request", "duplicates", "quarantined", "blank")
        assert counts["lines"] == sum(counts[part] for part in parts) == 8


def test_the_text_report_puts_the_two_rates_before_any_finding(reports: dict[str, Done]) -> None:
    shown = reports["text"].out
    lines = shown.split("\n")
    assert lines[3] == "  Success rate     100.0 %   7 of 7 attempts answered 2xx (what a dashboard shows)"
    assert lines[4].startswith("  Usable rate       14.3 %   1 of 7 judged requests [")
    assert lines[5].strip() == "usable means on time, complete and non-empty; complete is unknown for 1 of them"
    assert shown.index("Usable rate") < shown.index("Incidents (") < shown.index("late-but-200")
    assert "\x1b" not in shown
    for label in ("observed    ", "inference   ", "action      ", "lines       "):
        assert f"         {label}" in shown


# ----------------------------------------------------------------------------- the schema


def resolved(schema: Any, root: Any) -> Any:
    """Follow a reference within the document."""
    while "$ref" in schema:
        path = schema["$ref"].removeprefix("#/").split("/")
        schema = root
        for step in path:
            schema = schema[step]
    return schema


TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
    "null": (type(None),),
}
KEYWORDS = {
    "$defs", "$ref", "$schema", "additionalProperties", "anyOf", "const", "default", "description", "enum", "items", "maxItems",
    "minItems", "prefixItems", "properties", "required", "title", "type",
}


def violations(schema: Any, value: Any, root: Any, where: str = "report") -> list[str]:
    """Return where a value breaks a schema, for the keywords that this schema uses."""
    schema = resolved(schema, root)
    assert set(schema) <= KEYWORDS, sorted(set(schema) - KEYWORDS)
    if "anyOf" in schema:
        none_fits = all(violations(part, value, root, where) for part in schema["anyOf"])
        return [f"{where} fits none of the alternatives"] if none_fits else []
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return [f"{where} is no {kind}"]
    allowed = [schema["const"]] if "const" in schema else schema.get("enum", [value])
    if value not in allowed:
        return [f"{where} is none of {allowed}"]
    if kind == "object":
        return _object_violations(schema, value, root, where)
    return _array_violations(schema, value, root, where) if kind == "array" else []


def _object_violations(schema: Any, value: dict[str, Any], root: Any, where: str) -> list[str]:
    known = schema.get("properties", {})
    problems = [f"{where}.{name} is missing" for name in schema.get("required", []) if name not in value]
    others = schema.get("additionalProperties", True)
    for name, part in value.items():
        if name in known:
            problems += violations(known[name], part, root, f"{where}.{name}")
        elif others is False:
            problems.append(f"{where}.{name} is unknown")
        elif isinstance(others, dict):
            problems += violations(others, part, root, f"{where}.{name}")
    return problems


def _array_violations(schema: Any, value: list[Any], root: Any, where: str) -> list[str]:
    first = schema.get("prefixItems", [])
    parts = [*first, *[schema["items"]] * (len(value) - len(first))] if "items" in schema else first
    problems = [p for i, (s, v) in enumerate(zip(parts, value, strict=False)) for p in violations(s, v, root, f"{where}[{i}]")]
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        problems.append(f"{where} holds {len(value)} entries")
    return problems


def test_the_schema_is_a_schema_and_describes_every_report(reports: dict[str, Done]) -> None:
    done = reports["schema"]
    assert (done.status, done.err) == (0, "")
    schema = json.loads(done.out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert (schema["type"], schema["title"]) == ("object", "Report")
    assert schema["properties"]["schema_version"]["const"] == 2
    for name in ("json", "all rules", "idle"):
        assert violations(schema, reports[name].report, schema) == []
    report = reports["json"].report
    del report["rates"]["usable_rate"]
    report["ledger"]["lines"] = "8"
    report["schema_version"] = 1
    assert violations(schema, report, schema) == [
        "report.schema_version is none of [2]", "report.ledger.lines is no integer", "report.rates.usable_rate is missing",
    ]


def test_the_schema_file_in_docs_is_current(reports: dict[str, Done]) -> None:
    current = SCHEMA_FILE.read_text(encoding="utf-8")
    assert current == reports["schema"].out, "run: quietburn analyze --json-schema --output docs/report.schema.json"


def test_the_schema_can_be_written_to_a_file(tmp_path: Path, reports: dict[str, Done]) -> None:
    done = run(tmp_path, "analyze", "--json-schema", "--output", "schema.json")
    assert (done.status, done.out, done.err) == (0, "", "")
    assert (tmp_path / "schema.json").read_text(encoding="utf-8") == reports["schema"].out
