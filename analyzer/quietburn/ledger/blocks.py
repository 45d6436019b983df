"""Cut a byte stream into blocks of whole lines, and a block into plain and odd lines."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from quietburn.ledger.reasons import Fault

BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 16 << 20
MAX_NESTING = 256
_BOM = b"\xef\xbb\xbf"
_FEED, _OPEN, _CLOSE, _BRACKET = b"\n{}["
BLANK = b" \t\r\n\v\f"
_NOTHING = BLANK + b"\0"


@dataclass(frozen=True)
class Block:
    """Whole lines of one file: bytes, where they start, and whether the file ends after them."""

    data: bytes
    first_line: int
    offset: int
    is_last: bool
    feeds: int
    ready: "SplitBlock | None" = None  # sorted already: its lines were wrapped


@dataclass(frozen=True)
class Line:
    """One physical line: number (from 1), byte offset in the file, bytes without its line end."""

    number: int
    offset: int
    data: bytes
    unfinished: bool = False  # the file ends within it
    length: int | None = None  # of the physical line, where the bytes are only what it carries

    @property
    def size(self) -> int:
        """Return the physical line's length without its line end."""
        return len(self.data) if self.length is None else self.length


@dataclass(frozen=True)
class LongLine:
    """A line over the limit; its bytes were not kept. `length` is without the line end."""

    number: int
    offset: int
    length: int


@dataclass
class Segment:
    """Lines that each hold one `{...}` to the eye of a byte search, joined by line feeds."""

    data: bytes
    numbers: list[int] | range
    offsets: list[int] | None  # None: computed from the data when someone asks
    lengths: list[int] | None = None  # of the physical lines, where the data is only what they carry


@dataclass
class SplitBlock:
    """A block sorted into plain lines (the fast way) and odd ones (the careful way)."""

    plain: Segment | None
    odd: list[Line] = field(default_factory=list)
    blank: int = 0
    lines: int = 0
    leading_nuls: int = 0
    faults: list[Fault] = field(default_factory=list)
    other_text: int = 0  # lines whose wrapper carries no record at all
    joins: list[tuple[int, int, int, int]] = field(default_factory=list)  # see `joins.py`


def blocks(stream: BinaryIO, first_line: int = 1, first_offset: int = 0) -> Iterator[Block | LongLine]:
    """Yield the stream's lines in blocks of about 4 MiB, in order.

    A line longer than 16 MiB is passed over without being held, and yielded as a LongLine.
    """
    rest, offset, line = b"", first_offset, first_line
    first = first_offset == 0
    while chunk := _fill(stream):
        if first and chunk.startswith(_BOM):
            chunk, offset = chunk[len(_BOM) :], len(_BOM)
        first = False
        cut = chunk.rfind(b"\n") + 1
        if cut == 0:
            rest += chunk
            if len(rest) > MAX_LINE_BYTES and rest.startswith(b"\0"):
                # A log truncated in place may begin with gigabytes of NULs: one of them tells as much.
                kept = b"\0" + rest.lstrip(b"\0")
                offset, rest = offset + len(rest) - len(kept), kept
            if len(rest) <= MAX_LINE_BYTES:
                continue
            passed, length, chunk = _skip_line(stream, rest)
            yield LongLine(line, offset, length)
            offset, line = offset + passed, line + 1
            rest, cut = b"", chunk.rfind(b"\n") + 1
        data = b"".join((rest, memoryview(chunk)[:cut]))  # one copy, not two
        feeds = count_feeds(data)
        if data:
            yield Block(data, line, offset, is_last=False, feeds=feeds)
        line += feeds
        offset += len(data)
        rest = chunk[cut:]
    if rest:
        yield Block(rest, line, offset, is_last=True, feeds=0)


