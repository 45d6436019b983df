"""The records of a block: the text of each, and its line and byte offset in the file."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from quietburn.records.lines import BLANK, Block, Line
from quietburn.records.reasons import Fault

Integers = np.ndarray[Any, np.dtype[np.int64]]


class Join(NamedTuple):
    """A further line of a record: number of the record's first line, and number, byte offset and length of this one."""

    first_line: int
    line: int
    byte_offset: int
    length: int


@dataclass
class Records:
    """Texts that each may be a record, with number, byte offset and length of the line on which each starts.

    `lengths` are of physical lines without their ends, None where the texts are these lines.
    `unfinished` that the file ends within the last text. What holds no record is counted.
    """

    block: Block
    lines: int = 0
    texts: list[bytes] = field(default_factory=list)
    numbers: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    offsets: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    lengths: Integers | None = None
    unfinished: bool = False
    physical_lines: int | None = None  # where records are counted: in documents
    blank: int = 0
    leading_nuls: int = 0
    joined: int = 0  # lines that belong to a record of the file before
    other_text: int = 0  # lines whose frame carries no record at all
    faults: list[Fault] = field(default_factory=list)
    joins: list[Join] = field(default_factory=list)

    def passes_over(self, text: bytes) -> bool:
        """Whether a text is blank, which is counted, and so are NULs before it."""
        self.leading_nuls += text[:1] == b"\0"
        is_blank = not text.lstrip(b"\0").strip(BLANK)
        self.blank += is_blank
        return is_blank

    def sizes(self) -> Integers:
        """Return the length of the line on which each record starts, without its end."""
        if self.lengths is not None:
            return self.lengths
        if b"\r" in self.block.data:
            return np.array([len(text.rstrip(b"\r")) for text in self.texts], np.int64)
        return np.fromiter(map(len, self.texts), np.int64, len(self.texts))

    def line(self, row: int) -> Line:
        """Return one record as the line on which it starts."""
        text = self.texts[row].rstrip(b"\r")
        last = self.unfinished and row == len(self.texts) - 1
        length = None if self.lengths is None else int(self.lengths[row])
        return Line(int(self.numbers[row]), int(self.offsets[row]), text, last, length)


def records_of_lines(block: Block) -> Records:
    """Return the records of a block in which each line is one."""
    records = Records(block, block.lines, unfinished=block.is_open)
    if block.data[:1] != b"{" and block.is_blank:  # millions of blank lines cost no list of lines
        records.blank, records.leading_nuls = block.lines, block.leading_nuls
        return records
    texts = block.data.split(b"\n")
    if not block.is_open:
        texts.pop()
    numbers = np.arange(block.first_line, block.first_line + len(texts))
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1)
    offsets = block.offset + np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    rows = [row for row, text in enumerate(texts) if text[:1] == b"{" or not records.passes_over(text)]
    if len(rows) < len(texts):
        texts, numbers, offsets = [texts[row] for row in rows], numbers[rows], offsets[rows]
    records.texts, records.numbers, records.offsets = texts, numbers, offsets
    return records
