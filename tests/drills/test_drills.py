"""The labs bring about what the seeds say, and the pages that tell of it are true."""

import ast
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from fixtures.drills import numbers
from fixtures.drills.admission import drill as admission
from fixtures.drills.admission.proxy import decide
from fixtures.drills.labs import BY_NAME, DEFAULT_SEED, LABS, Lab
from fixtures.drills.ledger import read
from fixtures.drills.numbers import Number
from fixtures.drills.outcome import Measure, Outcome

from quietburn.analysis.run import Request, analyze

ROOT = Path(__file__).parents[2]
DRILLS = ROOT / "fixtures" / "drills"


def _measures(outcomes: dict[str, Outcome]) -> dict[str, dict[str, Measure]]:
    return {name: outcome.measures for name, outcome in outcomes.items()}


@pytest.mark.parametrize("number", numbers.numbers(), ids=lambda number: f"{number.seed}: {number.says}")
def test_every_number_of_the_seeds_holds(number: Number, outcomes: dict[str, Outcome]) -> None:
    value = number.value(_measures(outcomes))
    assert number.holds(value), f"{value} is not {number.expected()}"


@pytest.mark.parametrize("number", numbers.numbers(), ids=lambda number: f"{number.seed}: {number.says}")
def test_every_number_is_held_in_one_way_and_can_fail(number: Number) -> None:
    ways = [way for way in (number.measure, number.rule, number.constant, number.not_here) if way is not None]
    assert len(ways) == 1
    assert (number.lab in BY_NAME) == (number.measure is not None)
    bounds = [bound for bound in (number.exactly, number.least, number.most) if bound is not None]
    assert bool(bounds) == (number.not_here is None)
    assert number.not_here is not None or not number.holds(None)


