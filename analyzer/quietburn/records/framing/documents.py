"""Cut JSON documents into records: arrays, pretty-printed objects, several objects on one line.

A document is read as a stream: what is held is one record that has not ended, and a chunk.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from quietburn.records.lines import BLOCK_BYTES, MAX_LINE_BYTES, Block
from quietburn.records.reasons import Fault, LineFault
from quietburn.records.records import Records

# A raw line feed ends a string that has no end: a lost quote costs its record, not all that follow.
_TOKEN = re.compile(rb'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+(?P<end>"?)|[{}\[\]]')
_CLOSED_BY = {ord("{"): ord("}"), ord("["): ord("]")}
_BETWEEN = b" \t\r\n,[]\0\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class _Piece:
    """What stands in a document: a record, or text between records that is none."""

    start: int
    text: bytes
    fault: LineFault | None = None


@dataclass
class _Scanner:
    """Finds the records in a text that arrives in chunks; offsets count from the text's start."""

    held: bytes = b""
    at: int = 0  # offset of the first byte that is held
    scanned: int = 0  # how much of what is held was looked at
    opened: bytearray = field(default_factory=bytearray)  # brackets of the record that has begun; none between records
    broken_at: int | None = None  # where that record is closed by a bracket that it did not open
    is_passed_over: bool = False  # that record, which is too long
    pieces: list[_Piece] = field(default_factory=list)

    def feed(self, chunk: bytes, *, is_last: bool) -> list[_Piece]:
        """Take more of the text; return what has ended in it."""
        self.held += chunk
        self.pieces = []
        while self._scan(is_last=is_last):
            pass
        return self.pieces

    def _scan(self, *, is_last: bool) -> bool:
        """Look at what is new; whether there is more to look at, since a record was given up."""
        start = 0  # of the record, or of the text between two
        for match in _TOKEN.finditer(self.held, self.scanned):
            if self.held[match.start()] == ord('"'):
                if not match["end"] and not is_last and match.end() >= len(self.held) - 1:  # it may go on
                    break
            else:
                start = self._bracket(start, match.start())
                if self.broken_at is not None:
                    break
            self.scanned = match.end()
        if not self.opened:
            end = len(self.held) if is_last else self.scanned
            self._between(start, end)
            self._drop(end)
            return False
        self._drop(self.scanned if self.is_passed_over else start)
        if self.broken_at is None and (self.is_passed_over or (not is_last and len(self.held) <= MAX_LINE_BYTES)):
            return False
        return self._give_up(is_last=is_last)

    def _bracket(self, start: int, at: int) -> int:
        """Take a bracket; return where the record starts that it is in, or the text between two."""
        mark = self.held[at]
        if self.opened:
            if mark in b"{[":
                self.opened.append(mark)
                return start
            if _CLOSED_BY[self.opened[-1]] != mark:
                self.broken_at = at + (mark == ord("}"))  # the record ends there, as far as can be told
                return start
            self.opened.pop()
            if self.opened:
                return start
            if not self.is_passed_over:
                self.pieces.append(_Piece(self.at + start, self.held[start : at + 1]))
            self.is_passed_over = False
            return at + 1
        if mark != ord("{"):
            return start
        self._between(start, at)
        self.opened.append(mark)
        return at

    def _between(self, start: int, end: int) -> None:
        """Refuse text between records that is none."""
        text = self.held[start:end]
        bare = text.lstrip(_BETWEEN)
        if bare:
            begun = start + len(text) - len(bare)
            self.pieces.append(_Piece(self.at + begun, bare.rstrip(_BETWEEN), LineFault.NOT_JSON))

    def _give_up(self, *, is_last: bool) -> bool:
        """Refuse a record that has no end, up to where another one begins a line as it did; whether there is more to look at."""
        broken_at = len(self.held) if self.broken_at is None else self.broken_at
        following = re.compile(rb"\n" + re.escape(self._indent) + rb"\{").search(self.held, 1, broken_at)
        goes_on = following is not None or self.broken_at is not None
        cut = following.end() - 1 if following else broken_at
        fault = LineFault.CUT_SHORT if goes_on else LineFault.INCOMPLETE_LAST_LINE if is_last else LineFault.TOO_LONG
        if not self.is_passed_over:
            self.pieces.append(_Piece(self.at, self.held[:cut].rstrip(), fault))
        self.broken_at, self.is_passed_over = None, not goes_on
        self._drop(cut if goes_on else self.scanned)
        if goes_on:
            self.scanned = 0
            self.opened.clear()
        return goes_on

    _indent: bytes = b""

    def _drop(self, count: int) -> None:
        """Let go what was dealt with."""
        if count:
            before = self.held[:count]
            line = before[before.rfind(b"\n") + 1 :]
            self._indent = line if not line.strip() else b""
            self.held, self.at, self.scanned = self.held[count:], self.at + count, max(0, self.scanned - count)
            self.broken_at = None if self.broken_at is None else self.broken_at - count


