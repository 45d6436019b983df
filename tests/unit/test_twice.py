"""The same event in several lines: copies, and lines that a collector shipped again."""

from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, WAYS, conserved, jsonl, read, reading_way, report_of

from quietburn.analysis import analyze
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
