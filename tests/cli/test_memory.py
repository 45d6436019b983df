"""Peak memory follows the lines of a ledger, not the number of keys that nobody knows."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import QUIETBURN, T0, environment


def peak_kib(folder: Path, lines: list[dict[str, Any]]) -> tuple[int, Any]:
    """Return the peak memory of an analysis in a process of its own, and the report."""
    (folder / "ledger.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    call = [*QUIETBURN, "analyze", "ledger.jsonl", "--format", "json", "--quiet"]
    with (folder / "report.json").open("wb") as out, subprocess.Popen(call, cwd=folder, stdout=out, env=environment()) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss, json.loads((folder / "report.json").read_text())


def word(number: int) -> str:
    """Return a word of letters for a number."""
    letters = ""
    while number >= 0:
        letters = chr(ord("a") + number % 26) + letters
        number = number // 26 - 1
    return letters


def event(number: int, key: str) -> dict[str, Any]:
    return {"ts": T0 + number // 10, "request_id": f"r{number}", "status": 200, "latency_ms": number % 900 + 1, key: {"x": 1}}


@pytest.mark.parametrize("lines", [10_000, 20_000])
def test_a_key_of_its_own_on_each_line_costs_no_memory(lines: int, tmp_path: Path) -> None:
    same, _ = peak_kib(tmp_path, [event(number, "note") for number in range(lines)])
    unique, report = peak_kib(tmp_path, [event(number, f"note_{word(number)}") for number in range(lines)])
    assert unique < 1.3 * same
    assert report["ledger"]["used"] == lines
    keys = {key["key"]: (key["lines"], key["first_line"]) for key in report["ledger"]["unknown_keys"]}
    assert (len(keys), report["ledger"]["unknown_keys_in_all"]) == (200, lines)  # the list is bounded, and says so
    assert keys["note_a"] == (1, 1)
    assert keys["note_aa"] == (1, 27)
