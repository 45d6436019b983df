"""Join partial lines: a runtime cuts a line that is longer than its buffer."""

from dataclasses import dataclass, field

from quietburn.records.exact import Refused, parse_line
from quietburn.records.framing.formats import Payload
from quietburn.records.lines import MAX_LINE_BYTES, Line
from quietburn.records.reasons import Fault, LineFault

_MOST_PARTS = 1 << 16  # a place costs memory too, however short the text; runtimes write parts of 4 KiB and more
_MOST_STREAMS = 64  # that wait at a time: journald has one for each connection
_MOST_HELD = 4 * MAX_LINE_BYTES  # of all streams that wait
_TRIED = 4  # parts that look like a start: ordinary text has hardly one


@dataclass(frozen=True, slots=True)
class Joined:
    """A record of several physical lines; the others than the first stand in `rest`."""

    line: Line
    rest: tuple[Line, ...] = ()


@dataclass
class _Waiting:
    """Parts of a line whose end has not come yet; once they are too long only that is kept."""

    parts: list[Line] = field(default_factory=list)
    length: int = 0
    is_too_long: bool = False


class Joiner:
    """Joins the parts of one file's lines, stream by stream; what it refuses gathers in `faults`."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._waiting: dict[str, _Waiting] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether a part waits for the rest of its line."""
        return bool(self._waiting)

    def waits_for(self, stream: str) -> bool:
        """Whether a part of a stream waits for the rest of its line."""
        return stream in self._waiting

    def take(self, line: Line, payload: Payload) -> Joined | None:
        """Take what a physical line carries; return a record when this is its end.

        `line` holds the payload as its data, and the physical line's place and length.
        """
        waiting = self._waiting.get(payload.stream)
        if waiting is None:
            if not payload.is_part:
                return Joined(line)
            waiting = self._waiting[payload.stream] = _Waiting()
        self._add(waiting, line)
        self._bound(payload.stream)
        if payload.is_part:
            return None
        del self._waiting[payload.stream]
        return None if waiting.is_too_long else self._whole(waiting.parts)

    def _add(self, waiting: _Waiting, line: Line) -> None:
        waiting.parts.append(line)
        waiting.length += len(line.data)
        waiting.is_too_long |= waiting.length > MAX_LINE_BYTES or len(waiting.parts) > _MOST_PARTS
        if waiting.is_too_long:
            self._refuse(waiting.parts, LineFault.TOO_LONG)
            waiting.parts = []

    def _bound(self, current: str) -> None:
        """Let go those who wait longest, once too many or too much wait for an end."""
        while len(self._waiting) > _MOST_STREAMS or sum(waiting.length for waiting in self._waiting.values()) > _MOST_HELD:
            longest = next((stream for stream in self._waiting if stream != current), None)
            if longest is None:
                return
            self._refuse(self._waiting.pop(longest).parts, LineFault.PART_WITHOUT_END)

    def _whole(self, parts: list[Line]) -> Joined:
        start = _start_of_record(parts)
        self._refuse(parts[:start], LineFault.PART_WITHOUT_END)
        first, rest = parts[start], tuple(parts[start + 1 :])
        data = b"".join(part.data for part in parts[start:])
        unfinished = parts[-1].unfinished
        places = tuple(Line(part.number, part.offset, b"", length=part.size) for part in rest)
        return Joined(Line(first.number, first.offset, data, unfinished, first.size), places)

    def close(self) -> list[Joined]:
        """Return what waits at the end of the file and is whole without an end; refuse the rest."""
        whole = []
        for waiting in self._waiting.values():
            if waiting.parts and _is_object(waiting.parts):
                whole.append(self._whole(waiting.parts))
            else:
                self._refuse(waiting.parts, LineFault.INCOMPLETE_LAST_LINE)
        self._waiting.clear()
        return whole

    def _refuse(self, parts: list[Line], code: LineFault) -> None:
        self.faults += [Fault(part.number, part.offset, part.size, code) for part in parts]


def _start_of_record(parts: list[Line]) -> int:
    """Return which part the record starts with: a later one where the end of an earlier line was lost.

    That is told by a later part that looks like a start, and makes a whole object with what
    follows it, where all the parts together make none.
    """
    starts = [index for index, part in enumerate(parts) if index and part.data.lstrip(b" \t").startswith(b"{")]
    if not starts or _is_object(parts):
        return 0
    return next((index for index in reversed(starts[-_TRIED:]) if _is_object(parts[index:])), 0)


def _is_object(parts: list[Line]) -> bool:
    text = b"".join(part.data for part in parts)
    return not isinstance(parse_line(Line(0, 0, text), {}), Refused)
