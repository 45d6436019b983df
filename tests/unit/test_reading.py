"""Whatever a ledger holds, every way of reading it gives the same events and the same refusals."""

import json
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.ledgers import T0, WAYS, Reading, conserved, jsonl, read, reading_way

from quietburn.errors import InputError

US = 1_000_000
MIB = 1 << 20


def clean(number: int) -> bytes:
    """Return a line as a real gateway writes it; each is another event, and `note` is a key nobody knows."""
    return json.dumps({
        "ts": T0 + number + 0.25, "request_id": f"r{number}", "status": 200, "latency_ms": 120.5, "ttft_ms": 30,
        "deadline_ms": 8000, "prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 0, "reasoning_tokens": 0,
        "actual_tokens": 120, "cpu_pct": 12.5, "stream": True, "finish_reason": "stop", "note": "x",
    }).encode()


@dataclass(frozen=True)
class Trap:
    """Lines, and what must become of each; lines count from 1, None stands for an unknown value."""

    name: str
    text: bytes
    events: dict[int, dict[str, object]] = field(default_factory=dict)
    quarantine: dict[int, str] = field(default_factory=dict)
    invalid: tuple[tuple[int, str, str], ...] = ()
    coerced: int = 0
    not_a_request: int = 0
    blank: int = 0
    nuls: int = 0
    unknown: tuple[str, ...] = ()
    notes: int = 0  # lines that hold the key `note`, which clean lines hold too

    @property
    def lines(self) -> list[bytes]:
        return self.text.split(b"\n")


def attempt(rest: str = "", ts: str = str(T0)) -> bytes:
    """Return the line of an attempt, with more members written as they are."""
    return f'{{"ts": {ts}, "status": 200{", " + rest if rest else ""}}}'.encode()


def kept(name: str, rest: str, **values: object) -> Trap:
    """Return a trap whose one line is an event with these values."""
    return Trap(name, attempt(rest), {1: values})


def refused(name: str, text: bytes, code: str) -> Trap:
    """Return a trap whose one line is refused."""
    return Trap(name, text, quarantine={1: code})


def costs_field(name: str, members: str, column: str, code: str, coerced: int = 0) -> Trap:
    """Return a trap that costs one field and not the line."""
    return Trap(name, attempt(members), {1: {column: None, "ts_us": T0 * US}}, invalid=((1, column, code),), coerced=coerced)


def at(name: str, ts: str, micros: int) -> Trap:
    """Return a trap whose time, as it is written, is this many microseconds after T0."""
    return Trap(f"time {name}", attempt(f'"request_id": "{name}"', ts), {1: {"ts_us": T0 * US + micros}})


OPEN = b'{"ts": 1788833640, "status": 200'
WHOLE = OPEN + b"}"
NESTED = '"zz": ' + '{"a": ' * 300 + "1" + "}" * 300

