"""Blocks of wrapped lines into blocks whose records are laid bare, each with its physical line's place."""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np

from quietburn.ledger.blocks import (
    BLANK,
    MAX_LINE_BYTES,
    Block,
    Flags,
    Line,
    LongLine,
    Segment,
    SplitBlock,
    all_plain,
    count_feeds,
    is_plain,
    line_starts,
    looks_plain,
    odd_rows,
    physical_lines,
    runs_between,
    segment_lines,
)
from quietburn.ledger.careful import Refused
from quietburn.ledger.joining import Joined, Joiner
from quietburn.ledger.reasons import Fault, LineFault
from quietburn.ledger.wrappers import STREAMS, Payload, Payloads, Wrapper

_BLOCKS_AHEAD = 4
_JSON_STARTS = b'["-0123456789tfnNI'


def unwrapped(
    arriving: Iterator[Block | LongLine], wrapper: Wrapper | None, pool: Executor
) -> Iterator[Block | LongLine]:
    """Lay bare the records of wrapped blocks, in order; without a wrapper everything passes as it is.

    Blocks of whole lines are unwrapped in the pool. Parts of long lines are joined here, in file
    order and across blocks.
    """
    if wrapper is None:
        yield from arriving
        return
    joiner, end_line, end_at = Joiner(), 1, 0
    for item, fast in _ahead(arriving, wrapper, pool):
        if isinstance(item, LongLine):
            end_line, end_at = item.number + 1, item.offset + item.length
            yield item
            continue
        block = None if fast is None else fast.result()
        if block is None or (joiner.is_waiting and not block.has_parts):
            ready = _line_by_line(item, wrapper, joiner)
        else:
            ready = block.finished(joiner)
        yield replace(item, ready=ready)
        end_line, end_at = item.first_line + item.feeds, item.offset + len(item.data)
    joiner.close()
    if joiner.faults:  # lines of earlier blocks, which turned out to have no end
        yield Block(b"", end_line, end_at, is_last=False, feeds=0, ready=SplitBlock(None, faults=joiner.faults))


def _ahead(
    arriving: Iterator[Block | LongLine], wrapper: Wrapper, pool: Executor
) -> Iterator[tuple[Block | LongLine, "Future[_Unwrapped | None] | None"]]:
    """Unwrap a few blocks ahead of the one that is asked for."""
    waiting: deque[tuple[Block | LongLine, Future[_Unwrapped | None] | None]] = deque()
    for item in arriving:
        waiting.append((item, pool.submit(_unwrap_at_once, item, wrapper) if isinstance(item, Block) else None))
        if len(waiting) > _BLOCKS_AHEAD:
            yield waiting.popleft()
    yield from waiting


def _unwrap_at_once(block: Block, wrapper: Wrapper) -> "_Unwrapped | None":
    """Unwrap a block at once; None where too much in it is broken, blank or odd in any other way."""
    if block.is_last or not 0 < len(block.data) <= MAX_LINE_BYTES:  # then a line of it may be too long
        return None
    lines = physical_lines(block)
    found = wrapper.payloads(lines.data, block.feeds)
    if found is None:
        return _unwrap_but_odd_ones(lines, wrapper)
    starts = line_starts(found.data)
    if found.parts is None and all_plain(found.data, starts):
        return _Unwrapped(block.feeds, SplitBlock(replace(lines, data=found.data, starts=starts, lengths=lines.sizes())))
    look_plain = looks_plain(found.data, starts)
    rows = _rows(lines, found)
    if found.parts is None or found.streams is None:
        return _Unwrapped(block.feeds, _sorted(rows, look_plain))
    special = _near_parts(found.parts, found.streams)
    ordinary = _sorted(list(compress(rows, ~special)), look_plain[~special])
    in_order = [
        (Line(number, offset, text.rstrip(b"\r") if wrapper.cuts_text else text, length=length), STREAMS[stream], is_part)
        for (number, offset, length, text), stream, is_part in zip(
            compress(rows, special), found.streams[special].tolist(), found.parts[special].tolist(), strict=True
        )
    ]
    return _Unwrapped(block.feeds, ordinary, in_order)


def _unwrap_but_odd_ones(lines: Segment, wrapper: Wrapper) -> "_Unwrapped | None":
    """Unwrap the few lines that look unlike the others one by one, all others at once; None where that can't be done."""
    odd = odd_rows(lines.data)
    if not len(odd):
        return None
    others = lines.part(runs_between(odd, len(lines.numbers)))
    found = wrapper.payloads(others.data, len(others.numbers))
    if found is None or found.parts is not None:
        return None
    records = _sorted(_rows(others, found), looks_plain(found.data, line_starts(found.data)))
    for line in segment_lines(lines.part([(row, row + 1) for row in odd.tolist()])):
        payload = _payload(line, wrapper, records.split)
        if payload is None:
            continue
        if payload.is_part:
            return None
        records.add(Joined(replace(line, data=payload.data, length=line.size)))
    return _Unwrapped(len(lines.numbers), records)


def _rows(lines: Segment, found: Payloads) -> list[tuple[int, int, int, bytes]]:
    """Return number, byte offset, length and payload of each physical line."""
    places = (lines.numbers.tolist(), lines.offsets.tolist(), lines.sizes().tolist())
    return list(zip(*places, found.data.split(b"\n")[:-1], strict=True))


