"""A real nginx in front of the gateway lab: what its recommended format promises, and what its variables really say."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import run
from tests.gateways.nginx import require_nginx
from tests.gateways.night import BACKEND_S, CALLS, Format, play

from quietburn.analysis.run import Request, analyze
from quietburn.dialects.mapping import shipped_mappings
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.engine.settings import Settings
from quietburn.records.inputs import LedgerFile
from quietburn.report.model import Report, UnlockReport

DOCS = Path(__file__).resolve().parents[2] / "docs" / "log-formats.md"
# What somebody has who made nginx write JSON, and thought of no more than of status and time.
POOR = """'"msec":"$msec","uri":"$uri","status":"$status","request_time":"$request_time"}'"""
NGINX = next(mapping for mapping in shipped_mappings() if mapping.dialect.name == "nginx")


def with_pasted(name: str, lines: str, path: Path) -> Format:
    """Return the poor format with lines pasted behind its brace, as a user would."""
    return Format(f"log_format {name} escape=json\n  '{{'\n{lines}\n  {POOR};", f"access_log {path} {name};")


def recommended(path: Path) -> Format:
    """Return the format of the documentation as it stands there, but for the file's name."""
    block = DOCS.read_text(encoding="utf-8").partition("```nginx\n")[2].partition("```")[0]
    definition, _, rest = block.partition("access_log /var/log/nginx/llm.jsonl ")
    assert rest.strip() == "quietburn;"
    return Format(definition, f"access_log {path} {rest.strip()}")


def evaluated(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings} | set(report.quiet)


def of_command(path: Path) -> Report:
    """Return what the command says of a log, without any option but the output's form."""
    done = run(path.parent, "analyze", path.name, "--format", "json")
    assert done.status == 0, done.err
    return Report.model_validate(done.report)


@dataclass(frozen=True)
class Tried:
    """The poor log's report, and the logs of a second night: with each promise pasted, and in the recommended format."""

    poor: Report
    promises: dict[Path, UnlockReport]
    everything: Path
    recommended: Path


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    """Plays a night with the poor format, and one with what its report says to paste."""
    require_nginx()
    folder = tmp_path_factory.mktemp("nginx")
    first = folder / "poor.jsonl"
    play(folder / "before", {first: with_pasted("poor", "", first)})
    poor = of_command(first)
    promises = {folder / f"promise{number}.jsonl": one for number, one in enumerate(poor.unlock) if "nginx" in one.paste}
    formats = {path: with_pasted(path.stem, one.paste["nginx"], path) for path, one in promises.items()}
    everything, docs = folder / "everything.jsonl", folder / "recommended.jsonl"
    formats |= {everything: with_pasted("everything", NGINX.pasted(NGINX.log.values()), everything), docs: recommended(docs)}
    play(folder / "after", formats)
    return Tried(poor, promises, everything, docs)


def test_each_paste_enables_exactly_the_rules_that_it_promises(tried: Tried) -> None:
    before = evaluated(tried.poor)
    assert before == {"healthy-but-silent", "readiness-gap"}
    assert len(tried.promises) >= 3
    for path, promise in tried.promises.items():
        report = analyze([str(path)], Request())
        assert evaluated(report) - before == set(promise.rule_ids), promise.fields
        assert promise.rules == len(promise.rule_ids)
        assert before <= evaluated(report)


def test_the_recommended_format_enables_exactly_what_all_that_can_be_pasted_promises(tried: Tried) -> None:
    most = max(tried.promises.values(), key=lambda promise: len(promise.fields))
    assert most.fields == ["attempt", "backend", "deadline_ms", "request_id", "retry_after_s", "stream_complete"]
    report = of_command(tried.recommended)
    assert [file.dialect for file in report.ledger.files] == ["nginx"]
    assert (report.ledger.used, report.ledger.unknown_keys, report.ledger.invalid_values) == (len(CALLS), [], 0)
    assert evaluated(report) - evaluated(tried.poor) == set(most.rule_ids) == {
        "clock-skew", "failover-never-called", "failover-starved", "failover-too-late", "late-but-200", "retry-below-floor",
        "retry-cap-exceeded", "retry-herd", "shed-without-hint", "slow-refusal", "success-hides-outage", "truncated-as-success",
        "upstream-shed-rate", "vantage-points-disagree",
    }
    # Nothing that nginx can be made to log is left to be promised.
    assert [one.fields for one in report.unlock if "nginx" in one.paste] == []


