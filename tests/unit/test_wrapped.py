"""A wrapped ledger gives the same events as the plain one, and every physical line is accounted for."""

import json
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from rich.console import Console
from tests.ledgers import T0, WAYS, Reading, conserved, read, reading_way
from tests.unit.test_reading import LINES, OPEN, WHOLE, Trap, clean, written
from tests.wrapping import WRAPS, Wrap, cri, docker, journald, logcli, wrapped

from quietburn.analysis.run import Request, analyze
from quietburn.dialects.mapping import shipped_mappings
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.errors import InputError
from quietburn.ledger.counts import FileCounts
from quietburn.ledger.tables import EVENTS_TABLE
from quietburn.records.inputs import LedgerFile
from quietburn.report.text import render_text

MIB = 1 << 20
Refusal = tuple[int, int, int, str]


def can_carry(trap: Trap, wrap: str) -> bool:
    """Whether a wrapper keeps the bytes of a trap: those that are text only can't hold what is no UTF-8."""
    try:
        trap.text.decode()
    except UnicodeDecodeError:
        return wrap in ("cri", "journald")
    return True


def is_only_text(line: bytes, code: str) -> bool:
    """Whether a line that is refused where it stands bare is what an application says where it is wrapped."""
    return code == "not_json" and not line.lstrip(b"\xef\xbb\xbf\v ").startswith(b"{")


@cache
def read_once(text: bytes, way: str) -> Reading:
    with TemporaryDirectory() as folder, reading_way(way):
        return read(written(Path(folder), text))


def trap_files(wrap: str, way: str) -> tuple[Reading, Reading, list[tuple[Trap, int]], list[bytes]]:
    """Read all traps plain and wrapped; return both with the traps' first lines, and the wrapped lines."""
    lines: list[bytes] = []
    places = []
    for number, trap in enumerate(trap for trap in LINES if can_carry(trap, wrap)):
        lines += [clean(2 * number), clean(2 * number + 1)]
        places.append((trap, len(lines) + 1))
        lines += trap.lines
    physical = [WRAPS[wrap](line) for line in lines]
    plain = read_once(b"\n".join(lines) + b"\n", "as it comes")  # that this is so in every way is told elsewhere
    return plain, read_once(b"\n".join(physical) + b"\n", way), places, physical


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrap", WRAPS)
def test_a_wrapped_line_becomes_what_the_bare_line_becomes(wrap: str, way: str) -> None:
    plain, reading, places, physical = trap_files(wrap, way)
    assert reading.events == plain.events
    assert reading.invalid == plain.invalid
    offsets = [0]
    for line in physical:
        offsets.append(offsets[-1] + len(line) + 1)
    expected: list[Refusal] = []
    texts = 0
    for trap, first in places:
        for number, code in sorted(trap.quarantine.items()):
            if is_only_text(trap.lines[number - 1], code):
                texts += 1
                continue
            place = first + number - 1
            expected.append((place, offsets[place - 1], len(physical[place - 1].rstrip(b"\r")), code))
    assert reading.quarantine == expected
    counts = reading.counts
    assert texts >= 3
    assert counts.other_text == texts
    assert counts.not_a_request == plain.counts.not_a_request + texts
    assert counts.lines == len(physical)
    for name in ("events", "blank", "coerced", "leading_nuls", "invalid_values", "duplicates", "unknown", "dialect"):
        assert getattr(counts, name) == getattr(plain.counts, name), name
    assert counts.joined == 0
    assert conserved(counts)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_byte_order_mark_and_either_line_end_change_nothing(wrap: str, ends: str, tmp_path: Path) -> None:
    lines = [clean(number) for number in range(40)]
    plain = read(written(tmp_path, b"\n".join(lines) + b"\n"))
    text = wrapped(lines, WRAPS[wrap]).replace(b"\n", ends.encode())
    for variant in (text, b"\xef\xbb\xbf" + text, text.rstrip(b"\r\n")):
        reading = read(written(tmp_path, variant))
        assert reading.events == plain.events
        assert (reading.counts.lines, reading.counts.quarantined, reading.counts.leading_nuls) == (40, 0, 0)


