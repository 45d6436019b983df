"""Tokens by what a line's total and its parts say together; every expected number is worked out by hand."""

from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import jsonl, report_of
from tests.unit.test_answers import answer, failure

from quietburn.analysis.run import Request
from quietburn.dialects.mapping import shipped_mappings
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.engine.settings import Settings
from quietburn.records.inputs import LedgerFile

Line = dict[str, Any]
PARTS: Line = {"prompt_tokens": 100, "completion_tokens": 50}
ZEROS: Line = {"prompt_tokens": 0, "completion_tokens": 0}
AT_ONCE: Line = {"stream": False, "finish_reason": None, "answer_chars": None}

KNOWN: list[tuple[str, Line, float | None]] = [
    ("parts", answer(**PARTS), 150),
    ("a total that is their sum", answer(**PARTS, actual_tokens=150), 150),
    ("a total alone", answer(actual_tokens=150), 150),
    ("a total beside zeros", answer(**ZEROS, actual_tokens=150), 150),
    ("a total over its only part", answer(prompt_tokens=100, actual_tokens=150), 150),
    ("a total under its only part", answer(prompt_tokens=100, actual_tokens=90), None),
    ("a total that has the cached tokens too", answer(**PARTS, cached_tokens=900, actual_tokens=1050), 1050),
    ("a total over its parts", answer(**PARTS, actual_tokens=151), None),
    ("a total under its parts", answer(**PARTS, actual_tokens=149), None),
    ("a total that no cached tokens explain", answer(**PARTS, cached_tokens=10, actual_tokens=200), None),
    ("a total of 0 beside parts", answer(**PARTS, actual_tokens=0), 150),
    ("a prompt alone", answer(prompt_tokens=100), None),
    ("a completion alone", answer(completion_tokens=50), None),
    ("zeros beside an answer", answer(**ZEROS), None),
    ("zeros and a total of 0", answer(**ZEROS, actual_tokens=0), None),
    ("a total of 0 alone", answer(actual_tokens=0), None),
    ("a prompt of 0", answer(prompt_tokens=0, completion_tokens=50), None),
    ("a completion of 0 beside text", answer(prompt_tokens=100, completion_tokens=0), None),
    ("a completion of 0 beside tool calls", answer(prompt_tokens=100, completion_tokens=0, **AT_ONCE | {"tool_calls": 1}), None),
    ("a completion of 0 in a stream", answer(prompt_tokens=100, completion_tokens=0, **AT_ONCE | {"stream": True}), None),
    ("a completion of 0 that hit a limit",
     answer(prompt_tokens=100, completion_tokens=0, **AT_ONCE | {"finish_reason": "length"}), None),
    ("a completion of 0 and nothing else", answer(prompt_tokens=100, completion_tokens=0, **AT_ONCE), 100),
    ("a failure that spent nothing", failure(500, **ZEROS), 0),
]  # fmt: skip


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> list[float | None]:
    """Return the tokens of each row's line."""
    path = tmp_path_factory.mktemp("usage") / "ledger.jsonl"
    path.write_bytes(jsonl([line for _, line, _ in KNOWN]))
    with DuckEngine(known=shipped_mappings(), threads=2) as engine:
        engine.load([LedgerFile("ledger", path)])
        engine.prepare(Settings())
        return [row[0] for row in engine.connection.execute("SELECT tokens FROM events ORDER BY line").fetchall()]


@pytest.mark.parametrize("place", range(len(KNOWN)), ids=[name for name, _, _ in KNOWN])
def test_a_line_took_what_its_total_and_parts_agree_on(place: int, tokens: list[float | None]) -> None:
    assert tokens[place] == KNOWN[place][2]


def test_one_half_of_a_usage_stands_in_a_sum_of_its_own(tmp_path: Path) -> None:
    found = report_of(tmp_path, [answer(prompt_tokens=100), answer(2, 3, completion_tokens=50), answer(4, 5, **PARTS)]).rates
    assert (found.tokens.all, found.tokens.prompt_only, found.tokens.completion_only) == (150, 100, 50)


def test_a_ledger_that_counts_cached_tokens_apart_says_so_once(tmp_path: Path) -> None:
    lines = [answer(n, n + 1, **PARTS, cached_tokens=900, actual_tokens=1050) for n in range(3)]
    report = report_of(tmp_path, lines)
    assert [notice for notice in report.notices if "cached" in notice] == [
        "gateway: the prompt tokens of 3 events exclude cached tokens, but their totals include them; "
        "cached tokens are added to the prompt tokens."
    ]
    assert report.ledger.invalid_values == 0


def test_zeros_beside_answers_are_a_usage_that_is_missing(tmp_path: Path) -> None:
    lines = [answer(n, n + 1, **ZEROS) for n in range(5)] + [answer(n, n + 1, **PARTS) for n in range(10, 15)]
    report = report_of(tmp_path, lines, request=Request(only=("usage-missing",)))
    assert [(f.rule, f.observed["missing"], f.observed["two_xx"]) for f in report.findings] == [("usage-missing", 5, 10)]