LINES = [
    refused("not JSON", b"2026-09-08 02:14:00 INFO started", "not_json"),
    refused("a cut line", OPEN + b', "latency_ms": 1', "cut_short"),
    refused("a line cut in a string", OPEN + b', "model": "qw', "cut_short"),
    refused("two objects on one line", WHOLE + WHOLE, "trailing_text"),
    refused("two objects on one line, apart", WHOLE + b" " + WHOLE, "trailing_text"),
    refused("an object, null and an object on one line", WHOLE + b"null" + WHOLE, "trailing_text"),
    refused("text after the object", WHOLE + b" x", "trailing_text"),
    refused("a comment after the object", WHOLE + b" // x", "trailing_text"),
    refused("a comment in the object", OPEN + b"/* x */}", "not_json"),
    refused("a trailing comma", OPEN + b",}", "not_json"),
    refused("single quotes", b"{'ts': 1788833640, 'status': 200}", "not_json"),
    refused("Python's words", OPEN + b', "stream": True}', "not_json"),
    refused("an array", b"[1, 2]", "not_an_object"),
    refused("an array of objects", b"[" + WHOLE + b"]", "not_an_object"),
    refused("a number", b"12", "not_an_object"),
    refused("a string", b'"x"', "not_an_object"),
    refused("null", b"null", "not_an_object"),
    refused("a number that starts with a plus", attempt('"prompt_tokens": +1'), "not_json"),
    refused("a number that starts with a zero", attempt('"prompt_tokens": 01'), "not_json"),
    refused("a number that starts with a point", attempt('"cpu_pct": .5'), "not_json"),
    refused("Inf in a known key, which is no JSON of any kind", attempt('"cpu_pct": Inf'), "not_json"),
    refused("-Inf in an unknown key", attempt('"zz": -Inf'), "not_json"),
    refused("Inf within an unknown key", attempt('"zz": [1, Inf]'), "not_json"),
    refused("-NaN", attempt('"cpu_pct": -NaN'), "not_json"),
    refused("bytes that are no UTF-8 in a known key", OPEN + b', "model": "\xff"}', "not_utf8"),
    refused("bytes that are no UTF-8 in an unknown key", OPEN + b', "zz": "\xff"}', "not_utf8"),
    refused("a surrogate in raw UTF-8", OPEN + b', "zz": "\xed\xa0\x80"}', "not_utf8"),
    refused("a lone high surrogate in a known key", attempt(r'"model": "a\ud800b"'), "not_unicode"),
    refused("a lone low surrogate in a known key", attempt(r'"model": "a\udc00b"'), "not_unicode"),
    refused("a lone surrogate in an unknown key", attempt(r'"zz": "\udc00"'), "not_unicode"),
    refused("a lone surrogate in a key's name", attempt(r'"z\ud800": 1'), "not_unicode"),
    refused("a lone surrogate deep within", attempt('"zz": ' + '{"a": ' * 200 + r'"\ud800"' + "}" * 200), "not_unicode"),
    refused("a control character in a string", attempt('"model": "a\x01b"'), "not_json"),
    refused("a raw NUL in a string", attempt('"model": "a\0b"'), "not_json"),
    refused("a NUL between objects", WHOLE + b"\0" + WHOLE, "trailing_text"),
    refused("a known key twice with other values", attempt('"status": 500'), "conflicting_key"),
    refused("a known key twice, once null", attempt('"status": null'), "conflicting_key"),
    refused("a known key twice, once escaped", attempt(r'"stat\u0075s": 500'), "conflicting_key"),
    refused("a prompt twice", attempt('"prefix": "a", "prefix": "b"'), "conflicting_key"),
    refused("300 levels", attempt(NESTED), "too_deep"),
    refused("100,000 levels", attempt('"zz": ' + "[" * 100_000 + "]" * 100_000), "too_deep"),
    refused("100,000 levels never closed", b'{"a":' * 100_000, "too_deep"),
    refused("a byte order mark in the middle", b"\xef\xbb\xbf" + WHOLE, "not_json"),
    refused("a vertical tab before the object", b"\v" + WHOLE, "not_json"),
    Trap("an object over two lines", OPEN + b',\n"latency_ms": 1}', quarantine={1: "cut_short", 2: "not_json"}),
    Trap(
        "an object over two lines beside two objects on one line",
        OPEN + b',\n"latency_ms": 1}\n' + WHOLE + WHOLE,
        quarantine={1: "cut_short", 2: "not_json", 3: "trailing_text"},
    ),
    Trap(
        "two objects on one line made up for by a NUL that hides two lines",
        b"\n".join([WHOLE + WHOLE, WHOLE + WHOLE, WHOLE + b"\0" + WHOLE, WHOLE, WHOLE]),
        {4: {"status": 200}, 5: {"status": 200}},
        {1: "trailing_text", 2: "trailing_text", 3: "trailing_text"},
    ),
    Trap("an empty object", b"{}", not_a_request=1),
    Trap("an application's log line", f'{{"ts": {T0}, "level": "info", "message": "up"}}'.encode(), not_a_request=1,
         unknown=("level", "message")),
    Trap("a log line that is no ordinary line either", b' {"level": "info"} ', not_a_request=1, unknown=("level",)),
    Trap("blank lines", b"\n\n", blank=3),
    Trap("lines of spaces", b"   \n\t\n \r", blank=3),
    Trap("a line of NULs", b"\0\0\0", blank=1, nuls=1),
    Trap("NULs before the object", b"\0\0" + WHOLE, {1: {"status": 200}}, nuls=1),
    Trap("NULs before a cut object", b"\0\0" + OPEN, quarantine={1: "cut_short"}, nuls=1),
    Trap("NULs before an object without time", b'\0\0{"status": 200}', quarantine={1: "no_time"}, nuls=1),
    Trap("CRLF", WHOLE + b"\r", {1: {"status": 200}}),
    Trap("mixed line ends", WHOLE + b"\r\n" + WHOLE + b"\n\r\n" + WHOLE, {1: {"status": 200}, 2: {}, 4: {}}, blank=1),
    Trap("a cut line before CRLF", OPEN + b"\r", quarantine={1: "cut_short"}),
    Trap("spaces and tabs around the object", b"  \t" + WHOLE + b" \t ", {1: {"status": 200}}),
    Trap("a known key twice with the same value", attempt('"status": 200'), {1: {"status": 200}}),
    Trap("an unknown key twice", attempt('"zz": 1, "zz": 2'), {1: {"status": 200}}, unknown=("zz",)),
    Trap("an empty key", attempt('"": 1'), {1: {"status": 200}}, unknown=("",)),
    Trap("a key with a NUL", attempt(r'"status\u0000": 500'), {1: {"status": 200}}, unknown=("status\0",)),
    Trap("an escaped key", f'{{"ts": {T0}, "st\\u0061tus": 200, "request_\\u0069d": "q"}}'.encode(),
         {1: {"status": 200, "request_id": "q"}}),
    kept("an escaped NUL in a string", r'"model": "a\u0000b"', model="a\0b"),
    kept("a pair of surrogates", r'"model": "\ud83d\ude00"', model="😀"),
    kept("null is unknown", '"latency_ms": null, "model": null, "stream": null', latency_ms=None, model=None, stream=None),
    kept("an empty text is unknown", '"model": "", "error": ""', model=None, error=None),
    kept("an empty number is unknown", '"cpu_pct": ""', cpu_pct=None),
    Trap("an unknown key of another type", attempt('"note": 5'), {1: {}}, notes=1),
    Trap("an unknown key with nesting", attempt('"note": {"a": [1, {"b": null}], "c": {}}'), {1: {}}, notes=1),
    Trap("an unknown key with a list", attempt('"note": [[], {}]'), {1: {}}, notes=1),
    Trap("an unknown key of every type", b"\n".join(attempt(f'"zz": {v}') for v in ("1", '"a"', "true", "[1]", "{}", "null")),
         {n: {"status": 200} for n in range(1, 7)}, unknown=("zz",) * 5),
    Trap("NaN in an unknown key", attempt('"zz": NaN'), {1: {}}, unknown=("zz",)),
    Trap("1e400 in an unknown key", attempt('"zz": 1e400'), {1: {}}, unknown=("zz",)),
    Trap("200 levels with an escape", attempt('"zz": ' + '{"a": ' * 200 + r'"\u0041"' + "}" * 200), {1: {}}, unknown=("zz",)),
    Trap("300 brackets in a text", attempt('"zz": "' + "[{" * 300 + '"'), {1: {}}, unknown=("zz",)),
    Trap("300 lists side by side", attempt('"zz": [' + "[], " * 300 + "[]]"), {1: {}}, unknown=("zz",)),
    # Numbers.
    costs_field("NaN", '"latency_ms": NaN', "latency_ms", "not_finite"),
    costs_field("Infinity", '"latency_ms": Infinity', "latency_ms", "not_finite"),
    costs_field("-Infinity", '"cpu_pct": -Infinity', "cpu_pct", "not_finite"),
    costs_field("1e400", '"latency_ms": 1e400', "latency_ms", "not_finite"),
    costs_field("1e400 as a string", '"cpu_pct": "1e400"', "cpu_pct", "not_finite", coerced=1),
    costs_field("true as a number", '"latency_ms": true', "latency_ms", "not_a_number"),
    costs_field("false as a count", '"prompt_tokens": false', "prompt_tokens", "not_a_number"),
    costs_field("a word as a number", '"latency_ms": "abc"', "latency_ms", "not_a_number"),
    costs_field("NaN as a string", '"latency_ms": "NaN"', "latency_ms", "not_a_number"),
    costs_field("hex as a number", '"cpu_pct": "0x10"', "cpu_pct", "not_a_number"),
    costs_field("an object as a number", '"latency_ms": {"ms": 5}', "latency_ms", "not_a_number"),
    costs_field("a list as a number", '"prompt_tokens": [1]', "prompt_tokens", "not_a_number"),
    costs_field("an object as a text", '"model": {"name": "m"}', "model", "not_text"),
    costs_field("a list as an id", '"request_id": ["a"]', "request_id", "not_text"),
    costs_field("a list as a flag", '"stream": []', "stream", "not_a_flag"),
    costs_field("a word as a flag", '"stream": "yes"', "stream", "not_a_flag"),
    costs_field("2 as a flag", '"stream": 2', "stream", "not_a_flag"),
    costs_field("one and a half tokens", '"prompt_tokens": 1.5', "prompt_tokens", "not_integral"),
    costs_field("a negative count", '"prompt_tokens": -3', "prompt_tokens", "negative"),
    costs_field("a negative duration", '"latency_ms": -1', "latency_ms", "negative"),
    costs_field("a negative wait", '"queue_age_ms": -0.5', "queue_age_ms", "negative"),
    costs_field("101 % of a CPU", '"cpu_pct": 101', "cpu_pct", "out_of_range"),
    Trap("more cached than there were", attempt('"prompt_tokens": 5, "cached_tokens": 6'),
         {1: {"prompt_tokens": 5, "cached_tokens": None}}, invalid=((1, "cached_tokens", "more_than_whole"),)),
    Trap("more reasoning than there was", attempt('"completion_tokens": 5, "reasoning_tokens": 6'),
         {1: {"completion_tokens": 5, "reasoning_tokens": None}}, invalid=((1, "reasoning_tokens", "more_than_whole"),)),
    Trap("cached tokens beside those of the prompt", attempt(
             '"prompt_tokens": 5, "cached_tokens": 60, "completion_tokens": 6, "actual_tokens": 71'),
         {1: {"prompt_tokens": 5, "cached_tokens": 60, "completion_tokens": 6, "actual_tokens": 71}}),
    Trap("a total that contradicts its parts", attempt('"prompt_tokens": 5, "completion_tokens": 6, "actual_tokens": 12'),
         {1: {"prompt_tokens": 5, "completion_tokens": 6, "actual_tokens": 12}},
         invalid=((1, "actual_tokens", "total_contradicts_parts"),)),
    Trap("three bad fields in one line", attempt('"latency_ms": NaN, "cpu_pct": 101, "prompt_tokens": 1.5'),
         {1: {"latency_ms": None, "cpu_pct": None, "prompt_tokens": None}},
         invalid=((1, "cpu_pct", "out_of_range"), (1, "latency_ms", "not_finite"), (1, "prompt_tokens", "not_integral"))),
    kept("a negative slack is a number", '"deadline_slack_ms": -250.5', deadline_slack_ms=-250.5),
    kept("100 % and 0", '"cpu_pct": 100, "queue_age_ms": 0', cpu_pct=100, queue_age_ms=0),
    kept("a count with a zero fraction", '"prompt_tokens": 40.0', prompt_tokens=40),
    kept("equal part and whole", '"prompt_tokens": 5, "cached_tokens": 5', cached_tokens=5),
    kept("an exponent", '"latency_ms": 1.5e2', latency_ms=150),
    Trap("numbers as strings", attempt('"latency_ms": "40", "prompt_tokens": " 7 "'),
         {1: {"latency_ms": 40, "prompt_tokens": 7}}, coerced=2),
    Trap("flags as strings and numbers", attempt('"stream": "TRUE", "terminal_seen": 0'),
         {1: {"stream": True, "terminal_seen": False}}, coerced=2),
    # Ids are texts, never numbers.
    Trap("ids a double can't tell apart",
         attempt('"request_id": 9007199254740993') + b"\n" + attempt('"request_id": 9007199254740992'),
         {1: {"request_id": "9007199254740993"}, 2: {"request_id": "9007199254740992"}}),
    kept("an id beyond 64 bits", '"request_id": 99999999999999999999999', request_id="99999999999999999999999"),
    kept("an id with an exponent", '"request_id": 1e3', request_id="1e3"),
    kept("an id with a fraction", '"request_id": 1.0', request_id="1.0"),
    # An attempt that failed and reports 0 ms reports nothing.
    Trap("a failure of 0 ms", f'{{"ts": {T0}, "status": 500, "latency_ms": 0, "prompt_tokens": 7, "upstream_ms": 3}}'.encode(),
         {1: {"status": 500, "latency_ms": None, "prompt_tokens": None, "upstream_ms": None, "ts_us": T0 * US}}),
    Trap("a failure without status of 0 ms to the first token",
         f'{{"ts": {T0}, "error": "timeout", "ttft_ms": 0, "latency_ms": 900, "actual_tokens": 7}}'.encode(),
         {1: {"error": "timeout", "ttft_ms": None, "latency_ms": None, "actual_tokens": None}}),
    kept("an answer in 0 ms", '"latency_ms": 0, "prompt_tokens": 7', latency_ms=0, prompt_tokens=7),
    # Texts that are dropped once they are counted.
    kept("an answer's length in characters", r'"answer": "h\u00e9\ud83d\ude00"', answer_chars=3),
    costs_field("an answer that is no text", '"answer": 5', "answer_chars", "not_text"),
    kept("a prompt that is no text", '"prefix": 5', prefix_fp=None, prefix_noisy=None),
    costs_field("an answer that is no text before one that is", '"answer": 5, "output_text": "abc"', "answer_chars", "not_text"),
    kept("a prompt with a clock", '"prefix": "Session 2026-09-08T02:14:03Z. Grade tests."', prefix_fp="352e161abfda4895",
         prefix_noisy=True),
    # Times.
    at("in seconds", "1788833640", 0),
    at("in seconds with a fraction", "1788833640.5", 500_000),
    at("in milliseconds", "1788833640123", 123_000),
    at("in milliseconds with a fraction", "1788833640123.25", 123_250),
    at("in microseconds", "1788833640123456", 123_456),
    at("in nanoseconds", "1788833640123456123", 123_456),
    at("with an exponent", "1.78883364e9", 0),
    at("in seconds with twelve decimals", "1788833640.123456000123", 123_456),
    at("in seconds as a string", '"1788833640.5"', 500_000),
    at("in milliseconds as a string", '"1788833640123"', 123_000),
    at("in microseconds as a string", '"1788833640123456"', 123_456),
    at("in nanoseconds as a string", '"1788833640123456123"', 123_456),
    at("with an exponent as a string", '"1.78883364e9"', 0),
    at("in seconds as a string with twelve decimals", '"1788833640.123456000123"', 123_456),
    at("ISO in UTC", '"2026-09-08T02:14:00Z"', 0),
    at("ISO with an offset", '"2026-09-08T04:14:00+02:00"', 0),
    at("ISO with an offset without colon", '"2026-09-08T04:14:00+0200"', 0),
    at("ISO with an offset of hours", '"2026-09-08T04:14:00+02"', 0),
    at("ISO west of Greenwich over midnight", '"2026-09-07T20:44:00-05:30"', 0),
    at("ISO without a zone", '"2026-09-08T02:14:00"', 0),
    at("ISO with a space", '"2026-09-08 02:14:00Z"', 0),
    at("ISO in lower case", '"2026-09-08t02:14:00z"', 0),
    at("ISO in lower case with an offset", '"2026-09-08t04:14:00.25+02:00"', 250_000),
    at("ISO with a comma", '"2026-09-08T02:14:00,5Z"', 500_000),
    at("ISO with nine decimals", '"2026-09-08T02:14:00.123456123Z"', 123_456),
    at("ISO with nine decimals and an offset", '"2026-09-08T04:14:00.123456123+02:00"', 123_456),
    at("ISO with one decimal", '"2026-09-08T02:14:00.1Z"', 100_000),
    at("ISO without seconds", '"2026-09-08T02:14Z"', 0),
    refused("time of a monotonic clock", attempt(ts="48211.502"), "time_out_of_range"),
    refused("time of a monotonic clock as a string", attempt(ts='"48211.502"'), "time_out_of_range"),
    refused("time 0", attempt(ts="0"), "time_out_of_range"),
    refused("time before 1970", attempt(ts="-5"), "time_out_of_range"),
    refused("time before 1970 as a string", attempt(ts='"-5"'), "time_out_of_range"),
    refused("time in 1970", attempt(ts='"1970-01-01T00:00:00Z"'), "time_out_of_range"),
    refused("time in 2014", attempt(ts="1420070399"), "time_out_of_range"),
    refused("time in 2150", attempt(ts="5680281600"), "time_out_of_range"),
    refused("time in 2150 in words", attempt(ts='"2150-01-01T00:00:00Z"'), "time_out_of_range"),
    refused("time of 21 digits", attempt(ts="123456789012345678901"), "time_out_of_range"),
    refused("time of 29 digits", attempt(ts="12345678901234567890123456789"), "time_out_of_range"),
    refused("time of 40 digits", attempt(ts="1e40"), "time_out_of_range"),
    refused("time of 40 digits as a string", attempt(ts='"1e40"'), "time_out_of_range"),
    refused("time that is not a number", attempt(ts="NaN"), "time_unreadable"),
    refused("time in words", attempt(ts='"this morning"'), "time_unreadable"),
    refused("time in a thirteenth month", attempt(ts='"2026-13-08T02:14:00Z"'), "time_unreadable"),
    refused("time on the 30th of February", attempt(ts='"2026-02-30T02:14:00Z"'), "time_unreadable"),
    refused("time that is true", attempt(ts="true"), "time_unreadable"),
    refused("time that is an object", attempt(ts='{"s": 1788833640}'), "time_unreadable"),
    refused("time that is a list", attempt(ts="[1788833640]"), "time_unreadable"),
    refused("time that is null", attempt(ts="null"), "no_time"),
    refused("time that is empty", attempt(ts='""'), "no_time"),
    refused("no time", b'{"status": 200, "latency_ms": 5}', "no_time"),
    Trap("start and latency only", f'{{"started_at": {T0}, "status": 200, "latency_ms": 250}}'.encode(),
         {1: {"started_us": T0 * US, "ts_us": T0 * US + 250_000, "start_known": True, "end_known": True}}),
    Trap("start only", f'{{"started_at": {T0}, "status": 200}}'.encode(),
         {1: {"started_us": T0 * US, "ts_us": T0 * US, "start_known": True, "end_known": False}}),
    Trap("end only", attempt(), {1: {"started_us": T0 * US, "ts_us": T0 * US, "start_known": False, "end_known": True}}),
    kept("end and latency", '"latency_ms": 250', started_us=T0 * US - 250_000, start_known=True, end_known=True),
    kept("start and end have the say over a latency", f'"started_at": {T0 - 1}.5, "latency_ms": 7', latency_ms=500,
         started_us=T0 * US - 500_000),
    kept("a wait until a date", '"retry_after": "Tue, 08 Sep 2026 02:14:30 GMT"', retry_after_s=30),
    kept("a wait until a date that is past", '"retry_after": "Tue, 08 Sep 2026 02:13:00 GMT"', retry_after_s=0),
    costs_field("a wait until no date", '"retry_after": "Tue, 31 Feb 2026 02:14:30 GMT"', "retry_after_s", "not_a_number"),
    costs_field("a wait of a word", '"retry_after": "soon"', "retry_after_s", "not_a_number"),
    Trap("invented zeros", f'{{"ts": {T0}, "status": 500, "latency_ms": 0, "prompt_tokens": 7, "ttft_ms": 3}}'.encode(),
         {1: {"status": 500, "latency_ms": None, "prompt_tokens": None, "ttft_ms": None}}),
    Trap("a zero that is answered", f'{{"ts": {T0}, "status": 200, "latency_ms": 0, "prompt_tokens": 7}}'.encode(),
         {1: {"status": 200, "latency_ms": 0, "prompt_tokens": 7}}),
    Trap("end before start", attempt(f'"started_at": {T0 + 1}'), {1: {"latency_ms": None}},
         invalid=((1, "latency_ms", "ends_before_start"),)),
]  # fmt: skip