def test_detection_says_the_wrapper_and_the_dialect_within(tmp_path: Path) -> None:
    lines = [clean(number) for number in range(3)]
    words = {
        "cri": "its lines are framed by a container runtime (CRI); 3 of 3 sampled lines fit gateway",
        "docker": "its lines are framed by Docker (json-file); 3 of 3 sampled lines fit gateway",
        "journald": "its lines are framed by journald (journalctl -o json); 3 of 3 sampled lines fit gateway",
        "logcli": "its lines are framed by Loki (logcli -o jsonl); 3 of 3 sampled lines fit gateway",
    }
    for name, wrap in WRAPS.items():
        counts = read(written(tmp_path, wrapped(lines, wrap))).counts
        assert (counts.why, counts.wrapper, counts.dialect) == (words[name], name, "gateway")


@pytest.mark.parametrize("members", [
    '"log": "{}\\n", "stream": "stdout", "time": "2026-09-08T02:14:00Z"',
    '"line": "{}", "labels": {}, "timestamp": "2026-09-08T02:14:00Z"',
    '"MESSAGE": "{}", "__REALTIME_TIMESTAMP": "1788833640000000"',
    '"log": "x", "line": "x", "MESSAGE": "x"',
])  # fmt: skip
def test_a_ledger_with_a_wrappers_keys_of_its_own_is_plain(members: str, tmp_path: Path) -> None:
    text = b"".join(f'{{"ts": {T0 + number}, "status": 200, {members}}}\n'.encode() for number in range(5))
    counts = read(written(tmp_path, text)).counts
    assert (counts.wrapper, counts.events, counts.why) == ("", 5, "5 of 5 sampled lines fit gateway")