def test_every_paste_of_the_dialect_is_in_the_recommended_format(tried: Tried) -> None:
    def keys(path: Path) -> set[str]:
        return set(json.loads(path.read_text(encoding="utf-8").splitlines()[0]))

    pasted = {key for text in NGINX.log.values() for key in re.findall(r'"([a-z_]+)":"\$', text)}
    assert pasted <= keys(tried.everything) & keys(tried.recommended)


def events_of(path: Path) -> dict[str, dict[str, Any]]:
    """Return the event of each call, without NULLs."""
    with DuckEngine(known=shipped_mappings(), threads=2) as engine:
        engine.load([LedgerFile("ledger", path)])
        engine.prepare(Settings())
        rows = engine.select("SELECT * FROM all_events ORDER BY line").to_pylist()
    return {
        call: {key: value for key, value in row.items() if value is not None} for call, row in zip(CALLS, rows, strict=True)
    }


# What happened to each call, as the lab was told to do it; times only as far as the lab sets them.
HAPPENED: dict[str, dict[str, Any]] = {
    "usable": {
        "route": "complete", "status": 200, "backends_tried": 1, "deadline_ms": 60_000, "attempt": 1, "stream": False,
        "stream_complete": True, "client_closed": False, "user_agent": "OpenAI", "request_id": "usable",
        "idempotency_key": "key-usable", "verdict": "usable",
    },
    "late": {"status": 200, "deadline_ms": 10, "verdict": "late"},  # the backend takes 50 ms
    "refused": {"status": 429, "retry_after_s": 1, "request_id": "again", "attempt": 1, "verdict": "refused"},
    "retried": {"status": 429, "retry_after_s": 1, "request_id": "again", "attempt": 2, "nth": 2, "verdict": "refused"},
    "failed over": {"route": "complete", "status": 200, "backends_tried": 2, "verdict": "usable"},
    "no backend": {"status": 502, "backends_tried": 1, "verdict": "failed"},
    "left": {"status": 499, "client_closed": True, "verdict": "unknown"},  # nobody knows how long it would have waited
    # nginx says of both streams that they are complete, so nobody can tell the cut one from the whole one.
    "streamed": {"status": 200, "stream": True, "client_closed": False, "verdict": "unknown"},
    "cut stream": {"status": 200, "stream": True, "client_closed": False, "verdict": "unknown"},
    "cut short": {"status": 200, "stream": False, "client_closed": False, "stream_complete": False, "verdict": "truncated"},
    "broke off": {"status": 200, "stream": True, "client_closed": True, "complete": False, "verdict": "abandoned"},
    "probe": {"route": "ready", "traffic": "probe", "traffic_source": "user_agent", "status": 200},
    "listed": {"route": "/v2/models", "status": 404},
}
MISSING = {
    "left": {"ttft_ms", "deadline_ms"}, "streamed": {"deadline_ms", "stream_complete", "complete"},
    "cut stream": {"deadline_ms", "stream_complete", "complete"}, "probe": {"backend", "upstream_ms"},
    "refused": {"client_closed"}, "usable": {"retry_after_s"},
}


def test_what_a_real_nginx_logs_is_read_for_what_happened(tried: Tried) -> None:
    events = events_of(tried.recommended)
    assert {call: {key: events[call].get(key) for key in wanted} for call, wanted in HAPPENED.items()} == HAPPENED
    assert {call: names & set(events[call]) for call, names in MISSING.items()} == {call: set() for call in MISSING}
    for call in ("usable", "late", "failed over"):
        assert events[call]["latency_ms"] >= BACKEND_S * 1000
        assert events[call]["upstream_ms"] <= events[call]["latency_ms"] + 1  # each is cut to a whole millisecond
    # An id that the caller did not send is nginx's own.
    assert re.fullmatch(r"[0-9a-f]{32}", events["probe"]["request_id"])