def records_of_document(stream: BinaryIO) -> Iterator[Records]:
    """Yield the records of a document, chunk by chunk; a record stands on the line on which it starts."""
    scanner, offset, feeds_before = _Scanner(), 0, 0
    lines = _Lines()
    chunk = stream.read(BLOCK_BYTES)
    while chunk:
        following = stream.read(BLOCK_BYTES)
        lines.add(chunk, offset)
        block = Block(chunk, feeds_before + 1, offset, is_last=False, feeds=chunk.count(b"\n"))
        yield _records(block, scanner.feed(chunk, is_last=not following), lines, is_last=not following)
        offset, feeds_before = offset + len(chunk), feeds_before + block.feeds
        lines.forget(scanner.at)
        chunk = following


class _Lines:
    """Tells on which line an offset lies, of the chunks that are not dealt with yet."""

    def __init__(self) -> None:
        self._feeds = np.zeros(0, np.int64)
        self._passed = 0

    def add(self, chunk: bytes, offset: int) -> None:
        found = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")) + offset
        self._feeds = np.concatenate([self._feeds, found])

    def number(self, offset: int) -> int:
        return 1 + self._passed + int(np.searchsorted(self._feeds, offset))

    def forget(self, offset: int) -> None:
        count = int(np.searchsorted(self._feeds, offset))
        self._passed, self._feeds = self._passed + count, self._feeds[count:]


def _records(block: Block, pieces: list[_Piece], lines: _Lines, *, is_last: bool) -> Records:
    records = Records(block, len(pieces), physical_lines=block.feeds + (is_last and block.is_open))
    whole = [piece for piece in pieces if piece.fault is None]
    records.texts = [piece.text for piece in whole]
    records.numbers = np.array([lines.number(piece.start) for piece in whole], np.int64)
    records.offsets = np.array([piece.start for piece in whole], np.int64)
    records.lengths = np.array([len(piece.text) for piece in whole], np.int64)
    records.faults = [
        Fault(lines.number(piece.start), piece.start, len(piece.text), piece.fault) for piece in pieces if piece.fault is not None
    ]
    return records


_MOST_STRAY = 0.25  # of what stands in a document may be no record


def sample_records(head: bytes) -> list[bytes]:
    """Return the records at the beginning of a file that may be a document; none where it looks like something else."""
    pieces = _Scanner().feed(head, is_last=False)
    whole = [piece.text for piece in pieces if piece.fault is None]
    stray = sum(_weight(piece.text) for piece in pieces if piece.fault is not None)
    return whole if stray <= _MOST_STRAY * (stray + len(whole)) else []


def _weight(text: bytes) -> int:
    """Return for how many a stray piece counts: a record without its end for one, other text for its lines.

    Many refused lines in a row are one piece; they must not make a ledger of lines look like a document.
    """
    return 1 if text.lstrip()[:1] in (b"{", b"[") else len(text.split(b"\n"))