@pytest.mark.parametrize("members", [
    '"stream": true, "log": "{}\\n"',
    '"stream": ["stdout"], "log": "{}\\n", "time": "2026-09-08T02:14:00Z"',
    '"line": "{}", "timestamp": 1788833640, "labels": {}',
    '"line": "{}", "timestamp": "2026-09-08T02:14:00Z", "labels": []',
])  # fmt: skip
def test_what_only_resembles_a_wrapper_is_none(members: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no known dialect fits"):
        read(written(tmp_path, f"{{{members}}}\n".encode() * 3))


@pytest.mark.parametrize("wrap", WRAPS)
def test_texts_alone_are_no_ledger_and_the_error_says_how_they_are_wrapped(wrap: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a JSON object, nor is the wrapped content \(its lines are framed by"):
        read(written(tmp_path, wrapped([b"started", b"listening"], WRAPS[wrap])))


@pytest.mark.parametrize("wrap", WRAPS)
def test_only_the_outer_wrapper_is_taken_off(wrap: str, tmp_path: Path) -> None:
    lines = [clean(0), clean(1), clean(2), docker(clean(3)), logcli(clean(4)), cri(clean(5))]
    reading = read(written(tmp_path, wrapped(lines, WRAPS[wrap])))
    assert sorted(reading.events) == [1, 2, 3]
    # The two objects are records of no dialect, the CRI line is a text.
    assert (reading.counts.not_a_request, reading.counts.other_text, reading.counts.quarantined) == (3, 1, 0)


def docker_raw(members: str) -> bytes:
    return f'{{{members},"stream":"stdout","time":"2026-09-08T02:14:03Z"}}'.encode()


def journal_raw(message: str) -> bytes:
    return f'{{"__CURSOR":"s=1","__REALTIME_TIMESTAMP":"1788833643123456"{message}}}'.encode()


EMPTY = '"{\\"ts\\": 1788833640, \\"status\\": 200}\\n"'
BYTES = list(WHOLE)
ODD = [
    # name, wrapper of the other lines, the odd line, what becomes of it
    ("a bare record amid wrapped ones", cri, WHOLE, "wrapper_unreadable"),
    ("an unreadable time", cri, cri(WHOLE).replace(b"2026-09-08T", b"yesterday "), "wrapper_unreadable"),
    ("a thirteenth month", cri, cri(WHOLE).replace(b"2026-09", b"2026-13"), "wrapper_unreadable"),
    ("a time without a zone", cri, cri(WHOLE).replace(b"789Z", b"789"), "wrapper_unreadable"),
    ("another stream", cri, cri(WHOLE, "stdlog"), "wrapper_unreadable"),
    ("another tag", cri, cri(WHOLE, tag="X"), "wrapper_unreadable"),
    ("no tag", cri, cri(WHOLE).replace(b" F ", b" "), "wrapper_unreadable"),
    ("a head cut short", cri, b"2026-09-08T02:14:03.1", "wrapper_unreadable"),
    ("two spaces", cri, cri(WHOLE).replace(b" F ", b" F  "), "event"),
    ("a time with an offset", cri, cri(WHOLE).replace(b"Z stdout", b"+02:00 stdout"), "event"),
    ("a time without a fraction", cri, cri(WHOLE).replace(b".123456789", b""), "event"),
    ("more tags", cri, cri(WHOLE, tag="F:x:y"), "event"),
    ("no text", cri, cri(b""), "blank"),
    ("no text and no last space", cri, cri(b"").rstrip(b" "), "blank"),
    ("spaces", cri, cri(b"  \t "), "blank"),
    ("NULs before the head", cri, b"\0\0" + cri(WHOLE), "event"),
    ("an empty line", cri, b"", "blank"),
    ("words", cri, cri(b"INFO ready"), "text"),
    ("words in braces", cri, cri(b"{ready}"), "not_json"),
    ("words in brackets", cri, cri(b"[INFO] ready"), "text"),
    ("words that are no UTF-8", cri, cri(b"caf\xe9"), "text"),
    ("a time in words", cri, cri(b"2026-09-08 02:14:00 ready"), "text"),
    ("a number", cri, cri(b"12"), "not_an_object"),
    ("a list", cri, cri(b"[1, 2]"), "not_an_object"),
    ("100,000 brackets", cri, cri(b"[" * 100_000), "text"),
    ("a cut record", cri, cri(OPEN), "cut_short"),
    ("a broken wrapper", docker, b'{"log":"x', "cut_short"),
    ("two wrappers on a line", docker, docker(WHOLE) * 2, "trailing_text"),
    ("two wrappers with a NUL between", docker, docker(WHOLE) + b"\0" + docker(WHOLE), "trailing_text"),
    ("a wrapper that is a list", docker, b'["a\\n"]', "not_an_object"),
    ("no text at all", docker, docker_raw('"x":1'), "wrapper_unreadable"),
    ("a number as text", docker, docker_raw('"log":5'), "wrapper_unreadable"),
    ("an object as text", docker, docker_raw('"log":{"ts":1788833640,"status":200}'), "wrapper_unreadable"),
    ("numbers as text", docker, docker_raw(f'"log":{BYTES}'), "wrapper_unreadable"),
    ("null as text", docker, docker_raw('"log":null'), "wrapper_unreadable"),
    ("the text twice", docker, docker_raw(f'"log":{EMPTY},"log":{EMPTY}'), "event"),
    ("two texts", docker, docker_raw(f'"log":{EMPTY},"log":"x\\n"'), "conflicting_key"),
    ("two texts, one escaped", docker, docker_raw(f'"log":{EMPTY},"l\\u006fg":"x\\n"'), "conflicting_key"),
    ("two streams", docker, docker_raw(f'"log":{EMPTY},"stream":"stderr"'), "event"),
    ("attributes", docker, docker_raw(f'"log":{EMPTY},"attrs":{{"tag":"a"}}'), "event"),
    ("300 levels beside the text", docker, docker_raw(f'"log":{EMPTY},"x":{"[" * 300}{"]" * 300}'), "too_deep"),
    ("an infinity beside the text", docker, docker_raw(f'"log":{EMPTY},"x":Inf'), "not_json"),
    ("a lone surrogate beside the text", docker, docker_raw(f'"log":{EMPTY},"x":"\\ud800"'), "not_unicode"),
    ("a lone surrogate in the text", docker, docker_raw('"log":"\\ud800\\n"'), "not_unicode"),
    ("a wrapper that is no UTF-8", docker, docker(WHOLE).replace(b"stdout", b"\xff"), "not_utf8"),
    ("a carriage return in the text", docker, docker(WHOLE + b"\r"), "event"),
    ("only a line feed", docker, docker(b""), "blank"),
    ("lines within the text", docker, docker(b'{"ts": 1788833640,\n "status": 200}'), "event"),
    ("a line feed within a string", docker, docker(b'{"ts": 1788833640, "model": "a\nb"}'), "not_json"),
    ("a NUL within the text", docker, docker(b'{"ts": 1788833640, "model": "a\0b"}'), "not_json"),
    ("bytes", journald, journal_raw(f',"MESSAGE":{BYTES}'), "event"),
    ("a byte of 256", journald, journal_raw(f',"MESSAGE":{[*BYTES, 256]}'), "wrapper_unreadable"),
    ("a negative byte", journald, journal_raw(f',"MESSAGE":{[*BYTES, -1]}'), "wrapper_unreadable"),
    ("half a byte", journald, journal_raw(f',"MESSAGE":{[*BYTES, 0.5]}'), "wrapper_unreadable"),
    ("a byte of 5,000 digits", journald, journal_raw(',"MESSAGE":[' + "1" * 5000 + "]"), "wrapper_unreadable"),
    ("texts instead of bytes", journald, journal_raw(',"MESSAGE":["a","b"]'), "wrapper_unreadable"),
    ("no bytes", journald, journal_raw(',"MESSAGE":[]'), "blank"),
    ("bytes that are no UTF-8", journald, journal_raw(f',"MESSAGE":{[*OPEN, 255, 125]}'), "not_utf8"),
    ("colours", journald, journald(b"\x1b[31mready\x1b[0m"), "text"),
    ("a message left out", journald, journal_raw(',"MESSAGE":null'), "message_left_out"),
    ("no message", journald, journal_raw(""), "text"),
    ("an object as message", journald, journal_raw(',"MESSAGE":{}'), "wrapper_unreadable"),
    ("true as message", journald, journal_raw(',"MESSAGE":true'), "wrapper_unreadable"),
    ("no labels", logcli, b'{"line":' + json.dumps(WHOLE.decode()).encode() + b',"timestamp":"2026-09-08T02:14:03Z"}', "event"),
    ("an empty text", logcli, logcli(b""), "blank"),
    ("no text", logcli, b'{"labels":{},"timestamp":"2026-09-08T02:14:03Z"}', "wrapper_unreadable"),
    ("a text that ends in a line feed", logcli, logcli(WHOLE + b"\n"), "event"),
]  # fmt: skip


@pytest.mark.parametrize(("wrap", "line", "wanted"), [odd[1:] for odd in ODD], ids=[f"{o[1].__name__}: {o[0]}" for o in ODD])
def test_an_odd_line_amid_wrapped_ones(wrap: Wrap, line: bytes, wanted: str, tmp_path: Path) -> None:
    head = wrapped([clean(number) for number in range(6)], wrap)
    tail = wrapped([clean(number) for number in range(6, 12)], wrap)
    reading = read(written(tmp_path, head + line + b"\n" + tail))
    counts = reading.counts
    assert conserved(counts)
    assert counts.lines == 13
    assert set(reading.events) == {1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13} | ({7} if wanted == "event" else set())
    refusals = [] if wanted in ("event", "blank", "text") else [(7, len(head), len(line), wanted)]
    assert reading.quarantine == refusals
    assert (counts.blank, counts.not_a_request, counts.other_text) == (wanted == "blank", wanted == "text", wanted == "text")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrap", WRAPS.values())
def test_odd_lines_mean_the_same_in_every_way_of_reading(wrap: Wrap, way: str) -> None:
    odd = [(line, wanted) for _, its_wrap, line, wanted in ODD if its_wrap is wrap]
    text, events, refusals = b"", set(), []
    for number, (line, wanted) in enumerate(odd):
        text += wrap(clean(2 * number)) + b"\n" + wrap(clean(2 * number + 1)) + b"\n"
        place = 3 * number + 3
        events |= {place - 2, place - 1} | ({place} if wanted == "event" else set())
        if wanted not in ("event", "blank", "text"):
            refusals.append((place, len(text), len(line), wanted))
        # Records that are the same but for their line would be duplicates: their whole second keeps them.
        text += line + b"\n"
    reading = read_once(text, way)
    assert set(reading.events) == events
    assert reading.quarantine == refusals
    assert reading.counts.blank == sum(wanted == "blank" for _, wanted in odd)
    assert reading.counts.other_text == sum(wanted == "text" for _, wanted in odd)
    assert conserved(reading.counts)


NOT_CUT_AT_A_BRACE = b'{"ts": 1788833640, "status": 200, "zz": {"a": {}}}'


def part(text: bytes, stream: str = "stdout") -> tuple[str, bytes, bool]:
    return stream, text, True


def end(text: bytes, stream: str = "stdout") -> tuple[str, bytes, bool]:
    return stream, text, False


def attempt_of(name: str) -> bytes:
    return f'{{"ts": {T0}, "status": 200, "request_id": "{name}"}}'.encode()


A, B, C = attempt_of("a"), attempt_of("b"), attempt_of("c")
PARTS = [
    # name, lines, events by the line they stand in, refused by line, lines joined, texts, blank
    ("two parts", [part(A[:20]), end(A[20:])], {1: "a"}, {}, 1, 0, 0),
    ("five parts", [part(A[:5]), part(A[5:9]), part(A[9:20]), part(A[20:21]), end(A[21:])], {1: "a"}, {}, 4, 0, 0),
    ("an empty end", [part(A), end(b"")], {1: "a"}, {}, 1, 0, 0),
    ("a part cut within a character",
     [part('{"ts": 1788833640, "status": 200, "request_id": "ä"}'.encode()[:50]),
      end('{"ts": 1788833640, "status": 200, "request_id": "ä"}'.encode()[50:])], {1: "ä"}, {}, 1, 0, 0),
    ("streams that interleave",
     [part(A[:9]), part(B[:30], "stderr"), part(A[9:30]), end(B[30:], "stderr"), end(C, "stderr"), end(A[30:])],
     {1: "a", 2: "b", 5: "c"}, {}, 3, 0, 0),
    ("a text in parts", [part(b"Traceback: "), part(b"more"), end(b" and more"), end(A)], {4: "a"}, {}, 0, 3, 0),
    ("nothing in parts", [part(b" "), end(b""), end(A)], {3: "a"}, {}, 0, 0, 2),
    ("a broken record in parts", [part(A[:20]), part(A[20:30]), end(A[30:40]), end(B)], {4: "b"},
     {1: "cut_short", 2: "cut_short", 3: "cut_short"}, 0, 0, 0),
    ("a record in parts that has no time", [part(b'{"status": '), end(b"200}"), end(B)], {3: "b"},
     {1: "no_time", 2: "no_time"}, 0, 0, 0),
    ("a record of no dialect in parts", [part(b'{"level": "in'), end(b'fo"}'), end(B)], {3: "b"}, {}, 0, 0, 0),
    ("a lost end before a whole line", [part(A[:20]), part(A[20:30]), end(B)], {3: "b"},
     {1: "part_without_end", 2: "part_without_end"}, 0, 0, 0),
    ("a lost end before a line in parts", [part(A[:20]), part(B[:20]), part(B[20:30]), end(B[30:])], {2: "b"},
     {1: "part_without_end"}, 2, 0, 0),
    ("a lost end of a text", [part(b"Traceback: "), end(B)], {2: "b"}, {1: "part_without_end"}, 0, 0, 0),
    ("a part that starts with a brace and is none the less a part",
     [part(NOT_CUT_AT_A_BRACE[:40]), part(NOT_CUT_AT_A_BRACE[40:46]), end(NOT_CUT_AT_A_BRACE[46:])], {1: None}, {}, 2, 0, 0),
    ("a lost start", [end(A[20:]), end(B)], {2: "b"}, {}, 0, 1, 0),
    ("no end at all", [end(A), part(B[:20]), part(B[20:30])], {1: "a"},
     {2: "incomplete_last_line", 3: "incomplete_last_line"}, 0, 0, 0),
    ("no end while the other stream goes on", [part(B[:20]), end(A, "stderr"), end(C, "stderr")], {2: "a", 3: "c"},
     {1: "incomplete_last_line"}, 0, 0, 0),
]  # fmt: skip


def physical(line: tuple[str, bytes, bool], wrap: str) -> bytes:
    """Return a line or part as one of the wrappers that have parts writes it."""
    stream, text, is_part = line
    if wrap == "journald":
        return journald(text, {"stdout": "aa", "stderr": "bb"}[stream], is_part=is_part)
    if wrap == "cri":
        return cri(text, stream, "P" if is_part else "F")
    # Docker writes text: what is cut within a character it can't keep.
    return docker(text.decode(errors="replace").encode(), stream, "" if is_part else "\n")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrap", ["cri", "docker", "journald"])
@pytest.mark.parametrize(("lines", "events", "refused", "joined", "texts", "blank"), [p[1:] for p in PARTS],
                         ids=[str(p[0]) for p in PARTS])
def test_parts_are_joined_stream_by_stream(
    lines: list[tuple[str, bytes, bool]], events: dict[int, str | None], refused: dict[int, str], joined: int, texts: int,
    blank: int, wrap: str, way: str, tmp_path: Path,
) -> None:  # fmt: skip
    before = 20
    head = wrapped([clean(number) for number in range(before)], WRAPS[wrap])
    texts_of = [physical(line, wrap) for line in lines]
    with reading_way(way):
        reading = read(written(tmp_path, head + b"".join(text + b"\n" for text in texts_of)))
    counts = reading.counts
    assert conserved(counts)
    assert counts.lines == before + len(lines)
    found = {line - before: event.get("request_id") for line, event in reading.events.items() if line > before}
    if wrap == "docker":
        events = {line: "��" if name == "ä" else name for line, name in events.items()}
    assert found == events
    offset, expected = len(head), []
    for number, text in enumerate(texts_of, start=1):
        if number in refused:
            expected.append((before + number, offset, len(text), refused[number]))
        offset += len(text) + 1
    assert reading.quarantine == expected
    assert counts.quarantined == len(expected)
    assert (counts.events, counts.joined) == (before + len(events), joined)
    assert (counts.other_text, counts.blank) == (texts, blank)
    assert counts.incomplete_last_line is ("incomplete_last_line" in refused.values())


def test_parts_of_many_streams_wait_within_bounds(tmp_path: Path) -> None:
    # journald: the first of 66 streams that wait at a time is given up when the 65th comes, the second with the 66th.
    begun = [journald(A[:20], f"{number:032x}", is_part=True) for number in range(66)]
    ends = [journald(A[20:].replace(b'"a"', f'"{number}"'.encode()), f"{number:032x}") for number in range(66)]
    head = wrapped([clean(number) for number in range(200)], journald)
    reading = read(written(tmp_path, head + b"\n".join([*begun, *ends, b""])))
    assert [code for *_, code in reading.quarantine] == ["part_without_end"] * 2
    assert [line for line, *_ in reading.quarantine] == [201, 202]
    assert reading.counts.joined == 64
    assert conserved(reading.counts)


@pytest.mark.parametrize("way", WAYS)
def test_a_part_followed_by_garbage_still_gets_its_end(way: str, tmp_path: Path) -> None:
    head = wrapped([clean(number) for number in range(8)], cri)
    lines = [cri(A[:20], tag="P"), b"\x00\xffgarbage", b"", cri(A[20:])]
    with reading_way(way):
        reading = read(written(tmp_path, head + b"\n".join(lines) + b"\n"))
    assert reading.events[9]["request_id"] == "a"
    assert reading.quarantine == [(10, len(head) + len(lines[0]) + 1, 9, "wrapper_unreadable")]
    assert (reading.counts.joined, reading.counts.blank, reading.counts.leading_nuls) == (1, 1, 1)
    assert conserved(reading.counts)


@pytest.mark.parametrize("cut", [5, 25, 45, 60, 70])
def test_a_file_that_ends_within_a_wrapped_line_ends_in_an_incomplete_line(cut: int, tmp_path: Path) -> None:
    for wrap in WRAPS.values():
        head, line = wrapped([clean(number) for number in range(8)], wrap), wrap(WHOLE)[:cut]
        reading = read(written(tmp_path, head + line))
        assert reading.quarantine == [(9, len(head), cut, "incomplete_last_line")]
        assert reading.counts.incomplete_last_line
        assert conserved(reading.counts)


def test_a_wrapper_that_is_whole_without_a_last_newline_says_what_its_text_lacks(tmp_path: Path) -> None:
    for wrap in (docker, journald, logcli):
        reading = read(written(tmp_path, wrapped([clean(number) for number in range(8)], wrap) + wrap(OPEN)))
        assert [code for *_, code in reading.quarantine] == ["cut_short"]


def long_record(size: int) -> bytes:
    start = b'{"ts": 1788833640, "status": 200, "zz": "'
    return start + b"x" * (size - len(start) - 2) + b'"}'


@pytest.mark.parametrize("wrap", ["cri", "docker"])
@pytest.mark.parametrize(("size", "is_kept"), [(16 * MIB, True), (16 * MIB + 1, False), (40 * MIB, False)])
def test_joined_text_has_the_limit_of_a_line(size: int, is_kept: bool, wrap: str, tmp_path: Path) -> None:  # noqa: FBT001
    record = long_record(size)
    pieces = [record[start : start + MIB] for start in range(0, size, MIB)]
    lines = [part(piece) for piece in pieces[:-1]] + [end(pieces[-1]), end(B)]
    head = wrapped([clean(number) for number in range(8)], WRAPS[wrap])
    reading = read(written(tmp_path, head + b"".join(physical(line, wrap) + b"\n" for line in lines)))
    counts = reading.counts
    assert conserved(counts)
    assert counts.lines == 8 + len(lines)
    assert sorted(reading.events) == [*range(1, 9), *([9] if is_kept else []), 8 + len(lines)]
    assert {code for *_, code in reading.quarantine} == (set() if is_kept else {"too_long"})
    assert counts.quarantined == (0 if is_kept else len(pieces))


@pytest.mark.parametrize("before", [0, 3 * MIB])
@pytest.mark.parametrize("wrap", [cri, docker])
@pytest.mark.parametrize(("over", "is_kept"), [(0, True), (1, False), (2 * MIB, False)])
def test_a_wrapped_line_has_the_limit_of_a_line(before: int, over: int, is_kept: bool, wrap: Wrap, tmp_path: Path) -> None:  # noqa: FBT001
    lines = [wrap(clean(number)) for number in range(8)]
    # Whatever its place in a block: the file's first lines move it.
    head = b"\n".join([*lines, wrap(long_record(before))] if before else lines) + b"\n"
    around = len(wrap(long_record(MIB))) - MIB
    line = wrap(long_record(16 * MIB - around + over))
    assert len(line) == 16 * MIB + over
    reading = read(written(tmp_path, head + line + b"\n" + wrap(B) + b"\n"))
    number = head.count(b"\n") + 1
    assert (number in reading.events) is is_kept
    assert reading.quarantine == ([] if is_kept else [(number, len(head), len(line), "too_long")])
    assert reading.events[number + 1]["request_id"] == "b"
    assert conserved(reading.counts)


def test_parts_without_number_are_refused_and_cost_no_other_line(tmp_path: Path) -> None:
    lines = [clean(0), clean(1), clean(2)]
    most = 1 << 16
    text = wrapped(lines, cri) + (cri(b"{", tag="P") + b"\n") * (most + 5) + cri(b"}") + b"\n" + cri(clean(3)) + b"\n"
    many = wrapped([clean(number) for number in range(10, 400)], cri)
    reading = read(written(tmp_path, many + text))
    assert reading.counts.events == 390 + 4
    assert {code for *_, code in reading.quarantine} == {"too_long"}
    assert reading.counts.quarantined == most + 6
    assert conserved(reading.counts)


def test_a_duplicate_in_a_wrapped_ledger_counts_once(tmp_path: Path) -> None:
    lines = [cri(A), cri(B), cri(A).replace(b"03.123", b"04.5")]
    counts = read(written(tmp_path, b"\n".join(lines) + b"\n")).counts
    assert (counts.events, counts.duplicates) == (2, 1)
    assert conserved(counts)


def night_in(store: Path, ledger: Path) -> tuple[FileCounts, list[tuple[int, str]], list[Refusal]]:
    """Load a ledger into a store; return its counts, the events' lines and ids, and what was refused."""
    with DuckEngine(known=shipped_mappings(), threads=2, database=store) as engine:
        engine.load([LedgerFile("ledger", ledger)])
        events = engine.connection.execute(f"SELECT line, request_id FROM {EVENTS_TABLE} ORDER BY line").fetchall()
        refused = [(q.line, q.offset, q.length, str(q.code)) for q in engine.quarantine()]
        return engine.files[-1], events, refused


GROWN = [
    # name, what stands when the file is read first, what it grows by; lines refused at first
    ("whole lines", [cri(A) + b"\n"], [cri(B) + b"\n"], 0),
    ("the end of a part", [cri(A[:20], tag="P") + b"\n"], [cri(A[20:]) + b"\n", cri(B) + b"\n"], 1),
    ("the end of a part behind a line of the other stream",
     [cri(A[:20], tag="P") + b"\n", cri(B, "stderr") + b"\n"], [cri(A[20:]) + b"\n"], 1),
    ("the rest of a line", [cri(A)[:60]], [cri(A)[60:] + b"\n", cri(B) + b"\n"], 1),
    ("the rest of the end of a part", [cri(A[:20], tag="P") + b"\n", cri(A[20:])[:50]], [cri(A[20:])[50:] + b"\n"], 2),
    ("a newline", [cri(A)], [b"\n", cri(B) + b"\n"], 0),
]  # fmt: skip


@pytest.mark.parametrize(("first", "more", "refused"), [g[1:] for g in GROWN], ids=[str(g[0]) for g in GROWN])
def test_a_wrapped_ledger_that_has_grown_is_as_if_read_once(
    first: list[bytes], more: list[bytes], refused: int, tmp_path: Path
) -> None:  # fmt: skip
    ledger, head = tmp_path / "ledger.log", wrapped([clean(number) for number in range(200)], cri)
    ledger.write_bytes(head + b"".join(first))
    counts, _, quarantine = night_in(tmp_path / "grown.db", ledger)
    assert len(quarantine) == refused
    assert conserved(counts)
    assert night_in(tmp_path / "grown.db", ledger)[0] == counts  # the same file again adds nothing
    ledger.write_bytes(head + b"".join(first + more))
    grown = night_in(tmp_path / "grown.db", ledger)
    once = night_in(tmp_path / "once.db", ledger)
    assert grown[1:] == once[1:]
    assert once[2] == []
    assert conserved(grown[0])
    for name in ("lines", "events", "joined", "quarantined", "incomplete_last_line", "wrapper"):
        assert getattr(grown[0], name) == getattr(once[0], name), name


def test_the_report_counts_lines_and_events_and_names_what_is_no_request(tmp_path: Path) -> None:
    path = tmp_path / "gateway.log"
    lines = [*(cri(clean(number)) for number in range(5)), cri(A[:20], tag="P"), cri(A[20:30], tag="P"), cri(A[30:]),
             cri(b"INFO ready"), cri(b'{"level": "info"}'), cri(b"")]  # fmt: skip
    path.write_bytes(b"\n".join(lines) + b"\n")
    report = analyze([str(path)], Request())
    ledger, file = report.ledger, report.ledger.files[0]
    for counted in (ledger, file):
        assert (counted.lines, counted.used, counted.events, counted.not_a_request, counted.blank) == (11, 8, 6, 2, 1)
        assert counted.not_a_request_kinds == {"record of no dialect": 1, "text that is not JSON": 1}
    assert file.detected_because.startswith("its lines are framed by a container runtime (CRI); ")
    buffer = StringIO()
    render_text(report, Console(file=buffer, width=100), verbose=False)
    assert "2 not a request (1 of them text that is not JSON)" in buffer.getvalue()
