"""A ruined ledger makes no endless report: the first 200 of a kind are listed, and all are counted."""

import json
from pathlib import Path

from tests.cli.program import call, jsonl, run


def test_refused_lines_and_values_are_listed_up_to_200_and_counted_by_reason(tmp_path: Path) -> None:
    good = jsonl(call(second) for second in range(10))
    (tmp_path / "a.jsonl").write_bytes(
        b"broken\n" * 500 + b"[]\n" * 300 + jsonl(call(second, latency_ms=-1) for second in range(20, 320)) + good + b'{"ts": 17'
    )
    done = run(tmp_path, "analyze", "a.jsonl", "--format", "json", "--quarantine", "bad.jsonl", "--max-quarantined", "100%")

    assert (done.status, done.err) == (0, "")
    report = done.report
    assert report["ledger"]["quarantined"] == 801
    assert len(report["quarantine"]) == 200
    assert [line["line"] for line in report["quarantine"]] == list(range(1, 201))
    assert report["quarantine_codes"] == {"not_json": 500, "not_an_object": 300, "incomplete_last_line": 1}
    assert (report["ledger"]["invalid_values"], len(report["invalid"])) == (300, 200)
    every = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [line["line"] for line in every] == [*range(1, 801), 1111]


def test_the_limit_of_refused_lines_counts_all_of_them_and_not_the_listed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"broken\n" * 500 + jsonl(call(n / 10) for n in range(500)))
    done = run(tmp_path, "analyze", "a.jsonl", "--max-quarantined", "30%")
    assert done.status == 3
    assert "500 of 1,000 lines were refused" in done.err
    gate = run(tmp_path, "gate", "a.jsonl", "--min-usable", "1%", "--max-quarantined", "30%")
    assert gate.status == 3