GAPS = {"far apart": 12}  # clean lines before each trap, where it is more than one


def written(folder: Path, text: bytes) -> Path:
    path = folder / "ledger.jsonl"
    path.write_bytes(text)
    return path


def expected_quarantine(trap: Trap, first_line: int, offset: int) -> list[tuple[int, int, int, str]]:
    """Return the refused lines of a trap that starts at this line and byte."""
    found = []
    for number, line in enumerate(trap.lines, start=1):
        if number in trap.quarantine:
            found.append((first_line + number - 1, offset, len(line.rstrip(b"\r")), trap.quarantine[number]))
        offset += len(line) + 1
    return found


def check(trap: Trap, reading: Reading, first_line: int, offset: int) -> None:
    """Check that a trap's lines became what they must."""
    span = range(first_line, first_line + len(trap.lines))
    events = {line - first_line + 1: event for line, event in reading.events.items() if line in span}
    assert sorted(events) == sorted(trap.events)
    for number, wanted in trap.events.items():
        assert {name: events[number].get(name) for name in wanted} == wanted
    assert [q for q in reading.quarantine if q[0] in span] == expected_quarantine(trap, first_line, offset)
    found = tuple((line - first_line + 1, name, code) for line, name, code in reading.invalid if line in span)
    assert found == trap.invalid


