"""`--cpu`: CPU use that the ledger doesn't carry, from CSV or a Prometheus answer."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import T0, is_one_line, run, run_all, write

from quietburn.ledger.cpu import CpuSample, by_minute, read_cpu

FIRES = Path(__file__).resolve().parents[2] / "fixtures" / "rules" / "stuck-worker" / "fires.jsonl"
ONLY = ("--only", "stuck-worker", "--only", "queue-cause-unclear", "--format", "json")


def split(folder: Path) -> list[dict[str, Any]]:
    """Write the stuck worker's ledger without its CPU; return what it said of it."""
    events = [json.loads(line) for line in FIRES.read_text().splitlines()]
    names = ("ts", "cpu_pct", "backend")
    told = [{name: event[name] for name in names} for event in events if "cpu_pct" in event]
    write(folder / "without.jsonl", [{k: v for k, v in event.items() if k != "cpu_pct"} for event in events])
    write(folder / "with.jsonl", events)
    return told


def findings(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in finding.items() if k != "evidence"} for finding in report["findings"]]


def test_cpu_from_csv_or_prometheus_finds_what_cpu_in_the_ledger_finds(tmp_path: Path) -> None:
    told = split(tmp_path)
    rows = [f"{e['ts']},{e['cpu_pct']},{e['backend']}" for e in told]
    (tmp_path / "cpu.csv").write_text("\n".join(["ts,cpu_pct,backend", *rows]) + "\n")
    dates = [f"{e['backend']},{e['cpu_pct']},{datetime.fromtimestamp(e['ts'], UTC).isoformat()}" for e in told]
    (tmp_path / "iso.csv").write_text("\r\n".join([" backend , cpu_pct,ts", *dates]))
    by_backend: dict[str, list[list[object]]] = {}
    for e in told:
        by_backend.setdefault(e["backend"], []).append([e["ts"], str(e["cpu_pct"] / 100)])
    series = [{"metric": {"backend": name}, "values": values} for name, values in by_backend.items()]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    (tmp_path / "range.json").write_text(json.dumps(answer))

    plain, bare, csv, dated, prometheus = run_all(tmp_path, [
        ("analyze", "with.jsonl", *ONLY), ("analyze", "without.jsonl", *ONLY),
        ("analyze", "without.jsonl", "--cpu", "cpu.csv", *ONLY),
        ("analyze", "without.jsonl", "--cpu", "iso.csv", *ONLY), ("analyze", "without.jsonl", "--cpu", "range.json", *ONLY),
    ])

    expected = findings(plain.report)
    assert {finding["rule"] for finding in expected} == {"stuck-worker"}
    # What comes out tells a stuck worker without CPU; where only health checks report the queue, CPU has to.
    assert {finding["subject"]["route"] for finding in expected} == {"complete", "ready"}
    assert {finding["subject"]["route"] for finding in findings(bare.report)} == {"complete"}
    assert {finding["observed"]["mean_cpu_pct"] for finding in findings(bare.report)} == {None}
    for done in (csv, dated, prometheus):
        assert done.status == 0, done.err
        assert findings(done.report) == expected
    assert f"CPU use comes from cpu.csv: {len(told)} samples." in csv.report["notices"]
    assert "ratios of 1 read as 100 %" in " ".join(prometheus.report["notices"])


def test_busy_cpu_from_elsewhere_makes_the_cause_of_the_same_waits_unclear(tmp_path: Path) -> None:
    split(tmp_path)
    minutes = sorted({int(json.loads(line)["ts"]) // 60 for line in FIRES.read_text().splitlines()})
    (tmp_path / "busy.csv").write_text("ts,cpu_pct\n" + "".join(f"{minute * 60 + 30},92\n" for minute in minutes))

    over = run(tmp_path, "analyze", "with.jsonl", "--cpu", "busy.csv", *ONLY)  # what is named has the say over the ledger

    assert {finding["rule"] for finding in over.report["findings"]} == {"queue-cause-unclear"}


def test_rows_that_cannot_be_used_are_counted_and_named(tmp_path: Path) -> None:
    path = tmp_path / "cpu.csv"
    path.write_text(
        f"ts,cpu_pct,backend\n{T0},10,a\nsoon,10,a\n{T0},full,a\n{T0},101,a\n{T0},NaN,a\n5,10,a\n{T0 * 1000},30,a\n{T0 + 60},50\n"
    )

    found = read_cpu(path, None)

    assert found.samples == [
        CpuSample(T0 * 1_000_000, "a", 10), CpuSample(T0 * 1_000_000, "a", 30), CpuSample((T0 + 60) * 1_000_000, "", 50),
    ]
    assert (found.refused, found.first_refused) == (5, 3)
    assert by_minute(found.samples) == [("", (T0 + 60) // 60, 50), ("a", T0 // 60, 20)]
    assert any("5 rows have no usable time" in notice for notice in found.notices("cpu.csv"))


def test_a_zone_is_that_of_times_that_name_none(tmp_path: Path) -> None:
    path = tmp_path / "cpu.csv"
    path.write_text("ts,cpu_pct\n2026-09-08T04:14:00,10\n2026-09-08T02:14:00Z,20\n")

    assert [sample.ts_us for sample in read_cpu(path, "Europe/Berlin").samples] == [T0 * 1_000_000] * 2


@pytest.mark.parametrize(("content", "words"), [
    (None, "can't be read (no such file or directory)"),
    (b"", "the first line must name the columns ts and cpu_pct"),
    (b"time,load\n1,2\n", "the first line must name the columns ts and cpu_pct"),
    (b"ts,cpu_pct\n", "contains no usable sample"),
    (b"\xff\xfe\x00", "is not UTF-8 text"),
    (b"{", "starts like JSON but is not valid JSON"),
    (b'{"data": {"result": [{"value": [1, "2"]}]}}', "is not a range query response"),
    (b'{"data": {"result": [{"values": [[1, "2"], 7, null]}]}}', "contains no usable sample"),
    (b"[" * 100_000, "starts like JSON but is not valid JSON"),
])  # fmt: skip
def test_a_file_that_holds_no_cpu_use_is_one_line(content: bytes | None, words: str, tmp_path: Path) -> None:
    split(tmp_path)
    if content is not None:
        (tmp_path / "cpu.csv").write_bytes(content)

    done = run(tmp_path, "analyze", "with.jsonl", "--cpu", "cpu.csv")

    assert (done.status, done.out) == (2, "")
    assert is_one_line(done.err)
    assert f"--cpu cpu.csv: {words}" in done.err
