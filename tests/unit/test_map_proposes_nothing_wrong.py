"""`quietburn map`: what looks plausible and is wrong is never active in a proposal."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, jsonl
from typer.testing import CliRunner

from quietburn.cli.main import app
from quietburn.dialects.mapping import Mapping, shipped_mappings, with_unsettled
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.engine.settings import DeadlineDefault, Settings
from quietburn.records.inputs import LedgerFile

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "dialects"
SHIPPED = {mapping.dialect.name: mapping for mapping in shipped_mappings()}
BAD = {"failed", "refused", "invalid", "abandoned", "late", "empty", "truncated"}
RENAMED: dict[str, Callable[[str], str]] = {
    "before": lambda key: f"x_{key}", "behind": lambda key: f"{key}_1", "as words": lambda key: f"{key}Value",
}  # fmt: skip


def proposal(path: Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["map", str(path)])
    return done.exit_code, done.output


def proposed(folder: Path, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the columns of a proposal; `route` left out, which a ledger without one is given."""
    path = folder / "own.jsonl"
    path.write_bytes(jsonl(lines))
    status, text = proposal(path)
    assert status == 0, text
    return {name: source for name, source in tomllib.loads(text)["columns"].items() if name != "route"}


def own(number: int, **others: Any) -> dict[str, Any]:
    """Return a line of no dialect: its usual names are missing."""
    return {"when": T0 + number + 0.25, "outcome": {"http_status": 503 if number % 7 == 3 else 200}} | others


# Each key looks like a column and is none.
@pytest.mark.parametrize(
    ("column", "key", "value"),
    [
        ("error", "error", lambda number: "none" if number % 7 != 3 else "timeout"),
        ("error", "error_kind", lambda number: "E1"),  # noqa: ARG005
        ("error", "error_kind", lambda number: "E1" if number % 7 != 3 else None),
        ("completion_tokens", "output_tokens_cost", lambda number: number % 5),
        ("completion_tokens", "output_tokens_per_second", lambda number: 10 + number % 5),
        ("completion_tokens", "completion_tokens_x", lambda number: 10.5 + number % 5),
        ("prompt_tokens", "max_input_tokens", lambda number: 4096 + number % 2),
        ("actual_tokens", "my_total_tokens", lambda number: 100 * number),
        ("cached_tokens", "non_cached_tokens", lambda number: 50 + number % 3),
        ("latency_ms", "my_latency", lambda number: 0.4 + number % 3),
        ("deadline_ms", "read_timeout", lambda number: 5 + number % 2),
        ("started_at", "start_of_month", lambda number: T0 - 20 * 86_400 + number),
        ("status", "response_code_x", lambda number: number % 3),
        ("model", None, lambda number: {"pool": {"model": f"m{number % 2}"}}),
        ("finish_reason", "stop_reason_text", lambda number: f"because {number % 3}"),
    ],
)  # fmt: skip
def test_a_name_alone_is_no_evidence(column: str, key: str | None, value: Callable[[int], Any], tmp_path: Path) -> None:
    lines = [own(number, **({key: value(number)} if key else value(number))) for number in range(40)]
    columns = proposed(tmp_path, lines)
    assert column == "status" or column not in columns
    assert columns["status"] == {"from": "/outcome/http_status"}


@pytest.mark.parametrize(
    ("column", "source", "lines"),
    [
        ("error", {"from": "error_kind"}, {"error_kind": lambda number: "timeout" if number % 7 == 3 else None}),
        ("completion_tokens", {"from": "my_output_tokens"}, {"my_output_tokens": lambda number: 10 + number % 5}),
        ("latency_ms", {"from": "my_latency_s", "unit": "s"}, {"my_latency_s": lambda number: 0.4 + number % 3}),
        ("latency_ms", {"from": "my_latency"}, {"my_latency": lambda number: f"{400 + number}ms"}),
        # A sibling in a known unit tells that the latency is in seconds.
        ("latency_ms", {"from": "my_latency", "unit": "s"},
         {"my_latency": lambda number: 0.5 + number % 3, "upstream_latency_ms": lambda number: 500 + 1000 * (number % 3)}),
    ],
)  # fmt: skip
def test_what_the_sample_bears_out_is_proposed(
    column: str, source: dict[str, str], lines: dict[str, Callable[[int], Any]], tmp_path: Path
) -> None:
    made = [own(number, **{key: value(number) for key, value in lines.items()}) for number in range(40)]
    assert proposed(tmp_path, made)[column] == source


