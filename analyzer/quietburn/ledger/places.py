"""Resume points: where reading a file starts, and how far it has come."""

from dataclasses import dataclass

from quietburn.ledger import store
from quietburn.records.lines import Block, LongLine


@dataclass(frozen=True)
class Place:
    """Where reading starts: number of the next line, its byte offset, and the bytes before it."""

    line: int
    offset: int
    tail: bytes


@dataclass
class End:
    """Where reading has come to: after the last line that ended, and what stands behind it."""

    resume_at: int
    end_at: int
    tail: bytes
    open_line: int | None = None

    def pass_block(self, block: Block) -> None:
        """Note a block; in the last one of a file the last line may have no end."""
        cut = block.data.rfind(b"\n") + 1 if block.is_last else len(block.data)
        self.tail = (self.tail + block.data[:cut])[-store.TAIL_BYTES :]
        self.resume_at = block.offset + cut
        self.end_at = block.offset + len(block.data)
        if cut < len(block.data):
            self.open_line = block.first_line + block.data.count(b"\n")

    def pass_over(self, line: LongLine) -> None:
        """Note a line that was too long to be held; its bytes are not known again."""
        self.resume_at = self.end_at = line.offset + line.length
        self.tail = b""
