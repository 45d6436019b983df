"""`gate` and `compare` as programs: each exit status with all that stands on stdout and stderr."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import QUIETBURN, call, environment, interruptible, is_one_line, jsonl, late, run, write

NOTES = """\
  note             The interval is Wilson's and assumes independent requests, so it is optimistic in a burst
                   (1 block of five minutes; 30 or more would be resampled).
  note             The gateway's clock misses the network time to and from the caller, so on time is
                   optimistic by that much.
"""
THRESHOLDS = """\
  Thresholds
    min_usable {limit} (--min-usable)
    max_quarantined 5.0 % (default)

"""
# 8 of 8: Wilson's lower end is 8 / (8 + 3.8415) = 67.6 %.
PASSED = (
    """\
quietburn gate: passed

  success rate     100.0 %   8 of 8 attempts answered 2xx (what a dashboard shows)
  usable rate      100.0 % [67.6 % to 100.0 %]   8 of 8 judged requests; usable means on time, complete and
                   non-empty; complete is unknown for 8 of them
  deadline         1,000 ms, from the ledger

  Checks
    pass           min_usable: usable rate 100.0 % [67.6 % to 100.0 %] of 8 judged requests; the minimum is
                   60.0 %

"""
    + THRESHOLDS.format(limit="60.0 %")
    + NOTES
    + "  repeat           quietburn gate night.jsonl --min-usable 60%\n"
)
# None of 8: the upper end is 3.8415 / (8 + 3.8415) = 32.4 %.
FAILED = (
    """\
quietburn gate: failed

  success rate     100.0 %   8 of 8 attempts answered 2xx (what a dashboard shows)
  usable rate      0.0 % [0.0 % to 32.4 %]   0 of 8 judged requests; usable means on time, complete and
                   non-empty
  not usable       late 8 (100.0 %)
  deadline         1,000 ms, from the ledger

  Checks
    fail           min_usable: usable rate 0.0 % [0.0 % to 32.4 %] of 8 judged requests; the minimum is 60.0 %

"""
    + THRESHOLDS.format(limit="60.0 %")
    + NOTES
    + "  repeat           quietburn gate night.jsonl --min-usable 60%\n"
)
# 7 of 8: z^2 0.9 0.1 / 0.025^2 = 553.2 such requests would settle 87.5 % against 90 %.
UNDECIDED = (
    """\
quietburn gate: undecided

  success rate     100.0 %   8 of 8 attempts answered 2xx (what a dashboard shows)
  usable rate      87.5 % [52.9 % to 97.8 %]   7 of 8 judged requests; usable means on time, complete and
                   non-empty; complete is unknown for 7 of them
  not usable       late 1 (12.5 %)
  deadline         1,000 ms, from the ledger

  Checks
    undecided      min_usable: usable rate 87.5 % [52.9 % to 97.8 %] of 8 judged requests; the minimum is 90.0
                   %. The interval contains the limit, so this is undecided; about 554 such requests would
                   settle it

