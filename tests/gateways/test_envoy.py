"""Logs in the format that is recommended for Envoy, against what the report of a poorer one promises."""

from pathlib import Path

import pytest
from tests.gateways.envoy import Call, format_of, logged

from quietburn.analysis.run import Request, analyze
from quietburn.dialects.mapping import shipped_mappings
from quietburn.report.model import Report

DOCS = Path(__file__).resolve().parents[2] / "docs" / "log-formats.md"
# What somebody has who made Envoy write JSON; the path's name tells the two dialects apart.
POOR = {"start_time": "%START_TIME%", "response_code": "%RESPONSE_CODE%", "duration": "%DURATION%"}
PATHS = {"envoy": "path", "envoy-ai-gateway": "x-envoy-origin-path"}
PATH = "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%"

SDK = {"X-STAINLESS-RETRY-COUNT": "0", "X-STAINLESS-READ-TIMEOUT": "5", "USER-AGENT": "OpenAI/Python 3.57.0"}
JSON = {"CONTENT-TYPE": "application/json"}
CALLS = [
    Call(0, 400, 200, asked=SDK | {"X-REQUEST-ID": "a"}, answered=JSON),
    Call(10, 6200, 200, asked=SDK | {"X-REQUEST-ID": "b"}, answered=JSON),
    Call(20, 2, 429, hosts=(), asked=SDK | {"X-REQUEST-ID": "c"}, answered=JSON | {"RETRY-AFTER": "7"}),
    Call(21, 2, 429, hosts=(), asked=SDK | {"X-REQUEST-ID": "c", "X-STAINLESS-RETRY-COUNT": "1"},
         answered=JSON | {"RETRY-AFTER": "6"}),
    Call(30, 900, 200, hosts=("10.1.2.4:8000", "10.1.2.3:8000"), asked=SDK | {"X-REQUEST-ID": "d"}, answered=JSON),
    Call(40, 800, 200, "UC", asked=SDK | {"X-REQUEST-ID": "e"}, answered={"CONTENT-TYPE": "text/event-stream"}),
    Call(50, 700, 0, "DC", asked=SDK | {"X-REQUEST-ID": "f"}),
    Call(60, 15_000, 504, "UT", asked=SDK | {"X-REQUEST-ID": "g"}, answered={"CONTENT-TYPE": "text/plain"}),
]


def evaluated(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings} | set(report.quiet)


def report_of(path: Path, keys: dict[str, str]) -> Report:
    path.write_text(logged(CALLS, keys), encoding="utf-8")
    return analyze([str(path)], Request())


def recommended() -> dict[str, str]:
    return format_of(DOCS.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0])


@pytest.mark.parametrize("dialect", PATHS)
def test_each_paste_enables_exactly_the_rules_that_it_promises(dialect: str, tmp_path: Path) -> None:
    keys = POOR | {PATHS[dialect]: PATH}
    poor = report_of(tmp_path / "poor.jsonl", keys)
    assert [file.dialect for file in poor.ledger.files] == [dialect]
    promises = [one for one in poor.unlock if dialect in one.paste]
    assert len(promises) >= 3
    for promise in promises:
        report = report_of(tmp_path / "pasted.jsonl", keys | format_of(promise.paste[dialect]))
        assert evaluated(report) - evaluated(poor) == set(promise.rule_ids), promise.fields
        assert (report.ledger.unknown_keys, report.ledger.invalid_values) == ([], 0)


@pytest.mark.parametrize("dialect", PATHS)
def test_the_recommended_format_enables_exactly_what_all_that_can_be_pasted_promises(dialect: str, tmp_path: Path) -> None:
    poor = report_of(tmp_path / "poor.jsonl", POOR | {PATHS[dialect]: PATH})
    most = max((one for one in poor.unlock if dialect in one.paste), key=lambda one: len(one.fields))
    keys = recommended()
    keys[PATHS[dialect]] = keys.pop("x-envoy-origin-path")  # plain Envoy calls it `path`, as the page says
    report = report_of(tmp_path / "recommended.jsonl", keys)
    assert [file.dialect for file in report.ledger.files] == [dialect]
    assert (report.ledger.used, report.ledger.unknown_keys, report.ledger.invalid_values) == (len(CALLS), [], 0)
    assert evaluated(report) - evaluated(poor) == set(most.rule_ids) == {
        "clock-skew", "failover-never-called", "failover-starved", "failover-too-late", "late-but-200", "retry-below-floor",
        "retry-cap-exceeded", "retry-herd", "shed-without-hint", "slow-refusal", "success-hides-outage", "truncated-as-success",
        "upstream-shed-rate", "vantage-points-disagree",
    }
    assert [one.fields for one in report.unlock if dialect in one.paste] == []
    # The second refusal's call came 0.998 s after the first, which asked for 7 s.
    assert "retry-below-floor" in {finding.rule for finding in report.findings}


def test_every_paste_of_the_dialects_is_in_the_recommended_format() -> None:
    for mapping in shipped_mappings():
        if mapping.dialect.name in PATHS:
            assert format_of(mapping.pasted(mapping.log.values())).items() <= recommended().items()
