"""The same event in several lines: copies, and lines that a collector shipped again."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, WAYS, conserved, jsonl, read, reading_way, report_of

from quietburn.analysis.run import analyze
from quietburn.report.model import LedgerReport

ANSWERED = {"ts": T0 + 0.25, "request_id": "q0", "status": 200, "latency_ms": 900}
NGINX = {
    "msec": f"{T0}.250", "request_id": "q0", "status": "200", "request_time": "0.900", "uri": "/v1/chat/completions",
    "request_method": "POST", "bytes_sent": "2201",
}
LITELLM: dict[str, Any] = {
    "id": "c1", "litellm_call_id": "c1", "call_type": "acompletion", "status": "success", "startTime": T0 + 0.25,
    "endTime": T0 + 1.25, "response_time": 1.0, "stream": False, "metadata": {"user_api_key_alias": "app"},
}


def ledger_of(folder: Path, *lines: dict[str, Any]) -> LedgerReport:
    return report_of(folder, lines).ledger


@pytest.mark.parametrize("way", WAYS)
def test_a_line_with_another_ingest_key_counts_once_and_is_counted_apart(way: str, tmp_path: Path) -> None:
    again, copy = ANSWERED | {"ingest": "b"}, ANSWERED | {"ingest": "a"}
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(jsonl([copy, again, copy, ANSWERED]))
    with reading_way(way):
        reading = read(path)
    # Line 3 is a copy of line 1; lines 2 and 4 differ from it in `ingest`.
    assert (reading.counts.events, reading.counts.duplicates, reading.counts.reshipped) == (1, 3, 2)
    assert conserved(reading.counts)


@pytest.mark.parametrize(
    ("lines", "duplicates", "keys"),
    [
        ([ANSWERED | {"ingest": "a"}, ANSWERED | {"ingest": "b"}], 1, {"ingest": 1}),
        ([ANSWERED | {"ingest": "a"}, ANSWERED | {"ingest": "a"}], 1, {}),
        ([NGINX, NGINX | {"bytes_sent": "88"}], 1, {"bytes_sent": 1}),
        ([LITELLM, LITELLM | {"metadata": {"user_api_key_alias": "app", "collector": 2}}], 1, {"metadata": 1}),
        # Without an id, without a fraction of a second, or with another attempt these may be two events.
        ([{"ts": T0 + 0.25, "status": 200, "ingest": "a"}, {"ts": T0 + 0.25, "status": 200, "ingest": "b"}], 0, {}),
        ([ANSWERED | {"ts": T0, "ingest": "a"}, ANSWERED | {"ts": T0, "ingest": "b"}], 0, {}),
        ([ANSWERED | {"attempt": 1, "ingest": "a"}, ANSWERED | {"attempt": 2, "ingest": "b"}], 0, {}),
        ([ANSWERED | {"ingest": "a"}, ANSWERED | {"ingest": "b", "status": 503}], 0, {}),
    ],
)
def test_what_was_shipped_again_and_the_keys_that_differ(
    lines: list[dict[str, Any]], duplicates: int, keys: dict[str, int], tmp_path: Path
) -> None:
    ledger = ledger_of(tmp_path, *lines)
    assert (ledger.lines, ledger.used, ledger.duplicates) == (2, 2 - duplicates, duplicates)
    assert (ledger.reshipped, ledger.reshipped_keys) == (sum(keys.values()), keys)


def test_a_repeated_line_of_another_file_is_shipped_again_too(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(jsonl([ANSWERED | {"collector": "a"}]))
    (folder / "b.jsonl").write_bytes(jsonl([ANSWERED | {"collector": "b"}]))
    report = analyze([str(folder)])
    assert (report.rates.attempts, report.ledger.duplicates, report.ledger.reshipped_keys) == (1, 1, {"collector": 1})


def test_the_keys_that_differ_are_named_of_a_compressed_ledger_too(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl.gz"
    path.write_bytes(gzip.compress(jsonl([ANSWERED | {"ingest": "a"}, ANSWERED | {"ingest": "b"}])))
    assert analyze([str(path)]).ledger.reshipped_keys == {"ingest": 1}


def envoy_line(number: int, side: str, **others: Any) -> dict[str, Any]:
    return {
        "start_time": f"2026-05-04T09:0{number}:00.100Z", "path": "/v1/chat/completions", "response_code": 200,
        "response_flags": "-", "duration": 910, "request_id": f"r-{number}", "upstream_host": "10.0.0.1:8000",
        "upstream_cluster": f"{side}|8000||", "bytes_sent": 2201,
    } | others  # fmt: skip


def test_both_ends_of_a_call_are_one_attempt_seen_by_the_caller(tmp_path: Path) -> None:
    # The caller's proxy saw call 1 fail; what the callee's proxy says of it is in no rate.
    lines = [envoy_line(number, side, response_code=503 if (number, side) == (1, "outbound") else 200)
             for number in range(3) for side in ("inbound", "outbound")]  # fmt: skip
    report = report_of(tmp_path, lines)
    assert (report.ledger.used, report.ledger.duplicates, report.ledger.same_call, report.ledger.conflicting_ids) == (6, 0, 3, 0)
    assert (report.rates.attempts, report.rates.requests, report.rates.successes) == (3, 3, 2)


def test_an_end_without_the_other_counts(tmp_path: Path) -> None:
    lines = [
        envoy_line(0, "inbound"),  # its caller has no proxy
        envoy_line(1, "outbound"),
        envoy_line(1, "inbound", start_time="2026-05-04T09:09:00.100Z"),  # minutes after that call: another one
        envoy_line(2, "outbound"),
        envoy_line(2, "outbound", start_time="2026-05-04T09:02:02.100Z"),  # a retry
    ]
    report = report_of(tmp_path, lines)
    assert (report.ledger.same_call, report.rates.attempts) == (0, 5)


def test_both_ends_are_found_across_the_files_of_two_proxies(tmp_path: Path) -> None:
    for side in ("inbound", "outbound"):
        (tmp_path / f"{side}.jsonl").write_bytes(jsonl(envoy_line(number, side) for number in range(3)))
    report = analyze([str(tmp_path)])
    assert (report.ledger.used, report.ledger.same_call, report.rates.attempts) == (6, 3, 3)
