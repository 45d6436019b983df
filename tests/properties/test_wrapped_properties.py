"""What holds of any wrapped ledger, tried on generated ones."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.ledgers import Reading, conserved, read
from tests.properties.test_reading_properties import CHANGES, accounted, bounded, changed, clean, written
from tests.wrapping import WRAPS, cri, docker, wrapped

from quietburn.analysis.run import Request, analyze
from quietburn.errors import QuietburnError
from quietburn.records import lines

RECORDS = [clean(number) for number in range(12)]
ENOUGH = 40  # records behind what is tried, so that the wrapper is recognized whatever became of the rest


def tail(wrap: str) -> bytes:
    return wrapped([clean(number) for number in range(100, 100 + ENOUGH)], WRAPS[wrap])


def ways(text: bytes) -> list[Reading]:
    """Read as it comes, and in small blocks."""
    found = []
    with written(text) as (path,):
        found.append(read(path))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lines, "BLOCK_BYTES", 1500)
            found.append(read(path))
    return found


def same(readings: list[Reading]) -> Reading:
    first = readings[0]
    for other in readings[1:]:
        assert other.events == first.events
        assert other.quarantine == first.quarantine
        assert other.invalid == first.invalid
        assert other.counts == first.counts
    assert conserved(first.counts)
    assert first.counts.quarantined == len(first.quarantine)
    return first


CUTS = st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.lists(st.integers(1, 330), max_size=4)),
                min_size=len(RECORDS), max_size=len(RECORDS))  # fmt: skip


@bounded(12)
@given(st.sampled_from(["cri", "docker"]), CUTS, st.randoms(use_true_random=False))
def test_records_cut_anywhere_and_interleaved_are_the_same_records(
    wrap: str, cuts: list[tuple[str, list[int]]], chance: Any
) -> None:
    queues: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
    for record, (stream, places) in zip(RECORDS, cuts, strict=True):
        ends = [*sorted({place for place in places if place < len(record)}), len(record)]
        starts = [0, *ends[:-1]]
        for start, end in zip(starts, ends, strict=True):
            piece, last = record[start:end], end == len(record)
            line = cri(piece, stream, "F" if last else "P") if wrap == "cri" else docker(piece, stream, "\n" if last else "")
            queues[stream].append(line)
    lines = []
    while any(queues.values()):
        lines.append(queues[chance.choice([stream for stream, queue in queues.items() if queue])].pop(0))
    reading = same(ways(b"\n".join(lines) + b"\n" + tail(wrap)))
    assert {event["request_id"] for line, event in reading.events.items() if line <= len(lines)} == {f"r{n}" for n in range(12)}
    assert (reading.counts.quarantined, reading.counts.joined) == (0, len(lines) - len(RECORDS))
    assert reading.counts.lines == len(lines) + ENOUGH


@bounded(20)
@given(st.sampled_from(sorted(WRAPS)), CHANGES)
@example("cri", [("insert", 200, b"\n", 0), ("insert", 900, b"\0", 0)])
@example("docker", [("insert", 300, b"}\0{", 0)])
def test_a_damaged_wrapped_ledger_reads_the_same_in_every_way(wrap: str, changes: list[tuple[str, int, bytes, int]]) -> None:
    same(ways(changed(wrapped(RECORDS, WRAPS[wrap]), changes) + b"\n" + tail(wrap)))


@bounded(10)
@given(st.sampled_from(["cri", "docker"]), st.lists(st.tuples(st.booleans(), st.booleans(), CHANGES), max_size=8))
def test_damaged_parts_read_the_same_in_every_way(
    wrap: str, pieces: list[tuple[bool, bool, list[tuple[str, int, bytes, int]]]]
) -> None:  # fmt: skip
    lines = []
    for number, (is_part, is_error, changes) in enumerate(pieces):
        stream = "stderr" if is_error else "stdout"
        text = changed(clean(number)[: 150 if is_part else None], changes[:1]).replace(b"\n", b" ")
        if wrap == "docker":
            lines.append(docker(text.decode(errors="replace").encode(), stream, "" if is_part else "\n"))
        else:
            lines.append(cri(text, stream, "P" if is_part else "F"))
    for text in (b"\n".join([*lines, b""]) + tail(wrap), tail(wrap) + b"\n".join([*lines, b""])):
        same(ways(text))


@bounded(15)
@given(st.sampled_from(sorted(WRAPS)), st.lists(st.one_of(st.binary(max_size=40), st.just(clean(0))), max_size=10))
def test_any_bytes_amid_wrapped_lines_are_a_report_or_one_clear_error(wrap: str, parts: list[bytes]) -> None:
    text = wrapped([clean(1), clean(2)], WRAPS[wrap]) + b"\n".join(parts)
    with written(text) as paths:
        try:
            report = analyze([str(path) for path in paths], Request(threads=2))
        except QuietburnError as problem:
            assert "\n" not in str(problem)
            return
    assert accounted(report)
    assert report.ledger.quarantined == len(report.quarantine)
    assert Path(report.ledger.files[0].path).name == "0.jsonl"
