"""A value that was written and can't be read is never taken for one that says nothing bad."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0

from quietburn.analysis.run import Request, analyze
from quietburn.report.model import Report

CALL: dict[str, Any] = {"path": "/v1/chat/completions", "status": 200, "latency_ms": 400, "deadline_ms": 2000}


def report_on(folder: Path, *lines: dict[str, Any]) -> Report:
    path = folder / "ledger.jsonl"
    path.write_text("".join(json.dumps(CALL | line) + "\n" for line in lines))
    return analyze([str(path)], Request(rules=()))


def verdicts(report: Report) -> dict[str, int]:
    return {name: count for name, count in report.rates.verdicts.items() if count}


@pytest.mark.parametrize(
    "spoilt",
    [
        {"request_id": {}}, {"request_id": "\x00"}, {"client_closed": "perhaps"}, {"traffic": []}, {"path": {"a": 1}},
        {"deadline_ms": "soon"}, {"attempt": "second"}, {"stream_complete": {}}, {"content_type": []}, {"answer": {}},
    ],
    ids=str,
)
def test_an_answer_with_an_unreadable_value_that_its_verdict_rests_on_cannot_be_told(
    spoilt: dict[str, Any], tmp_path: Path
) -> None:
    report = report_on(tmp_path, {"ts": T0 + 1, "request_id": "a"}, {"ts": T0 + 2, "request_id": "b"} | spoilt)
    assert verdicts(report) == {"usable": 1, "unknown": 1}
    assert report.ledger.invalid_values >= 1


@pytest.mark.parametrize(
    "spoilt", [{"queue_depth": {}}, {"finish_reason": {}}, {"prompt_tokens": "many"}, {"client": []}], ids=str
)
def test_other_unreadable_values_cost_no_more_than_themselves(spoilt: dict[str, Any], tmp_path: Path) -> None:
    assert verdicts(report_on(tmp_path, {"ts": T0 + 1, "request_id": "a"} | spoilt)) == {"usable": 1}


def test_a_failure_stays_one_whatever_else_on_its_line_cannot_be_read(tmp_path: Path) -> None:
    assert verdicts(report_on(tmp_path, {"ts": T0 + 1, "request_id": {}, "status": 500})) == {"failed": 1}


def test_ids_that_cannot_be_read_make_no_request_of_several_lines(tmp_path: Path) -> None:
    report = report_on(tmp_path, *({"ts": T0 + n, "request_id": "\x00", "status": 500} for n in range(4)))
    assert (report.rates.requests, report.ledger.duplicates) == (4, 0)


def test_a_request_of_which_a_line_was_refused_for_its_time_cannot_be_told(tmp_path: Path) -> None:
    # The second try ended 1.9 s after its own start; when the first one began nobody knows any more.
    first, second = {"ts": {}, "request_id": "a", "status": 503}, {"ts": T0 + 9, "request_id": "a", "latency_ms": 1900}
    report = report_on(tmp_path, first, second, {"ts": T0 + 9, "request_id": "b"})
    assert (report.ledger.quarantined, verdicts(report)) == (1, {"usable": 1, "unknown": 1})


def test_ids_that_nobody_logs_are_no_reason_for_doubt(tmp_path: Path) -> None:
    assert verdicts(report_on(tmp_path, {"ts": T0 + 1}, {"ts": T0 + 2, "request_id": "-"})) == {"usable": 2}
