"""A ledger whose records are not lines: arrays, pretty-printed objects, several objects on one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, Reading, conserved, read

from quietburn.analysis.run import Request, analyze
from quietburn.errors import InputError
from quietburn.records import lines
from quietburn.records.framing import documents


def event(number: int) -> dict[str, Any]:
    return {"ts": T0 + number + 0.25, "request_id": f"r{number}", "status": 200, "note": 'a "quoted" } ] and \\ text'}


EVENTS = [event(number) for number in range(8)]
DOCUMENTS = {
    "an array on one line": json.dumps(EVENTS),
    "an array, an element a line": "[\n" + ",\n".join(map(json.dumps, EVENTS)) + "\n]\n",
    "a pretty-printed array": json.dumps(EVENTS, indent=2),
    "an array printed without indents": json.dumps(EVENTS, indent=0),
    "pretty-printed objects": "\n".join(json.dumps(one, indent=4) for one in EVENTS),
    "all objects on one line": "".join(map(json.dumps, EVENTS)) + "\n",
    "two objects a line": "".join(json.dumps(one) + " \n"[number % 2] for number, one in enumerate(EVENTS)),
    "an array a line": "\n".join(json.dumps(EVENTS[at : at + 2]) for at in range(0, 8, 2)) + "\n",
    "an empty array before": "[]\n" + json.dumps(EVENTS),
    "carriage returns and a byte order mark": "\ufeff" + json.dumps(EVENTS, indent=1).replace("\n", "\r\n"),
}


def reading(folder: Path, text: str) -> Reading:
    path = folder / "ledger.json"
    path.write_bytes(text.encode())
    return read(path)


@pytest.mark.parametrize("chunk", [7, 1 << 20], ids=["in tiny chunks", "as it comes"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_record_of_a_document_is_an_event(name: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BLOCK_BYTES", chunk)
    found = reading(tmp_path, DOCUMENTS[name]).counts
    assert (found.lines, found.events, found.quarantined) == (8, 8, 0)
    assert found.physical_lines == len(DOCUMENTS[name].splitlines())
    assert found.unknown.counts == {"note": 8}
    assert conserved(found)


def test_evidence_stands_on_the_line_on_which_a_record_starts(tmp_path: Path) -> None:
    found = reading(tmp_path, json.dumps(EVENTS, indent=2))
    # "[" is line 1; an object takes six lines: its braces and four members.
    assert [(line, event["request_id"]) for line, event in found.events.items()] == [(2 + 6 * n, f"r{n}") for n in range(8)]


def test_a_broken_record_costs_itself_and_is_named_with_its_place(tmp_path: Path) -> None:
    text = json.dumps(EVENTS, indent=2).replace('"r3",', '"r3"')
    found = reading(tmp_path, text)
    start = text.index(f'{{\n    "ts": {EVENTS[3]["ts"]}')
    length = text.index("}", text.index("and", start) + 10) + 1 - start
    assert (found.counts.lines, found.counts.events, found.counts.quarantined) == (8, 7, 1)
    assert found.quarantine == [(20, start, length, "not_json")]


def test_a_record_without_its_end_costs_itself_where_the_next_begins_as_it_did(tmp_path: Path) -> None:
    lines_ = json.dumps(EVENTS, indent=2).split("\n")
    assert lines_[18] == "  },"  # the end of the third
    found = reading(tmp_path, "\n".join([*lines_[:18], *lines_[19:]]))
    assert (found.counts.events, [(line, code) for line, _, _, code in found.quarantine]) == (7, [(14, "cut_short")])


def test_a_bracket_that_closes_what_it_did_not_open_costs_one_record(tmp_path: Path) -> None:
    text = json.dumps(EVENTS, separators=(",", ":")).replace('"r3",', '"r3","x":[')
    broken = text.replace('"request_id":"r5"', '"request_id":["r5"')
    found = reading(tmp_path, broken)
    assert found.counts.events == 6
    assert [code for _, _, _, code in found.quarantine] == ["cut_short", "cut_short"]


def test_a_document_that_is_cut_loses_its_last_record_and_says_so(tmp_path: Path) -> None:
    found = reading(tmp_path, json.dumps(EVENTS, indent=2)[:-40])
    assert found.counts.incomplete_last_line
    assert (found.counts.events, [code for _, _, _, code in found.quarantine]) == (7, ["incomplete_last_line"])


def test_text_between_records_is_refused_and_counted(tmp_path: Path) -> None:
    found = reading(tmp_path, json.dumps([*EVENTS[:4], 17, *EVENTS[4:], *map(event, range(8, 20))], indent=2))
    assert (found.counts.lines, found.counts.events) == (21, 20)
    assert [code for _, _, _, code in found.quarantine] == ["not_json"]


def test_a_line_with_two_objects_among_lines_of_one_is_still_refused(tmp_path: Path) -> None:
    texts = [json.dumps(one) for one in EVENTS]
    found = reading(tmp_path, "\n".join([*texts[:6], texts[6] + texts[7]]) + "\n")
    assert (found.counts.events, found.quarantine[0][3]) == (6, "trailing_text")


def test_a_record_over_the_limit_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_LINE_BYTES", 2000)
    monkeypatch.setattr(documents, "BLOCK_BYTES", 500)
    long = event(99) | {"nested": [{"ts": T0, "status": 500}] * 200}
    found = reading(tmp_path, json.dumps([*EVENTS, long, event(8)]))
    assert (found.counts.events, [code for _, _, _, code in found.quarantine]) == (9, ["too_long"])


def test_a_folder_is_read_without_the_files_that_are_no_ledgers(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_text("".join(json.dumps(one) + "\n" for one in EVENTS))
    (tmp_path / "server.log").write_text("started\nlistening\n")
    report = analyze([str(tmp_path)], Request())
    assert report.ledger.events == 8
    assert any("server.log" in notice and "JSON object" in notice for notice in report.notices)
    (tmp_path / "ledger.jsonl").unlink()
    with pytest.raises(InputError, match=r"server\.log"):
        analyze([str(tmp_path)], Request())


def cri(tag: str, text: str) -> str:
    return f"2026-09-08T02:14:00.5Z stdout {tag} {text}\n"


def test_a_record_that_a_runtime_split_over_two_rotated_files_is_one_event(tmp_path: Path) -> None:
    texts = [json.dumps(one) for one in EVENTS]
    older = "".join(cri("F", text) for text in texts[:4]) + cri("P", texts[4][:20])
    newer = cri("P", texts[4][20:40]) + cri("F", texts[4][40:]) + "".join(cri("F", text) for text in texts[5:])
    (tmp_path / "pod.log.1").write_text(older)
    (tmp_path / "pod.log").write_text(newer)
    report = analyze([str(tmp_path)], Request())
    ledger = report.ledger
    assert (ledger.lines, ledger.used, ledger.events, ledger.quarantined) == (10, 10, 8, 0)


def test_lines_are_what_tests_of_documents_are_told_apart_from(tmp_path: Path) -> None:
    found = reading(tmp_path, "".join(json.dumps(one) + "\n" for one in EVENTS)).counts
    assert (found.wrapper, found.lines, found.physical_lines) == ("", 8, 8)
    assert lines.BLOCK_BYTES > 1 << 20