def count_feeds(data: bytes) -> int:
    """Return how many line feeds there are."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _FEED))


def _fill(stream: BinaryIO) -> bytes:
    """Read a block's worth of bytes, however few a read gives; fewer only at the end."""
    parts: list[bytes] = []
    held = 0
    while held < BLOCK_BYTES and (part := stream.read(BLOCK_BYTES - held)):
        parts.append(part)
        held += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _skip_line(stream: BinaryIO, begun: bytes) -> tuple[int, int, bytes]:
    """Read to the end of an overlong line; return its bytes with and without the line end, and what follows."""
    held, before = len(begun), begun[-1:]
    while chunk := _fill(stream):
        cut = chunk.find(b"\n") + 1
        if cut:
            ending = (before + chunk[:cut])[-2:]
            return held + cut, held + cut - (2 if ending == b"\r\n" else 1), chunk[cut:]
        held, before = held + len(chunk), chunk[-1:]
    return held, held, b""


def split_block(block: Block) -> SplitBlock:
    """Sort a block's lines; the common case, all plain, costs a few byte searches only."""
    if block.ready is not None:
        return block.ready
    data = block.data
    feeds = block.feeds
    if not block.is_last and len(data) <= MAX_LINE_BYTES and all_plain(data, feeds):
        numbers = range(block.first_line, block.first_line + feeds)
        return SplitBlock(Segment(data, numbers, None), lines=feeds)
    return _split_line_by_line(block)


def all_plain(data: bytes, feeds: int) -> bool:
    """Whether each line starts with { and ends with }, in valid UTF-8, without deep nesting."""
    if not (data.startswith(b"{") and data.endswith(b"}\n")):
        return False
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes == _FEED)
    if not ((codes[ends - 1] == _CLOSE).all() and (codes[ends[:-1] + 1] == _OPEN).all()):
        return False
    opened = np.count_nonzero(codes == _OPEN) + np.count_nonzero(codes == _BRACKET)
    return bool(opened <= feeds + MAX_NESTING) and (data.isascii() or _is_utf8(data))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _split_line_by_line(block: Block) -> SplitBlock:
    result = SplitBlock(None)
    if not block.is_last and not block.data.translate(None, _NOTHING):
        # Millions of blank lines cost no list of lines.
        result.lines = result.blank = block.feeds
        result.leading_nuls = block.data.count(b"\n\0") + block.data.startswith(b"\0")
        return result
    texts: list[bytes] = []
    numbers: list[int] = []
    offsets: list[int] = []
    offset = block.offset
    pieces = block.data.split(b"\n")
    unfinished = bool(pieces[-1])
    if not unfinished:
        pieces.pop()
    for index, piece in enumerate(pieces):
        number, start = block.first_line + index, offset
        offset += len(piece) + 1
        text = piece.rstrip(b"\r")
        result.leading_nuls += text[:1] == b"\0"
        if not text.lstrip(b"\0").strip(BLANK):
            result.blank += 1
        elif is_plain(text):
            texts.append(text)
            numbers.append(number)
            offsets.append(start)
        else:
            is_cut = unfinished and index == len(pieces) - 1
            result.odd.append(Line(number, start, text, unfinished=is_cut))
    result.lines = len(pieces)
    if texts:
        result.plain = Segment(b"\n".join(texts) + b"\n", numbers, offsets)
    return result


def is_plain(text: bytes) -> bool:
    """Whether a line is one `{...}` to the eye of a byte search, in valid UTF-8, without deep nesting."""
    if text[:1] != b"{" or text[-1:] != b"}" or len(text) > MAX_LINE_BYTES:
        return False
    if len(text) > MAX_NESTING and text.count(b"{") + text.count(b"[") > MAX_NESTING:
        return False
    return text.isascii() or _is_utf8(text)


def segment_lines(segment: Segment, block_offset: int) -> list[Line]:
    """Return the segment's lines one by one, with their places."""
    pieces = segment.data.split(b"\n")
    pieces.pop()
    offsets = segment.offsets
    if offsets is None:
        offsets, place = [], block_offset
        for piece in pieces:
            offsets.append(place)
            place += len(piece) + 1
    if segment.lengths is None:
        return [Line(n, o, p) for n, o, p in zip(segment.numbers, offsets, pieces, strict=True)]
    places = zip(segment.numbers, offsets, pieces, segment.lengths, strict=True)
    return [Line(n, o, p, length=length) for n, o, p, length in places]


def all_lines(block: Block) -> list[Line]:
    """Return a block's lines one by one, plain and odd ones, with their places."""
    split = split_block(block)
    return [*split.odd, *(segment_lines(split.plain, block.offset) if split.plain is not None else [])]