"""
    + THRESHOLDS.format(limit="90.0 %")
    + NOTES
    + "  repeat           quietburn gate night.jsonl --min-usable 90%\n"
)


@pytest.mark.parametrize(
    ("usable", "limit", "status", "out"),
    [(8, "60%", 0, PASSED), (0, "60%", 1, FAILED), (7, "90%", 3, UNDECIDED)],
    ids=["passed", "failed", "undecided"],
)
def test_a_verdict_is_told_whole_and_ends_in_its_own_status(
    tmp_path: Path, usable: int, limit: str, status: int, out: str
) -> None:
    write(tmp_path / "night.jsonl", [call(n) for n in range(usable)] + [late(n) for n in range(usable, 8)])
    done = run(tmp_path, "gate", "night.jsonl", "--min-usable", limit)
    assert done.out == out
    assert (done.status, done.err) == (status, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to decide: give --min-usable 95%"),
        (["--min-usable", "most"], "--min-usable 'most': write a share such as 5% or 0.05."),
        (["--max-drop", "2%"], "max_drop (--max-drop): needs a --baseline"),
        (["--require", "complet"], "no such criterion (did you mean 'complete'?)"),
        (["--require", ","], "--require: is empty"),
        (["--baseline", "gone.jsonl"], "gone.jsonl"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_status_2(tmp_path: Path, arguments: list[str], words: str) -> None:
    write(tmp_path / "night.jsonl", [call(0)])
    done = run(tmp_path, "gate", "night.jsonl", *arguments)
    assert (done.status, done.out) == (2, "")
    assert words in done.err
    assert is_one_line(done.err)


def test_an_interrupted_gate_ends_in_130(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*QUIETBURN, "gate", "-", "--min-usable", "50%"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=environment(), preexec_fn=interruptible,  # noqa: PLW1509 - no threads here
    ) as process:
        assert process.stdin is not None
        process.stdin.write(jsonl([call(0)] * 20_000))
        process.stdin.flush()  # more than a pipe holds: it has begun to read by now
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"quietburn: interrupted.\n")


def test_configuration_asks_and_flags_ask_louder(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(n) for n in range(8)])
    (tmp_path / "quietburn.toml").write_text('[gate]\nmin_usable = 0.6\nmax_gap = 0.4\nrequire = ["on_time"]\n')
    report = run(tmp_path, "gate", "night.jsonl", "--max-gap", "50%", "--format", "json").report
    origins = {threshold["name"]: (threshold["value"], Path(threshold["origin"]).name) for threshold in report["thresholds"]}
    assert origins["min_usable"] == ("60.0 %", "quietburn.toml")
    assert origins["require"] == ("on_time", "quietburn.toml")
    assert origins["max_gap"] == ("50.0 %", "--max-gap")
    assert (report["verdict"], report["exit_status"]) == ("pass", 0)


def test_a_bad_key_of_the_gate_is_named(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(0)])
    (tmp_path / "quietburn.toml").write_text("[gate]\nmin_useable = 0.6\n")
    done = run(tmp_path, "gate", "night.jsonl")
    assert (done.status, done.out) == (2, "")
    assert "gate.min_useable: unknown key (did you mean 'min_usable'?)" in done.err


def streamed(number: int, **fields: Any) -> dict[str, Any]:
    """Return a streamed answer that ended as it should."""
    return call(number, stream=True, finish_reason="stop", **fields)


def test_deleting_finish_reason_cannot_turn_a_failing_gate_into_a_passing_one(tmp_path: Path) -> None:
    cut = [streamed(n) | {"finish_reason": None} for n in range(300, 400)]
    honest = [streamed(n) for n in range(300)] + cut
    silent = [{key: value for key, value in line.items() if key != "finish_reason"} for line in honest]
    write(tmp_path / "honest.jsonl", honest)
    write(tmp_path / "silent.jsonl", silent)
    asked = ("--min-usable", "90%", "--require", "on_time,complete")
    assert run(tmp_path, "gate", "honest.jsonl", *asked).status == 1
    assert run(tmp_path, "gate", "silent.jsonl", "--min-usable", "90%").status == 0  # nothing speaks against them any more
    done = run(tmp_path, "gate", "silent.jsonl", *asked)
    assert done.status == 1
    said = " ".join(done.out.split())
    assert "complete is known for 0.0 % of the 2xx answers" in said
    assert "It is required, so at least half must be known" in said


def test_a_deploy_that_turns_a_tenth_of_the_calls_into_401_is_stopped(tmp_path: Path) -> None:
    write(tmp_path / "before.jsonl", [call(n) for n in range(200)])
    after = [call(n) for n in range(180)] + [call(n, status=401, answer_chars=None) for n in range(180, 200)]
    write(tmp_path / "after.jsonl", after)
    done = run(tmp_path, "gate", "after.jsonl", "--baseline", "before.jsonl", "--max-drop", "2%", "--format", "json")
    checks = {check["name"]: check for check in done.report["checks"]}
    assert done.status == 1
    assert checks["max_drop"]["counts_as"] == "pass"  # valid requests are answered as before
    assert (checks["max_invalid_rise"]["outcome"], checks["max_invalid_rise"]["limit"]) == ("fail", 0.01)


def test_a_ledger_that_cannot_say_what_was_in_time_never_passes(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(n, deadline_ms=None) for n in range(50)])
    for extra in ([], ["--undecided", "pass"], ["--point"]):
        done = run(tmp_path, "gate", "night.jsonl", "--min-usable", "1%", *extra)
        assert done.status == 3
        assert "ost answers can't be judged on time" in " ".join(done.out.split())


def test_too_many_refused_lines_are_status_3(tmp_path: Path) -> None:
    (tmp_path / "night.jsonl").write_bytes(jsonl([call(n) for n in range(8)]) + b"{broken\n" * 2)
    done = run(tmp_path, "gate", "night.jsonl", "--min-usable", "10%", "--undecided", "pass")
    assert done.status == 3
    assert "2 of 10 lines of the ledger were refused; at most 5.0 % may be" in done.out
    assert run(tmp_path, "gate", "night.jsonl", "--min-usable", "10%", "--max-quarantined", "50%").status == 0


def test_acceptance_of_a_run_says_to_halve_the_cap(tmp_path: Path) -> None:
    # 400 waits over 33 minutes; every tenth waits longer than its caller does. No 429, no retry.
    events = [call(5 * n, request_id=f"r{n}", queue_age_ms=1500 if n % 10 == 0 else 20) for n in range(400)]
    write(tmp_path / "run.jsonl", events)
    done = run(tmp_path, "gate", "run.jsonl", "--acceptance", "--format", "json")
    outcomes = {check["name"]: check["outcome"] for check in done.report["checks"]}
    assert outcomes == {
        "acceptance_queue_wait": "fail", "acceptance_upstream_429": "pass", "acceptance_retry_floor": "pass",
    }
    assert (done.status, done.report["advice"]) == (
        1, ["Acceptance failed: halve the cap before you change anything else."],
    )


def test_a_retry_before_its_floor_fails_acceptance(tmp_path: Path) -> None:
    # Told at second 100 to come back after 2 s; the next attempt starts 1 s later.
    events = [call(5 * n, request_id=f"r{n}", queue_age_ms=20) for n in range(400)]
    events += [
        call(100, request_id="early", status=429, retry_after_s=2, latency_ms=10, answer_chars=None, decision="reject"),
        call(101.3, request_id="early", latency_ms=300),
    ]
    write(tmp_path / "run.jsonl", events)
    report = run(tmp_path, "gate", "run.jsonl", "--acceptance", "--format", "json").report
    floor = next(check for check in report["checks"] if check["name"] == "acceptance_retry_floor")
    assert (floor["outcome"], floor["observed"]) == ("fail", 1.0)
    assert "1 of 1 retries" in floor["says"]


def test_a_result_that_goes_to_a_file_leaves_a_word_on_stderr(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [late(n) for n in range(8)])
    done = run(tmp_path, "gate", "night.jsonl", "--min-usable", "60%", "--output", "gate.txt")
    assert (done.status, done.out, done.err) == (1, "", "quietburn: gate fail; see gate.txt.\n")
    assert (tmp_path / "gate.txt").read_text() == FAILED


def test_the_same_ledger_gives_the_same_bytes(tmp_path: Path) -> None:
    events = [call(60 * n, latency_ms=100 + 7 * (n % 30)) if n % 9 else late(60 * n) for n in range(200)]
    write(tmp_path / "night.jsonl", events)
    asked = ("gate", "night.jsonl", "--min-usable", "90%", "--format", "json")
    first = run(tmp_path, *asked)
    assert first.report["usable_interval"]["blocks"] >= 30
    assert first.out == run(tmp_path, *asked).out


def test_a_comparison_that_is_noise_says_so_and_ends_well(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [call(0), *(late(n) for n in range(1, 32))])
    write(tmp_path / "b.jsonl", [call(n) if n < 6 else late(n) for n in range(32)])
    done = run(tmp_path, "compare", "a.jsonl", "b.jsonl")
    assert (done.status, done.err) == (0, "")
    assert (
        "    usable rate: 3.1 % to 18.8 % (n 32 and 32)\n"
        "        not a measurement: +15.6 points against a noise of ±16.0 points; "
    ) in done.out
    report = run(tmp_path, "compare", "a.jsonl", "b.jsonl", "--format", "json").report
    usable = next(difference for difference in report["differences"] if difference["name"] == "usable_rate")
    assert usable["verdict"] == "noise"
    assert usable["interval95"] == pytest.approx([-0.0039, 0.3238], abs=5e-5)


def test_latencies_that_differ_by_less_than_their_noise_are_no_measurement(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [call(n, latency_ms=100 + (37 * n) % 61) for n in range(60)])
    write(tmp_path / "b.jsonl", [call(n, latency_ms=101 + (41 * n) % 61) for n in range(60)])
    report = run(tmp_path, "compare", "a.jsonl", "b.jsonl", "--format", "json").report
    p50 = next(difference for difference in report["differences"] if difference["name"] == "latency_p50_ms")
    assert p50["verdict"] == "noise"
    assert p50["says"].startswith("not a measurement: ")
    assert p50["says"].endswith(f"against a noise of ±{p50['noise']:.2f} ms")
    assert json.dumps(p50)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.jsonl", "gone.jsonl"], "gone.jsonl"),
        (["a.jsonl", "b.jsonl", "--paired"], "--paired: the ledgers share no request_id"),
        (["-", "-"], "only one of the two ledgers can be standard input"),
    ],
)
def test_a_comparison_that_cannot_be_made_is_one_line_and_status_2(tmp_path: Path, arguments: list[str], words: str) -> None:
    write(tmp_path / "a.jsonl", [call(0, request_id="a")])
    write(tmp_path / "b.jsonl", [call(0, request_id="b")])
    done = run(tmp_path, "compare", *arguments)
    assert (done.status, done.out) == (2, "")
    assert words in done.err
    assert is_one_line(done.err)


def test_a_comparison_of_a_broken_ledger_is_status_3(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [call(n) for n in range(8)])
    (tmp_path / "b.jsonl").write_bytes(jsonl([call(n) for n in range(8)]) + b"{broken\n" * 2)
    done = run(tmp_path, "compare", "a.jsonl", "b.jsonl")
    assert done.status == 3
    assert done.err == (
        "quietburn: undecided: 2 of 10 lines of b.jsonl were refused, more than --max-quarantined allows (5%).\n"
    )