def check_alone(trap: Trap, folder: Path, before: int, after: int, way: str) -> None:
    """Read a trap amid clean lines and check it with every count."""
    head = b"".join(clean(number) + b"\n" for number in range(before))
    tail = b"".join(clean(before + number) + b"\n" for number in range(after))
    with reading_way(way):
        reading = read(written(folder, head + trap.text + b"\n" + tail))
    check(trap, reading, before + 1, len(head))
    counts, ordinary = reading.counts, before + after
    assert conserved(counts)
    assert counts.lines == ordinary + len(trap.lines)
    assert counts.events == ordinary + len(trap.events)
    assert (counts.quarantined, counts.invalid_values) == (len(trap.quarantine), len(trap.invalid))
    assert (counts.not_a_request, counts.blank, counts.duplicates) == (trap.not_a_request, trap.blank, 0)
    assert (counts.coerced, counts.leading_nuls) == (trap.coerced, trap.nuls)
    assert counts.unknown.counts == {"note": ordinary + trap.notes, **Counter(trap.unknown)}
    assert all(counts.unknown.first_lines[key] == before + 1 for key in trap.unknown)


def by_name(traps: list[Trap]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("trap", traps, ids=lambda trap: trap.name)


SHAPES = [trap for trap in LINES if trap.quarantine or trap.blank or trap.nuls or trap.not_a_request]


@by_name([trap for trap in SHAPES if not trap.name.startswith("time")])
def test_a_broken_line_means_the_same_alone_in_the_middle_of_many(trap: Trap, tmp_path: Path) -> None:
    check_alone(trap, tmp_path, before=100, after=100, way="as it comes")


@cache
def all_traps(way: str) -> tuple[Reading, dict[str, tuple[int, int]]]:
    """Read one ledger that holds every trap; return it with each trap's first line and byte."""
    gap = GAPS.get(way, 1)
    parts, places, line, offset = [], {}, 1, 0
    for number, trap in enumerate(LINES):
        before = b"".join(clean(gap * number + place) + b"\n" for place in range(gap))
        places[trap.name] = (line + gap, offset + len(before))
        text = before + trap.text + b"\n"
        parts.append(text)
        line, offset = line + text.count(b"\n"), offset + len(text)
    with TemporaryDirectory() as folder, reading_way(way):
        return read(written(Path(folder), b"".join(parts))), places


@pytest.mark.parametrize("way", [*WAYS, *GAPS])
@by_name(LINES)
def test_a_line_means_the_same_among_all_others_in_every_way_of_reading(trap: Trap, way: str) -> None:
    reading, places = all_traps(way)
    check(trap, reading, *places[trap.name])


@pytest.mark.parametrize("way", [*WAYS, *GAPS])
def test_every_way_of_reading_counts_the_same(way: str) -> None:
    counts, ordinary = all_traps(way)[0].counts, GAPS.get(way, 1) * len(LINES)
    assert conserved(counts)
    assert counts.lines == ordinary + sum(len(trap.lines) for trap in LINES)
    assert counts.events == ordinary + sum(len(trap.events) for trap in LINES)
    assert counts.quarantined == sum(len(trap.quarantine) for trap in LINES)
    assert counts.invalid_values == sum(len(trap.invalid) for trap in LINES)
    assert counts.not_a_request == sum(trap.not_a_request for trap in LINES)
    assert counts.blank == sum(trap.blank for trap in LINES)
    assert counts.coerced == sum(trap.coerced for trap in LINES)
    assert counts.leading_nuls == sum(trap.nuls for trap in LINES)
    unknown = Counter(key for trap in LINES for key in trap.unknown)
    assert counts.unknown.counts == {"note": ordinary + sum(trap.notes for trap in LINES), **unknown}


BODY = b"".join(clean(number) + b"\n" for number in range(40))
EDGES = [
    # name, text, events, quarantined (line, offset, length, code), blank, leading NULs, incomplete
    ("a byte order mark", b"\xef\xbb\xbf" + BODY, 40, [], 0, 0, False),
    ("a byte order mark and NULs", b"\xef\xbb\xbf\0\0" + BODY, 40, [], 0, 1, False),
    ("a byte order mark and a blank line", b"\xef\xbb\xbf\n" + BODY, 40, [], 1, 0, False),
    ("a byte order mark and a broken line", b"\xef\xbb\xbfx\n" + BODY, 40, [(1, 3, 1, "not_json")], 0, 0, False),
    ("a page of NULs first", b"\0" * 4096 + BODY, 40, [], 0, 1, False),
    ("no last newline", BODY[:-1], 40, [], 0, 0, False),
    ("a last line that is cut", BODY + OPEN, 40, [(41, len(BODY), len(OPEN), "incomplete_last_line")], 0, 0, True),
    ("a last line cut in a character", BODY + OPEN + b', "zz": "\xc3', 40,
     [(41, len(BODY), len(OPEN) + 10, "incomplete_last_line")], 0, 0, True),
    ("a last line that is cut but ended", BODY + OPEN + b"\n", 40, [(41, len(BODY), len(OPEN), "cut_short")], 0, 0, False),
    ("a last line of two objects without newline", BODY + WHOLE + WHOLE, 40,
     [(41, len(BODY), 2 * len(WHOLE), "trailing_text")], 0, 0, False),
    ("a last line of spaces without newline", BODY + b"  ", 40, [], 1, 0, False),
    ("CRLF throughout, the last without", BODY.replace(b"\n", b"\r\n")[:-2], 40, [], 0, 0, False),
    ("blank lines first and last", b"\n\n" + BODY + b"\n\n", 40, [], 4, 0, False),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("text", "events", "quarantine", "blank", "nuls", "incomplete"), [e[1:] for e in EDGES],
                         ids=[str(e[0]) for e in EDGES])
def test_the_ends_of_a_file_are_read_right(
    text: bytes, events: int, quarantine: list[tuple[int, int, int, str]], blank: int, nuls: int, incomplete: bool,  # noqa: FBT001
    way: str, tmp_path: Path,
) -> None:  # fmt: skip
    with reading_way(way):
        reading = read(written(tmp_path, text))
    counts = reading.counts
    assert conserved(counts)
    assert counts.lines == events + len(quarantine) + blank
    assert (counts.events, counts.blank, counts.leading_nuls) == (events, blank, nuls)
    assert reading.quarantine == quarantine
    assert counts.incomplete_last_line is incomplete


ZONED = [
    ("a summer time", '"2026-09-08T04:14:00"', T0 * US, None),
    ("a summer time with a space and a fraction", '"2026-09-08 04:14:00.5"', T0 * US + 500_000, None),
    ("a winter time", '"2026-01-15T03:00:00"', 1_768_442_400 * US, None),
    ("a zone of its own", '"2026-09-08T02:14:00Z"', T0 * US, None),
    ("an offset in the doubled hour", '"2026-10-25T02:30:00+02:00"', 1_792_888_200 * US, None),
    ("the doubled hour in autumn", '"2026-10-25T02:30:00"', None, "time_ambiguous"),
    ("the start of the doubled hour", '"2026-10-25T02:00:00"', None, "time_ambiguous"),
    ("just before the doubled hour", '"2026-10-25T01:59:59"', 1_792_886_399 * US, None),
    ("just after the doubled hour", '"2026-10-25T03:00:00"', 1_792_893_600 * US, None),
    ("the hour that never was in spring", '"2026-03-29T02:30:00"', None, "time_ambiguous"),
    ("just after the hour that never was", '"2026-03-29T03:00:00"', 1_774_746_000 * US, None),
]


@pytest.mark.parametrize("way", WAYS)
def test_times_without_a_zone_are_of_the_given_one_and_doubtful_ones_are_refused(way: str, tmp_path: Path) -> None:
    lines = [attempt(ts=ts) for _, ts, _, _ in ZONED]
    text = b"".join(clean(number) + b"\n" + line + b"\n" for number, line in enumerate(lines))
    with reading_way(way):
        reading = read(written(tmp_path, text), zone="Europe/Berlin")
    for number, (name, _, us, code) in enumerate(ZONED):
        line = 2 * number + 2
        assert reading.events.get(line, {}).get("ts_us") == us, name
        assert [q[3] for q in reading.quarantine if q[0] == line] == ([code] if code else []), name
    assert conserved(reading.counts)
    assert reading.counts.naive_times == 9


@pytest.mark.parametrize("way", WAYS)
def test_a_known_key_that_first_appears_after_the_sample_is_read_like_any_other(way: str, tmp_path: Path) -> None:
    lines = [clean(number) for number in range(5200)]
    lines[4999] = attempt('"queue_depth": 7, "tenant": "t", "client_closed": true, "reason": 5, "zz": 1')
    lines[5000] = attempt('"queue_depth": 1.5, "tenant": ["t"], "client_closed": "no", "zz": "a"')
    with reading_way("as it comes" if way == "tiny blocks" else way):
        reading = read(written(tmp_path, b"\n".join(lines) + b"\n"))
    wanted: dict[str, object] = {"queue_depth": 7, "tenant": "t", "client_closed": True, "reason": "5"}
    assert {name: reading.events[5000].get(name) for name in wanted} == wanted
    assert not {"queue_depth", "tenant", "client_closed"} & set(reading.events[5001])
    assert reading.invalid == [
        (5001, "client_closed", "not_a_flag"), (5001, "queue_depth", "not_integral"), (5001, "tenant", "not_text"),
    ]  # fmt: skip
    assert (reading.counts.unknown.counts["zz"], reading.counts.unknown.first_lines["zz"]) == (2, 5000)
    assert reading.counts.events == 5200
    assert conserved(reading.counts)


@pytest.mark.parametrize("way", WAYS)
def test_a_key_that_changes_its_type_midway_keeps_every_value(way: str, tmp_path: Path) -> None:
    events: list[dict[str, object]] = [{"ts": T0 + n, "status": 200, "request_id": n, "latency_ms": n} for n in range(300)]
    events += [{"ts": str(T0 + n), "status": "200", "request_id": f"{n}", "latency_ms": f"{n}"} for n in range(300, 600)]
    with reading_way(way):
        reading = read(written(tmp_path, jsonl(events)))
    assert [reading.events[n + 1]["request_id"] for n in range(600)] == [str(n) for n in range(600)]
    assert [reading.events[n + 1]["latency_ms"] for n in range(600)] == list(range(600))
    assert [reading.events[n + 1]["ts_us"] for n in range(600)] == [(T0 + n) * US for n in range(600)]
    assert {event["status"] for event in reading.events.values()} == {200}
    assert (reading.counts.coerced, reading.counts.quarantined) == (600, 0)


@pytest.mark.parametrize("way", ["as it comes", "by the exact parser"])
@pytest.mark.parametrize(("size", "end"), [(16 * MIB + 1, b"\n"), (18 * MIB, b"\r\n"), (33 * MIB, b"\n")])
def test_lines_over_16_mib_are_refused_one_by_one_and_cost_no_other(size: int, end: bytes, way: str, tmp_path: Path) -> None:
    start, finish = OPEN + b', "zz": "', b'"}'
    long = start + b"x" * (size - len(start) - len(finish)) + finish
    few = b"".join(clean(number) + b"\n" for number in range(3))
    more = b"".join(clean(number) + b"\n" for number in range(3, 6))
    rest = b"".join(clean(number) + b"\n" for number in range(6, 9))
    with reading_way(way):
        reading = read(written(tmp_path, few + long + end + more + long + end + rest))
    assert sorted(reading.events) == [1, 2, 3, 5, 6, 7, 9, 10, 11]
    second = len(few) + size + len(end) + len(more)
    assert reading.quarantine == [(4, len(few), size, "too_long"), (8, second, size, "too_long")]
    assert conserved(reading.counts)


def test_a_line_of_just_16_mib_is_read(tmp_path: Path) -> None:
    start, finish = OPEN + b', "zz": "', b'"}'
    long = start + b"x" * (16 * MIB - len(start) - len(finish)) + finish
    reading = read(written(tmp_path, BODY + long + b"\n" + BODY.replace(b'"r', b'"s')))
    assert (reading.counts.events, reading.counts.quarantined) == (81, 0)


def test_a_first_line_longer_than_the_sample_is_no_reason_to_refuse_a_ledger(tmp_path: Path) -> None:
    long = attempt('"zz": "' + "x" * (2 * MIB) + '"')
    reading = read(written(tmp_path, long + b"\n" + BODY))
    assert (reading.counts.events, reading.counts.lines) == (41, 41)


@pytest.mark.parametrize(
    "text", [b"", b"\n\n", b"\xef\xbb\xbf", b"hello\n", b"[1]\n", b"\0\0\n", b"12\n", b'{"a": 1}\n', b"{}\n"]
)
def test_what_is_no_ledger_is_refused_in_one_line(text: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError) as problem:
        read(written(tmp_path, text))
    assert "\n" not in str(problem.value)


def test_the_same_event_again_counts_once(tmp_path: Path) -> None:
    with_id = {"ts": T0, "status": 200, "request_id": "a"}
    between_seconds = {"ts": T0 + 0.5, "status": 200}
    whole_second = {"ts": T0, "status": 200}
    other_content = {"ts": T0, "status": 500, "request_id": "a"}
    reading = read(written(tmp_path, jsonl([with_id, between_seconds, whole_second, with_id, between_seconds, whole_second,
                                            other_content, with_id])))  # fmt: skip
    assert sorted(reading.events) == [1, 2, 3, 6, 7]
    assert reading.counts.duplicates == 3
    assert conserved(reading.counts)


def test_events_out_of_order_and_from_the_future_are_kept(tmp_path: Path) -> None:
    reading = read(written(tmp_path, jsonl([{"ts": 4_000_000_000, "status": 200}, {"ts": T0, "status": 200}])))
    assert [reading.events[line]["ts_us"] for line in (1, 2)] == [4_000_000_000 * US, T0 * US]


def test_the_number_of_threads_changes_nothing(tmp_path: Path) -> None:
    text = b"".join(clean(number) + b"\n" + trap.text + b"\n" for number, trap in enumerate(LINES[60:]))
    path = written(tmp_path, text)
    with reading_way("tiny blocks"):
        one, eight = read(path, threads=1), read(path, threads=8)
    assert one == eight