def test_the_table_of_numbers_is_current(outcomes: dict[str, Outcome]) -> None:
    text = numbers.TABLE.read_text(encoding="utf-8")
    assert text == numbers.table(_measures(outcomes), DEFAULT_SEED), "run python -m fixtures.drills table"


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_every_ledger_is_read_whole_by_the_dialect_of_its_seed(lab: Lab, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[lab.name]
    for path in outcome.ledgers:
        dialect = {"admission": "admission", "adapter": "adapter", "sweep": "sweep"}.get(path.stem.partition("-")[0], "gateway")
        assert outcome.measures[f"read.{path.stem}.dialect"] == dialect
        assert outcome.measures[f"read.{path.stem}.lines"] == len(read(path)) > 0
        assert outcome.measures[f"read.{path.stem}.refused_lines"] == 0


def test_no_request_of_one_run_is_taken_for_one_of_another(outcomes: dict[str, Outcome]) -> None:
    seen: set[str] = set()
    for outcome in outcomes.values():
        for path in outcome.ledgers:
            own = {row["request_id"] for row in read(path) if "request_id" in row}
            if not path.stem.endswith("-attempts"):  # the same requests, seen from the backends' side
                assert not own & seen
                seen |= own
    assert len(seen) > 3000


def test_the_same_seed_writes_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    written = []
    for name, seed in (("one", 5), ("two", 5), ("three", 6)):
        (tmp_path / name).mkdir()
        written.append([path.read_bytes() for path in admission.run(tmp_path / name, seed).ledgers])
    assert written[0] == written[1]
    assert written[0] != written[2]


def test_the_hung_worker_is_found_with_the_cpu_that_was_recorded_beside_its_ledger(outcomes: dict[str, Outcome]) -> None:
    folder = outcomes["adapter"].folder
    ledger = str(folder / "adapter-hung.jsonl")
    with_cpu = analyze([ledger], Request(cpu=folder / "adapter-hung-cpu.csv"))
    without = analyze([ledger])
    assert "stuck-worker" in {finding.rule for finding in with_cpu.findings}
    assert "saturation" not in {finding.rule for finding in with_cpu.findings}
    assert "cpu-without-traffic" in {entry.rule for entry in without.not_evaluated if entry.missing == ["cpu_pct"]}


def test_the_curl_without_a_header_looks_like_a_user_whose_calls_are_a_clock(outcomes: dict[str, Outcome]) -> None:
    rows = read(outcomes["adapter"].folder / "adapter-liveness.jsonl")
    assert {row["reason"] for row in rows} == {"user"}
    gaps = {round(later["ts"] - row["ts"], 3) for row, later in pairwise(rows)}
    assert gaps == {10.0}
    assert "read.adapter-liveness.probe-spend-share" not in outcomes["adapter"].measures


def test_the_failover_that_is_never_called_leaves_no_attempt_at_the_healthy_backend(outcomes: dict[str, Outcome]) -> None:
    folder = outcomes["gateway"].folder
    counted = read(folder / "gateway-attempt-counted-attempts.jsonl")
    owned = read(folder / "gateway-deadline-owned-attempts.jsonl")
    assert [row["backend"] for row in counted] == ["slow"] * 8
    assert [row["backend"] for row in owned if row.get("error") == "timeout"] == ["slow"] * 8
    assert [row["backend"] for row in owned if row.get("status") == 200] == ["healthy"] * 8
    assert {row["backends_available"] for row in read(folder / "gateway-attempt-counted.jsonl")} == {1}


def test_no_retry_of_the_herd_comes_before_the_server_allowed_it(outcomes: dict[str, Outcome]) -> None:
    rows = read(outcomes["envelope"].folder / "herd.jsonl")
    last: dict[str, dict[str, float]] = {}
    retries = 0
    for row in sorted(rows, key=lambda row: (row["request_id"], row["attempt"])):
        before = last.get(row["request_id"])
        if before is not None:
            retries += 1
            assert row["started_at"] >= before["ts"] + before["retry_after_s"] - 0.002
        last[row["request_id"]] = row
    assert retries > 10


@pytest.mark.parametrize(
    ("tokens", "slack_ms", "noisy", "decided"),
    [
        (1501, 0, True, ("reject", "prompt_tokens")),
        (1500, 1499, True, ("reject", "deadline_slack")),
        (1500, 1500, True, ("reject", "cache_busting_clock")),
        (1500, 1500, False, ("allow", "stable_prefix")),
    ],
)
def test_the_proxy_asks_in_the_order_of_its_policy(tokens: int, slack_ms: int, noisy: bool, decided: tuple[str, str]) -> None:  # noqa: FBT001
    assert decide(tokens, slack_ms, noisy=noisy) == decided


def test_a_replay_has_one_key_for_both_attempts_or_none_at_all(outcomes: dict[str, Outcome]) -> None:
    folder = outcomes["envelope"].folder
    keyed = read(folder / "replay-keyed.jsonl")
    assert [(row["attempt"], row.get("error"), row.get("status")) for row in keyed] == [(1, "timeout", None), (2, None, 200)] * 5
    assert len({row["idempotency_key"] for row in keyed}) == 5
    assert not any("idempotency_key" in row for row in read(folder / "replay-keyless.jsonl"))


def test_the_command_lists_the_labs_and_refuses_one_that_there_is_not() -> None:
    listed = subprocess.run([sys.executable, "-m", "fixtures.drills"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["admission", "adapter", "envelope", "gateway"]
    refused = subprocess.run(
        [sys.executable, "-m", "fixtures.drills", "run", "gatway"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "no lab 'gatway'; there are: admission, adapter, envelope, gateway" in refused.stderr


def test_nothing_listens_or_calls_beyond_loopback() -> None:
    found = set()
    for path in DRILLS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= set(re.findall(r"\b\d+\.\d+\.\d+\.\d+\b|https?://\S+|localhost", node.value))
    assert found == {"127.0.0.1"}


def _limits() -> list[tuple[str, str, str]]:
    rows = [line.split(" | ") for line in (ROOT / "docs" / "limits.md").read_text(encoding="utf-8").splitlines() if "](" in line]
    return [(row[0].strip("| "), row[2], row[3].rstrip(" |").strip('"')) for row in rows]


def test_every_seed_has_its_limits_listed() -> None:
    limits = _limits()
    assert len(limits) >= 20
    assert {seed for seed, _, _ in limits} == {"000", "001", "003", "004"}


@pytest.mark.parametrize(("where", "words"), [row[1:] for row in _limits()], ids=lambda text: text[:60])
def test_every_limit_is_said_where_the_page_says_so(where: str, words: str) -> None:
    link = re.fullmatch(r"\[(.+)\]\((.+)\)", where)
    assert link is not None
    path = (ROOT / "docs" / link[2]).resolve()
    assert path == ROOT / link[1]
    assert words in " ".join(path.read_text(encoding="utf-8").split())
