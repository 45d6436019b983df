"""Dialects that pack several events into a line: a refused event of a used line is a bad item, never a refused line."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.program import run

from quietburn.analysis.run import Request, analyze
from quietburn.report.model import Report

GOOD_NS, BAD_NS = 1_767_000_021_000_000_000, 99_999  # 2025, and a moment after 1970


def span(number: int, kind: str) -> dict[str, Any]:
    """Return a span: a `good` request, a `bad` one without a usable time, or one of an `agent`, which is none."""
    end = BAD_NS if kind == "bad" else GOOD_NS
    operation = "invoke_agent" if kind == "agent" else "chat"
    attributes = {"gen_ai.operation.name": operation, "gen_ai.request.model": "m"}
    return {
        "traceId": f"{number:032x}", "spanId": f"{number:016x}",
        "startTimeUnixNano": str(end), "endTimeUnixNano": str(end + number),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }  # fmt: skip


def packed(lines: list[list[str]]) -> str:
    """Return a ledger of spans, line by line as their kinds say."""
    numbers = iter(range(1, 10_000))
    spans = [[span(next(numbers), kind) for kind in kinds] for kinds in lines]
    return "".join(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": line}]}]}) + "\n" for line in spans)


def report_of(path: Path, *, db: Path | None = None) -> Report:
    return analyze([str(path)], Request(store=db))


def test_a_bad_item_of_a_used_line_is_named_and_no_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spans.jsonl").write_text(packed([["good", "agent", "bad"]]))
    done = run(tmp_path, "analyze", "spans.jsonl", "--format", "json")
    assert (done.status, done.err) == (0, "")
    ledger = done.report["ledger"]
    told = [ledger[name] for name in ("lines", "used", "events", "quarantined", "bad_items")]
    assert told == [1, 1, 1, 0, 1]
    assert done.report["quarantine"] == []
    (item,) = done.report["bad_items"]
    assert (item["file"], item["line"], item["item"]) == ("spans.jsonl", 1, 3)
    assert (item["code"], item["reason"]) == ("time_out_of_range", "a time outside 2015 to 2100")


def test_the_limit_of_refused_lines_counts_lines(tmp_path: Path) -> None:
    lines = [["good", "bad", "bad"]] * 19 + [["bad", "bad"]]
    (tmp_path / "spans.jsonl").write_text(packed(lines))
    # 1 of 20 lines is 5 %, the most that is let pass; the 38 bad items of the others are no lines.
    done = run(tmp_path, "analyze", "spans.jsonl", "--format", "json", "--quarantine", "refused.jsonl")
    assert done.status == 0
    assert done.report["ledger"]["bad_items"] == 38
    (refused,) = (tmp_path / "refused.jsonl").read_text().splitlines()
    assert json.loads(refused)["line"] == 20
    assert run(tmp_path, "analyze", "spans.jsonl", "--max-quarantined", "4%").status == 3


kinds = st.lists(st.sampled_from(["good", "bad", "agent"]), min_size=1, max_size=4)


@settings(max_examples=12, deadline=None)
@given(lines=st.lists(kinds, min_size=1, max_size=6), in_store=st.booleans())
def test_every_line_and_every_item_is_counted_once(tmp_path_factory: Any, *, lines: list[list[str]], in_store: bool) -> None:
    lines = [["good"], *lines]  # a ledger without any request is refused whole
    folder = tmp_path_factory.mktemp("spans")
    path = folder / "spans.jsonl"
    path.write_text(packed(lines))
    report = report_of(path, db=folder / "store.db" if in_store else None)
    if in_store:  # loaded again, nothing is counted twice
        report = report_of(path, db=folder / "store.db")
    ledger = report.ledger
    used = [line for line in lines if "good" in line]
    refused = [number for number, line in enumerate(lines, 1) if "good" not in line and "bad" in line]
    assert (ledger.used, ledger.quarantined) == (len(used), len(refused))
    assert ledger.not_a_request == len(lines) - len(used) - len(refused)
    assert ledger.events == sum(line.count("good") for line in lines)
    assert ledger.bad_items == sum(line.count("bad") for line in used)
    assert [line.line for line in report.quarantine] == refused
    bad = [
        (number, item)
        for number, line in enumerate(lines, 1) if line in used
        for item, kind in enumerate(line, 1) if kind == "bad"
    ]  # fmt: skip
    assert [(item.line, item.item) for item in report.bad_items] == bad


def test_a_line_written_in_parts_with_a_bad_item_is_used_whole(tmp_path: Path) -> None:
    line = packed([["good", "bad"], ["bad"], ["good"]]).splitlines()
    stamp = "2025-12-29T09:20:21.000000000Z stdout"
    parts = [part for text in line[:2] for part in (f"{stamp} P {text[:200]}", f"{stamp} F {text[200:]}")]
    path = tmp_path / "spans.log"
    path.write_text("\n".join([*parts, f"{stamp} F {line[2]}"]) + "\n")
    report = report_of(path)
    ledger = report.ledger
    assert (ledger.lines, ledger.used, ledger.quarantined, ledger.bad_items) == (5, 3, 2, 1)
    assert [refused.line for refused in report.quarantine] == [3, 4]
