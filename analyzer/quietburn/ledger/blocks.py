"""Cut a byte stream into blocks of whole lines, and a block into plain and odd lines."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from quietburn.ledger.reasons import Fault

BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 16 << 20
MAX_NESTING = 256
_BOM = b"\xef\xbb\xbf"
_FEED, _RETURN, _OPEN, _CLOSE, _BRACKET = b"\n\r{}["
_ALL_BUT_MARKS = bytes(byte for byte in range(256) if byte not in b'":,\n')
BLANK = b" \t\r\n\v\f"
_NOTHING = BLANK + b"\0"
_FEW_PLAIN = 0.5  # of a block's lines: with fewer, to look at each is no detour

Integers = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


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


@dataclass(frozen=True)
class Segment:
    """Lines that each hold one `{...}` to the eye of a byte search, each with its line end.

    `starts` are the places of the lines in the data, and its end. `numbers`, `offsets` and
    `lengths` (without the line end) are of the physical lines, one entry each; no lengths where the
    data is what stands in the file.
    """

    data: bytes
    starts: Integers
    numbers: Integers
    offsets: Integers
    lengths: Integers | None = None

    def part(self, runs: list[tuple[int, int]]) -> "Segment":
        """Return the lines of some runs, each from a first one to before another."""
        rows = np.concatenate([np.arange(first, end) for first, end in runs])
        data = b"".join([self.data[self.starts[first] : self.starts[end]] for first, end in runs])
        lengths = None if self.lengths is None else self.lengths[rows]
        return Segment(data, _starts(np.diff(self.starts)[rows]), self.numbers[rows], self.offsets[rows], lengths)

    def sizes(self) -> Integers:
        """Return the physical lines' lengths without line ends."""
        if self.lengths is not None:
            return self.lengths
        if (np.frombuffer(self.data, np.uint8)[self.starts[1:] - 2] == _RETURN).any():
            return np.array([len(_without_returns(line)) for line in self.data.split(b"\n")[:-1]], np.int64)
        return np.diff(self.starts) - 1


def _starts(widths: Integers) -> Integers:
    """Return where lines of these widths (with their line ends) begin that follow one another, and where the last one ends."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(widths)))


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
    """Sort a block's lines; the common case, nearly all plain, costs a few byte searches only."""
    if block.ready is not None:
        return block.ready
    return _split_at_once(block) or _split_line_by_line(block)


def _split_at_once(block: Block) -> SplitBlock | None:
    """Sort a block's lines by a look at where each begins and ends; None where that tells too little."""
    data = block.data
    if block.is_last or not 0 < len(data) <= MAX_LINE_BYTES:
        return None
    whole = physical_lines(block)
    plain = looks_plain(data, whole.starts) & nested_little(data, whole.starts)
    if np.count_nonzero(plain) < _FEW_PLAIN * len(plain) or not is_utf8(data):
        return None
    if plain.all():
        return SplitBlock(whole, lines=block.feeds)
    odd = np.flatnonzero(~plain)
    result = SplitBlock(whole.part(runs_between(odd, len(plain))), lines=block.feeds)
    for line in segment_lines(whole.part([(row, row + 1) for row in odd.tolist()])):
        _sort_odd(result, line)
    return result


def physical_lines(block: Block) -> Segment:
    """Return a block's lines as they stand in the file."""
    data = block.data if block.data.endswith(b"\n") else block.data + b"\n"
    starts = line_starts(data)
    return Segment(data, starts, np.arange(block.first_line, block.first_line + len(starts) - 1), starts[:-1] + block.offset)


def runs_between(rows: Integers, count: int) -> list[tuple[int, int]]:
    """Return the runs that some rows leave of so many, each from a first row to before another."""
    return [(first, end) for first, end in zip([0, *(rows + 1).tolist()], [*rows.tolist(), count], strict=True) if first < end]


def line_starts(data: bytes) -> Integers:
    """Return where the lines of a text begin that ends with a line end, and where the last one ends."""
    feeds = np.flatnonzero(np.frombuffer(data, np.uint8) == _FEED)
    return np.concatenate((np.zeros(1, np.int64), feeds + 1))


def looks_plain(data: bytes, starts: Integers) -> Flags:
    """Return of each line whether it starts with { and ends with }, but for one carriage return."""
    codes, last = np.frombuffer(data, np.uint8), starts[1:] - 2
    ends_with = codes[last]
    if (returns := ends_with == _RETURN).any():
        ends_with = codes[last - returns]
    found: Flags = (codes[starts[:-1]] == _OPEN) & (ends_with == _CLOSE)
    return found