def _near_parts(parts: Flags, streams: "np.ndarray[Any, np.dtype[np.int64]]") -> Flags:
    """Return which lines must be looked at in order: parts, what follows one, and what a stream begins the block with."""
    special = parts.copy()
    for stream in range(len(STREAMS)):
        mine = np.flatnonzero(streams == stream)
        special[mine[:1]] = True
        special[mine[1:]] |= parts[mine[:-1]]
    return special


def _sorted(rows: list[tuple[int, int, int, bytes]], look_plain: Flags) -> "_Records":
    """Sort whole records, the plain ones at once where they are what they look like."""
    records = _Records()
    chosen = list(compress(rows, look_plain))
    texts = [row[3] for row in chosen]
    data = b"\n".join([*texts, b""])
    if texts and all_plain(data, line_starts(data)):
        records.texts, records.places = texts, [row[:3] for row in chosen]
        rows = list(compress(rows, ~look_plain))
    for number, offset, length, text in rows:
        records.add(Joined(Line(number, offset, text, length=length)))
    return records


@dataclass
class _Unwrapped:
    """A block that was unwrapped at once; what parts are in it is still to be joined, in order."""

    lines: int
    records: "SplitBlock | _Records"
    in_order: list[tuple[Line, str, bool]] = field(default_factory=list)

    @property
    def has_parts(self) -> bool:
        """Whether what a stream begins the block with was kept apart, since a part is in the block."""
        return bool(self.in_order)

    def finished(self, joiner: Joiner) -> SplitBlock:
        """Return the block's records, the joined ones among them."""
        records = self.records
        if isinstance(records, SplitBlock):
            records.lines = self.lines
            return records
        for line, stream, is_part in self.in_order:
            record = joiner.take(line, Payload(stream, line.data, is_part))
            if record is not None:
                records.add(record)
        return records.split_block(self.lines, joiner)


def _line_by_line(block: Block, wrapper: Wrapper, joiner: Joiner) -> SplitBlock:
    """Unwrap a block's lines one by one, and join parts."""
    records = _Records()
    lines = count_feeds(block.data)
    for line in _physical_lines(block):
        payload = _payload(line, wrapper, records.split)
        if payload is not None:
            unfinished = line.unfinished and wrapper.cuts_text
            record = joiner.take(Line(line.number, line.offset, payload.data, unfinished, line.size), payload)
            if record is not None:
                records.add(record)
    return records.split_block(lines + (not block.data.endswith(b"\n")), joiner)


def _payload(line: Line, wrapper: Wrapper, split: SplitBlock) -> Payload | None:
    """Return what a line carries; where it is blank, carries no text or can't be told, count it."""
    split.leading_nuls += line.data[:1] == b"\0"
    if not line.data.lstrip(b"\0").strip(BLANK):
        split.blank += 1
        return None
    found = wrapper.unwrap(line) if line.size <= MAX_LINE_BYTES else Refused(LineFault.TOO_LONG)
    if found is None:
        split.other_text += 1
    elif isinstance(found, Refused):
        split.faults.append(Fault(line.number, line.offset, line.size, found.code))
        return None
    return found


def _physical_lines(block: Block) -> Iterator[Line]:
    pieces, offset = block.data.split(b"\n"), block.offset
    unfinished = pieces[-1] != b""
    if not unfinished:
        pieces.pop()
    for index, piece in enumerate(pieces):
        yield Line(block.first_line + index, offset, piece.rstrip(b"\r"), unfinished and index == len(pieces) - 1)
        offset += len(piece) + 1


@dataclass
class _Records:
    """Sorts records into plain ones (the fast way), odd ones (the careful way), and texts that are none."""

    split: SplitBlock = field(default_factory=lambda: SplitBlock(None))
    texts: list[bytes] = field(default_factory=list)  # of the plain ones
    places: list[tuple[int, int, int]] = field(default_factory=list)  # number, byte offset and length of each

    def add(self, record: Joined) -> None:
        """Take one record; its further physical lines are noted where it may become an event."""
        line, split = record.line, self.split
        text = line.data.rstrip(b"\r")
        bare = text.lstrip(b"\0").strip(BLANK)
        split.leading_nuls += text[:1] == b"\0"
        if not bare:
            split.blank += 1 + len(record.rest)
            return
        if is_plain(text) and b"\n" not in text:
            self.texts.append(text)
            self.places.append((line.number, line.offset, line.size))
        elif _may_be_record(bare):
            split.odd.append(replace(line, data=text))
        else:
            split.other_text += 1 + len(record.rest)
            return
        split.joins += [(line.number, rest.number, rest.offset, rest.size) for rest in record.rest]

    def split_block(self, lines: int, joiner: Joiner) -> SplitBlock:
        """Return all that was taken, and what the joiner has refused by now."""
        split = self.split
        split.lines = lines
        split.faults += joiner.faults
        joiner.faults = []
        if self.texts:
            in_order = sorted(zip(self.places, self.texts, strict=True))  # a joined record comes late, with an early number
            numbers, offsets, lengths = (np.array([place[part] for place, _ in in_order], np.int64) for part in range(3))
            data = b"\n".join([*(text for _, text in in_order), b""])
            split.plain = Segment(data, line_starts(data), numbers, offsets, lengths)
        return split


def _may_be_record(bare: bytes) -> bool:
    """Whether a text is JSON or begins as an object does; all else is what applications say."""
    if bare.lstrip(b"\xef\xbb\xbf\0" + BLANK)[:1] == b"{":
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
