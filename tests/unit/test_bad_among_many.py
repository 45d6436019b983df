"""A few bad or odd lines among thousands of good ones: nothing else is lost, and places are right."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.ledgers import T0, Reading, conserved, read, reading_way
from tests.wrapping import WRAPS

LINES = 480
BAD = (0, 1, 140, 260, 261, LINES - 1)


def good(number: int, more: str = "") -> bytes:
    """Return the line of an ordinary answer; `more` are members that follow."""
    return (
        f'{{"ts": {T0 + number}.25, "request_id": "r{number}", "route": "complete", "traffic": "user", "status": 200, '
        f'"latency_ms": 120.5, "deadline_ms": 8000, "prompt_tokens": {number}, "finish_reason": "stop"{more}}}'
    ).encode()


# How a good line is broken, and what the line is refused for; None where it is kept and loses a field at most.
DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str | None]] = {
    "cut short": (lambda line: line[:60], "cut_short"),
    "a colon lacks": (lambda line: line.replace(b'"status": ', b'"status" '), "not_json"),
    "a comma lacks": (lambda line: line.replace(b', "status"', b' "status"'), "not_json"),
    "two values of a key": (lambda line: line[:-1] + b', "status": 503}', "conflicting_key"),
    "text behind": (lambda line: line + b"{}", "trailing_text"),
    "two objects": (lambda line: line + b" " + line, "trailing_text"),
    "no object": (lambda line: b"[" + line + b"]", "not_an_object"),
    "not UTF-8": (lambda line: line.replace(b"user", b"us\xffer"), "not_utf8"),
    "too deep": (lambda line: line[:-1] + b', "x": ' + b"[" * 300 + b"]" * 300 + b"}", "too_deep"),
    "a word for a number": (lambda line: line.replace(b'"status": 200', b'"status": "ok"'), None),
    "a number for a word": (lambda line: line.replace(b'"stop"', b"7"), None),
    "a list for a number": (lambda line: line.replace(b"120.5", b"[1]"), None),
    "an infinite number": (lambda line: line.replace(b"120.5", b"1e999"), None),
    "NULs before": (lambda line: b"\0\0" + line, None),
    "a key that nobody knows": (lambda line: line[:-1] + b', "zz": 1}', None),
    "a key of a name of one line": (lambda line: line[:-1] + b', "zz_' + line[7:17] + b'": 1}', None),
}


def both_ways(lines: list[bytes], end: bytes, folder: Path) -> Reading:
    """Read lines as they come and by the exact parser; return what both make of them."""
    path = folder / "ledger.jsonl"
    path.write_bytes(end.join(lines) + end)
    with reading_way("by the exact parser"):
        exact = read(path)
    found = read(path)
    assert found == exact
    assert conserved(found.counts)
    return found


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_few_bad_lines_cost_nothing_but_themselves(damage: str, end: bytes, tmp_path: Path) -> None:
    broken, code = DAMAGES[damage]
    lines = [good(number) for number in range(LINES)]
    for number in BAD:
        lines[number] = broken(lines[number])
    found = both_ways(lines, end, tmp_path)
    starts = [sum(len(line) + len(end) for line in lines[:number]) for number in BAD]
    refused = [(n + 1, at, len(lines[n]), code) for n, at in zip(BAD, starts, strict=True)] if code else []
    assert found.quarantine == refused
    assert found.counts.events == LINES - len(refused)
    untouched = [number for number in range(LINES) if number not in BAD]
    assert [found.events[number + 1]["prompt_tokens"] for number in untouched] == untouched


@pytest.mark.parametrize(
    ("first", "then"),
    [("1", "1.5"), ("1", '"a"'), ('"a"', "1"), ('"2026-09-08T02:14:00Z"', '"soon"'), ("null", "1"), ("null", '"a"'),
     ("true", "1"), ('{"a": 1}', "[1]"), ('{"a": 1}', '{"a": "x", "b": 2}'), ("[1]", '["a"]'), ("1", "9007199254740993"),
     ("1", "1e999")],
)  # fmt: skip
@pytest.mark.parametrize(
    "later", [range(LINES // 2, LINES), range(1, LINES, 2), [LINES - 1]], ids=["half", "each other", "the last"],
)
def test_a_key_that_nobody_knows_may_hold_what_it_will(first: str, then: str, later: Sequence[int], tmp_path: Path) -> None:
    values = [then if number in later else first for number in range(LINES)]
    found = both_ways([good(number, f', "zz": {value}') for number, value in enumerate(values)], b"\n", tmp_path)
    assert found.counts.events == LINES
    held = [number for number, value in enumerate(values) if value != "null"]
    assert found.counts.unknown.counts == {"zz": len(held)}
    assert found.counts.unknown.first_lines == {"zz": held[0] + 1}


@pytest.mark.parametrize("more", [
    '"user_agent": "curl/8"', '"user_agent": "kube-probe/1.2"', '"started_at": 1788833600',
    '"started_at": "2026-09-08T02:13:00Z"',
    '"timestamp": 1788833600', '"latency_s": 0.5', '"deadline_s": 3', '"queue_age_ms": 3', '"ttft_ms": 5', '"total_tokens": 5',
    '"actual_tokens": 7', '"completion_tokens": 4', '"cached_tokens": 3', '"stream": true', '"error": "x"', '"reason": "x"',
    '"decision": "allow"', '"client_closed": true', '"idempotency_key": "k"', '"model": "m"', '"prefix": "abc"', '"zz": 1',
    '"answer": "yes"', '"retry_after_ms": 100',
])  # fmt: skip
def test_a_line_is_the_same_again_whatever_stands_around_it(more: str, tmp_path: Path) -> None:
    # Leading NULs send lines to the exact parser.
    lines = [good(number) for number in range(60)]
    lines += [b"\0" + good(60, f", {more}"), b"\0" + good(7), good(8)]
    found = both_ways(lines, b"\n", tmp_path)
    assert (found.counts.lines, found.counts.duplicates) == (63, 2)


def test_more_keys_that_nobody_knows_than_are_announced_are_all_counted(tmp_path: Path) -> None:
    keys = [f"zz_{a}{b}" for a in "abcdefghijklmnopqrst" for b in "abcdefghij"]
    found = both_ways([good(number, f', "{keys[number // 3]}": 1') for number in range(600)], b"\n", tmp_path)
    assert found.counts.unknown.counts == dict.fromkeys(keys, 3)


def test_lines_that_mostly_differ_are_read_all_the_same(tmp_path: Path) -> None:
    lines = [good(number, "".join(f', "zz_{k}": "a\\"b"' for k in range(number % 40))) for number in range(LINES)]
    lines[77] = lines[77][:-1] + b', "status": 503}'
    found = both_ways(lines, b"\n", tmp_path)
    assert [line for line, *_ in found.quarantine] == [78]
    assert found.counts.events == LINES - 1


# What happens to a wrapped line itself: how it is broken, and what becomes of it.
WRAPPED_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda line: line[:70],
    "a byte lacks": lambda line: line.replace(b'"status": ', b'"status" ').replace(b'\\"status\\": ', b'\\"status\\" '),
    "blank": lambda _: b"",
    "NULs before": lambda line: b"\0\0" + line,
    "no wrapper": lambda _: good(0, ', "zz": 1'),
    "not UTF-8": lambda line: line.replace(b"complete", b"compl\xffte"),
}


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("damage", WRAPPED_DAMAGES)
def test_a_few_bad_wrapped_lines_cost_nothing_but_themselves(damage: str, wrap: str, end: bytes, tmp_path: Path) -> None:
    count, bad = 120, (0, 75)
    lines = [WRAPS[wrap](good(number)) for number in range(count)]
    for number in bad:
        lines[number] = WRAPPED_DAMAGES[damage](lines[number])
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(end.join(lines) + end)
    found = read(path)
    with reading_way("tiny blocks"):
        assert read(path) == found
    assert conserved(found.counts)
    for line, offset, length, _ in found.quarantine:
        assert path.read_bytes()[offset : offset + length] == lines[line - 1]
    untouched = [number for number in range(count) if number not in bad]
    assert [found.events[number + 1]["prompt_tokens"] for number in untouched] == untouched
    # An entry of the journal that has no message carries no text.
    is_no_text = (damage, wrap) == ("no wrapper", "journald")
    assert [line - 1 for line, *_ in found.quarantine] == ([] if damage in ("blank", "NULs before") or is_no_text else [*bad])
    assert (found.counts.blank, found.counts.other_text) == (2 * (damage == "blank"), 2 * is_no_text)


@pytest.mark.parametrize("gap", [b"", b"no record"], ids=["blank lines", "other text"])
@pytest.mark.parametrize(("levels", "code"), [(256, None), (257, "too_deep"), (300, "too_deep")])
def test_a_line_may_be_nested_256_levels_deep_whatever_stands_around_it(
    levels: int, code: str | None, gap: bytes, tmp_path: Path
) -> None:
    lists = levels - 1  # within the line's own object
    lines = [good(number) for number in range(LINES)]
    deep = 2 * LINES // 3
    lines[deep] = good(deep, f', "zz": {"[" * lists}{"]" * lists}')
    lines[100:100] = [gap] * 400
    found = both_ways(lines, b"\n", tmp_path)
    refused = [line for line, _, _, why in found.quarantine if why == "too_deep"]
    assert refused == ([deep + 400 + 1] if code else [])
    assert found.counts.events == LINES - len(refused)
