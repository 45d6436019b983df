"""Cut a byte stream into blocks of whole lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 16 << 20
MAX_NESTING = 256
_BOM = b"\xef\xbb\xbf"
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

    @property
    def is_open(self) -> bool:
        """Whether its last line has no end."""
        return bool(self.data) and not self.data.endswith(b"\n")

    @property
    def lines(self) -> int:
        """Return how many lines it holds."""
        return self.feeds + self.is_open

    @property
    def is_blank(self) -> bool:
        """Whether nothing but blank lines stand in it."""
        return not self.data.translate(None, _NOTHING)

    @property
    def leading_nuls(self) -> int:
        """Return how many of its lines begin with a NUL."""
        return self.data.count(b"\n\0") + self.data.startswith(b"\0")


@dataclass(frozen=True, slots=True)
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
        feeds = data.count(b"\n")
        if data:
            yield Block(data, line, offset, is_last=False, feeds=feeds)
        line += feeds
        offset += len(data)
        rest = chunk[cut:]
    if rest:
        yield Block(rest, line, offset, is_last=True, feeds=0)


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


def lines_of(block: Block) -> Iterator[Line]:
    """Yield a block's lines one by one."""
    offset, last = block.offset, block.first_line + block.feeds
    pieces = block.data.split(b"\n")
    if not block.is_open:
        pieces.pop()
    for number, piece in enumerate(pieces, block.first_line):
        yield Line(number, offset, piece.rstrip(b"\r"), unfinished=number == last)
        offset += len(piece) + 1
