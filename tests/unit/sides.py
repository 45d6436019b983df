"""Ledgers of which only the counts matter, for the gate and comparisons."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tests.ledgers import T0, jsonl

from quietburn.analysis.run import Request, analyze, analyzing
from quietburn.engine.verdict_columns import CRITERIA
from quietburn.evaluate.blocks import AttemptCounts, RequestCounts
from quietburn.evaluate.rates import VERDICTS
from quietburn.judge.compare import Common, Side, common_criteria, compare, take_side
from quietburn.report.model import CriterionReport, Report
from quietburn.report.verdict import ComparisonReport, DifferenceReport

ALL = Common(frozenset(CRITERIA), frozenset())


@cache
def plain_report() -> Report:
    """Return the report on one usable request, to be told other counts."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        path.write_bytes(jsonl([event(0)]))
        return analyze([str(path)], Request(rules=()))


def event(number: int, **fields: Any) -> dict[str, Any]:
    """Return an answer that is usable by all three criteria."""
    usual = {
        "ts": T0 + number, "request_id": f"r{number}", "route": "complete", "status": 200, "latency_ms": 400,
        "deadline_ms": 2000, "answer_chars": 20, "finish_reason": "stop", "stream": True,
    }
    return usual | fields


def side(*, unmeasured: tuple[str, ...] = (), blocks: dict[str, list[int]] | None = None, **counts: int) -> Side:
    """Return a side with so many requests of each verdict, or so many by block."""
    by_block = {name: [counts.get(name, 0)] for name in VERDICTS} if blocks is None else blocks
    length = len(next(iter(by_block.values())))
    verdicts = {name: np.array(by_block.get(name, [0] * length), dtype=np.int64) for name in VERDICTS}
    totals = {name: int(array.sum()) for name, array in verdicts.items()}
    requests = sum(totals.values())
    report = plain_report()
    criteria = {
        name: CriterionReport(measured=name not in unmeasured, coverage=0.0 if name in unmeasured else 1.0) for name in CRITERIA
    }
    rates = report.rates.model_copy(
        update={"verdicts": totals, "requests": requests, "usable": totals["usable"], "criteria": criteria}
    )
    none = np.array([0])
    attempts = AttemptCounts(np.array([requests]), np.array([requests - totals["invalid"]]), none, at=none, timed=True)
    return Side(
        report=report.model_copy(update={"rates": rates}), deadline="2,000 ms, from the ledger",
        requests=RequestCounts(verdicts, np.arange(length), timed=True), attempts=attempts,
        models=frozenset(),
    )


def compared(
    folder: Path, before: Iterable[dict[str, Any]], after: Iterable[dict[str, Any]], *, paired: bool = False
) -> ComparisonReport:
    """Write two ledgers and compare them."""
    paths = (folder / "before.jsonl", folder / "after.jsonl")
    for path, events in zip(paths, (before, after), strict=True):
        path.write_bytes(jsonl(events))
    request = Request(rules=())
    with analyzing([str(paths[0])], request) as first, analyzing([str(paths[1])], request) as second:
        common = common_criteria(first.report, second.report)
        sides = [
            take_side(found.report, found.engine, found.settings, common.asked, with_rows=True, with_ids=paired)
            for found in (first, second)
        ]
        return compare(sides[0], sides[1], common, paired=paired)


def named(report: ComparisonReport, name: str) -> DifferenceReport:
    """Return one difference of a comparison."""
    return next(difference for difference in report.differences if difference.name == name)
