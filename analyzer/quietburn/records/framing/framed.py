"""Take the frames off lines."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from quietburn.records.exact import Refused
from quietburn.records.framing.formats import Payload, Wrapper
from quietburn.records.framing.partial import Joined, Joiner
from quietburn.records.lines import BLANK, MAX_LINE_BYTES, Block, Line, LongLine, lines_of
from quietburn.records.reasons import Fault, LineFault
from quietburn.records.records import Join, Records

_JSON_STARTS = b'["-0123456789tfnNI'


@dataclass
class Neighbours:
    """What a rotated file shares with the ones beside it: records that a runtime split over two files.

    `follower` is the next file, `following` opens its lines; `begun_before` are lines that belong to a record of the
    file before, `continued` those of the next file that were taken.
    """

    follower: Path | None = None
    following: Callable[[], Iterator[Line]] | None = None
    begun_before: frozenset[int] = frozenset()
    continued: list[int] = field(default_factory=list)


def framed(
    arriving: Iterator[Block | LongLine], wrapper: Wrapper, beside: Neighbours
) -> Iterator[Records | LongLine]:
    """Yield the records of framed blocks; the parts of long lines are joined in file order, across blocks."""
    joiner = Joiner()
    end = Block(b"", 1, 0, is_last=False, feeds=0)
    for item in arriving:
        if isinstance(item, LongLine):
            end = Block(b"", item.number + 1, item.offset + item.length, is_last=False, feeds=0)
            yield item
            continue
        yield _records(item, wrapper, joiner, beside.begun_before)
        end = Block(b"", item.first_line + item.lines, item.offset + len(item.data), is_last=False, feeds=0)
    if joiner.is_waiting:  # for lines of earlier blocks
        yield _last_records(end, wrapper, joiner, beside)


def _last_records(end: Block, wrapper: Wrapper, joiner: Joiner, beside: Neighbours) -> Records:
    """Return what becomes of parts whose end the file does not hold."""
    taken = _Taken(end)
    for line in beside.following() if beside.following else ():
        found = wrapper.unwrap(line)
        if isinstance(found, Payload) and joiner.waits_for(found.stream):
            beside.continued.append(line.number)
            record = joiner.take(Line(_ELSEWHERE, 0, found.data), found)
            if record is not None:
                taken.add(record)
        if not joiner.is_waiting:
            break
    for joined in joiner.close():
        taken.add(joined)
    return taken.finished(joiner)


_ELSEWHERE = 0  # number of a line of the next file


def _records(block: Block, wrapper: Wrapper, joiner: Joiner, begun_before: frozenset[int]) -> Records:
    taken = _Taken(block)
    for line in lines_of(block):
        if line.number in begun_before:
            taken.records.joined += 1
            continue
        payload = _payload(line, wrapper, taken.records)
        if payload is not None:
            unfinished = line.unfinished and wrapper.cuts_text
            record = joiner.take(Line(line.number, line.offset, payload.data, unfinished, line.size), payload)
            if record is not None:
                taken.add(record)
    return taken.finished(joiner)


def _payload(line: Line, wrapper: Wrapper, records: Records) -> Payload | None:
    """Return what a line carries; where it is blank, carries no text or can't be told, count it."""
    if (not line.data or line.data[0] <= ord(" ")) and records.passes_over(line.data):
        return None
    found = wrapper.unwrap(line) if line.size <= MAX_LINE_BYTES else Refused(LineFault.TOO_LONG)
    if found is None:
        records.other_text += 1
    elif isinstance(found, Refused):
        records.faults.append(Fault(line.number, line.offset, line.size, found.code))
        return None
    return found


class _Taken:
    """Gathers what a block's lines carry: records, and texts that are none."""

    def __init__(self, block: Block) -> None:
        self.records = Records(block, block.lines)
        self._taken: list[Line] = []

    def add(self, record: Joined) -> None:
        """Take one record; its further physical lines are noted where it may become an event."""
        line, records = record.line, self.records
        if not line.data.startswith(b"{"):
            if records.passes_over(line.data):
                records.blank += len(record.rest)
                return
            if not _may_be_record(line.data):
                records.other_text += 1 + len(record.rest)
                return
        self._taken.append(line)
        here = (rest for rest in record.rest if rest.number != _ELSEWHERE)
        records.joins += [Join(line.number, rest.number, rest.offset, rest.size) for rest in here]

    def finished(self, joiner: Joiner) -> Records:
        """Return all that was taken, in file order, and what the joiner has refused by now."""
        records = self.records
        records.faults += joiner.faults
        joiner.faults = []
        self._taken.sort(key=lambda line: line.number)  # a joined record comes late, with an early number
        records.texts = [line.data for line in self._taken]
        records.numbers = np.array([line.number for line in self._taken], np.int64)
        records.offsets = np.array([line.offset for line in self._taken], np.int64)
        records.lengths = np.array([line.size for line in self._taken], np.int64)
        records.unfinished = bool(self._taken) and self._taken[-1].unfinished
        return records


def _may_be_record(text: bytes) -> bool:
    """Whether a text is JSON or begins as an object does; all else is what applications say."""
    bare = text.lstrip(b"\xef\xbb\xbf\0" + BLANK)
    if bare[:1] == b"{":
        return True
    if bare[0] not in _JSON_STARTS:
        return False
    try:
        json.loads(bare.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def sample_payloads(lines: Iterable[bytes], wrapper: Wrapper) -> list[bytes]:
    """Return what sampled lines carry, parts joined where they stand together."""
    joiner, found = Joiner(), []
    for text in lines:
        payload = wrapper.unwrap(Line(0, 0, text.strip(b"\r\0\xef\xbb\xbf"))) if text.strip() else None
        if payload is None or isinstance(payload, Refused):
            continue
        record = joiner.take(Line(0, 0, payload.data), payload)
        if record is not None:
            found.append(record.line.data)
    return found
