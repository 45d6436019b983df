"""A gate and a comparison over nights of which a proxy and a gateway both keep a log."""

from pathlib import Path
from typing import Any

from tests.cli.program import T0, run, write


def logs(folder: Path, empty: int) -> None:
    """Write a night of 60 calls: the proxy knows when each ended, the gateway behind it what the answers held."""
    folder.mkdir()
    call: dict[str, Any] = {"status": 200, "path": "/v1/chat/completions"}
    front = [call | {"ts": T0 + 4 * n, "request_id": f"r{n}", "latency_ms": 400, "deadline_ms": 2000} for n in range(60)]
    behind = [
        call | {"ts": T0 + 4 * n - 0.01, "request_id": f"r{n}", "latency_ms": 380, "answer_chars": 0 if n < empty else 20}
        for n in range(60)
    ]
    write(folder / "front.jsonl", front)
    write(folder / "behind.jsonl", behind)


def test_a_gate_judges_by_what_the_joined_log_knows(tmp_path: Path) -> None:
    logs(tmp_path / "night", empty=30)
    asked = ("gate", "night", "--min-usable", "80%", "--format", "json")
    alone, joined = run(tmp_path, *asked), run(tmp_path, *asked, "--join", "request_id")
    assert (alone.status, alone.report["ledger"]["rates"]["usable"]) == (0, 60)
    assert (joined.status, joined.report["ledger"]["rates"]["usable"]) == (1, 30)
    assert joined.report["ledger"]["rates"]["verdicts"]["empty"] == 30


def test_a_baseline_and_both_sides_of_a_comparison_are_joined_too(tmp_path: Path) -> None:
    logs(tmp_path / "before", empty=0)
    logs(tmp_path / "after", empty=30)
    gated = run(
        tmp_path, "gate", "after", "--baseline", "before", "--max-drop", "5%", "--join", "request_id", "--format", "json"
    )
    assert (gated.status, gated.report["baseline"]["rates"]["usable"]) == (1, 60)
    compared = run(tmp_path, "compare", "before", "after", "--join", "request_id", "--format", "json")
    assert [compared.report[side]["rates"]["usable"] for side in ("before", "after")] == [60, 30]


def test_another_way_to_join_is_refused(tmp_path: Path) -> None:
    logs(tmp_path / "night", empty=0)
    for command in (("gate", "night", "--min-usable", "80%"), ("compare", "night", "night")):
        done = run(tmp_path, *command, "--join", "time")
        assert (done.status, done.err) == (2, "quietburn: --join time: logs can be joined only by request_id.\n")