def test_a_route_that_makes_nothing_generate_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_bytes(jsonl(own(number, request_path="/jobs/nightly") for number in range(40)))
    status, text = proposal(path)
    assert (status, "path" in tomllib.loads(text)["columns"]) == (0, False)
    assert '# path = { from = "request_path"' in text


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"date": "20260901-100000", "completed": 100, "mean_ttft_ms": 40.5, "p99_ttft_ms": 90.5, "median_itl_ms": 9.5}],
         "is a summary with one row per run (mean_ttft_ms, p99_ttft_ms, median_itl_ms, …)"),
        ([{"when": T0 + 15 * n, "requests_total": 10 * n, "tokens_total": 900 * n} for n in range(20)],
         "contains counters, which only grow (requests_total, tokens_total)"),
    ],
)  # fmt: skip
def test_what_is_no_ledger_is_named_and_refused(lines: list[dict[str, Any]], said: str, tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_bytes(jsonl(lines))
    done = CliRunner().invoke(app, ["map", str(path)])
    assert done.exit_code != 0
    assert said in str(done.exception)


def renamed(value: Any, path: tuple[str, ...], keys: set[tuple[str, ...]], rename: Callable[[str], str]) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        rename(key) if (*path, key) in keys else key: renamed(part, (*path, key), keys, rename) for key, part in value.items()
    }


def outcomes(path: Path, known: tuple[Mapping, ...], forced: Mapping | None = None) -> dict[tuple[int, int | None], Any]:
    """Return by line and item what a call was, with a deadline that nobody misses."""
    with DuckEngine(zone=None, known=known, forced=forced, threads=1) as engine:
        engine.load([LedgerFile("ledger", path)])
        engine.prepare(Settings(deadlines=(DeadlineDefault(1e8, "test"),)))
        rows = engine.connection.execute("SELECT line, item, attempt_verdict, is_2xx FROM all_events WHERE is_attempt").fetchall()
        return {(line, item): (verdict, answered) for line, item, verdict, answered in rows}


def is_good(verdict: str, answered: bool) -> bool:  # noqa: FBT001
    return answered and verdict not in BAD


@pytest.mark.parametrize("how", RENAMED)
@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir()))
def test_no_proposal_for_a_dialect_of_other_names_turns_an_outcome_round(name: str, how: str, tmp_path: Path) -> None:
    mapping, original = SHIPPED[name], FIXTURES / name / "ledger.jsonl"
    named = mapping.recognise
    keys = {tuple(key[1:].split("/")) if key.startswith("/") else (key,) for key in (*named.all, *named.any, *named.values)}
    path = tmp_path / "own.jsonl"
    path.write_bytes(b"".join(
        json.dumps(renamed(json.loads(line), (), keys, RENAMED[how])).encode() + b"\n"
        for line in original.read_bytes().splitlines() if line.startswith(b"{") and line.endswith(b"}")
    ))  # fmt: skip
    status, text = proposal(path)
    if status != 0 or not tomllib.loads(text):
        return  # nothing is proposed
    own_mapping = with_unsettled(Mapping.model_validate(tomllib.loads(text)))
    true, read = outcomes(original, tuple(SHIPPED.values())), outcomes(path, (own_mapping,), own_mapping)
    for place in true.keys() & read.keys():
        verdict, answered = read[place]
        if is_good(*true[place]):
            assert verdict not in BAD, (place, true[place], read[place])
        elif true[place][0] in BAD:
            assert verdict != "usable", (place, true[place], read[place])
            assert not answered or true[place][1], (place, true[place], read[place])