_RARE = 0.003  # of a block's lines: what as many look like is usual, such as failed calls, which lack fields
_FEW = 0.05  # of a block's lines may go the careful way unasked: it takes some 35 times as long for a line (measured)


def odd_rows(data: bytes) -> Integers:
    """Return which of a text's lines look unlike the others, where those are a few: how many quotes, colons and commas they have.

    A key too many, a text for a number or a colon that lacks changes that number.
    """
    marks = np.diff(line_starts(data.translate(None, _ALL_BUT_MARKS)))
    _, places, counts = np.unique(marks, return_inverse=True, return_counts=True)
    odd = np.flatnonzero(counts[places] < _RARE * len(marks))
    return odd if len(odd) <= _FEW * len(marks) else odd[:0]


def nested_little(data: bytes, starts: Integers) -> Flags:
    """Return of each line whether it opens so little that it can't be nested too deep."""
    codes = np.frombuffer(data, np.uint8)
    opens = codes == _OPEN
    if b"[" in data:
        opens |= codes == _BRACKET
    # Flat lines open one object each: to count them all costs less than to tell how many each has.
    begun = np.count_nonzero(opens[starts[:-1]])
    if np.count_nonzero(opens) < begun + MAX_NESTING:
        return np.ones(len(starts) - 1, np.bool_)
    found: Flags = np.diff(np.searchsorted(np.flatnonzero(opens), starts)) <= MAX_NESTING
    return found


def all_plain(data: bytes, starts: Integers) -> bool:
    """Whether each line starts with { and ends with }, in valid UTF-8, without deep nesting."""
    return bool(looks_plain(data, starts).all() and nested_little(data, starts).all()) and is_utf8(data)


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8."""
    if data.isascii():
        return True
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
        text = _without_returns(piece)
        if is_plain(text):
            texts.append(piece)
            numbers.append(number)
            offsets.append(start)
        else:
            _sort_odd(result, Line(number, start, text, unfinished=unfinished and index == len(pieces) - 1))
    result.lines = len(pieces)
    if texts:
        data = b"\n".join(texts) + b"\n"
        result.plain = Segment(data, line_starts(data), np.array(numbers, np.int64), np.array(offsets, np.int64))
    return result


def _sort_odd(result: SplitBlock, line: Line) -> None:
    """Count a blank line, and set any other aside for the careful way."""
    result.leading_nuls += line.data[:1] == b"\0"
    if not line.data.lstrip(b"\0").strip(BLANK):
        result.blank += 1
    else:
        result.odd.append(line)


def _without_returns(piece: bytes) -> bytes:
    return piece.rstrip(b"\r")


def is_plain(text: bytes) -> bool:
    """Whether a line is one `{...}` to the eye of a byte search, in valid UTF-8, without deep nesting."""
    if text[:1] != b"{" or text[-1:] != b"}" or len(text) > MAX_LINE_BYTES:
        return False
    if len(text) > MAX_NESTING and text.count(b"{") + text.count(b"[") > MAX_NESTING:
        return False
    return is_utf8(text)


def segment_lines(segment: Segment) -> list[Line]:
    """Return the segment's lines one by one, with their places."""
    pieces = segment.data.split(b"\n")
    pieces.pop()
    places = zip(
        segment.numbers.tolist(), segment.offsets.tolist(), pieces,
        [None] * len(pieces) if segment.lengths is None else segment.lengths.tolist(), strict=True,
    )
    return [Line(number, offset, _without_returns(piece), length=length) for number, offset, piece, length in places]


def places_of(block: Block, numbers: Integers) -> list[tuple[int, int, int]]:
    """Return number, byte offset and length (without line end) of some of a block's physical lines."""
    if block.ready is None:
        lines, rows = physical_lines(block), numbers - block.first_line
        return list(zip(numbers.tolist(), lines.offsets[rows].tolist(), lines.sizes()[rows].tolist(), strict=True))
    wanted = set(numbers.tolist())
    unwrapped = [*block.ready.odd, *(segment_lines(block.ready.plain) if block.ready.plain is not None else [])]
    return [(line.number, line.offset, line.size) for line in unwrapped if line.number in wanted]
