"""The frames of container runtimes and collectors: which one a line has, and what it carries."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from quietburn.records.exact import NumberText, Pairs, Refused, parse_line
from quietburn.records.lines import Line
from quietburn.records.reasons import LineFault
from quietburn.records.wellformed import texts_of

Members = dict[str, Any]
_OTHER_STREAM = ""  # all streams of other names are one
STREAMS = (_OTHER_STREAM, "stdout", "stderr")


@dataclass(frozen=True, slots=True)
class Payload:
    """What a wrapped line carries; a part goes on in the next line of its stream."""

    stream: str
    data: bytes
    is_part: bool = False


class Wrapper(ABC):
    """One way of wrapping lines."""

    name: str
    words: str  # how detection says it, after "its lines are wrapped "
    cuts_text: bool = False  # where a line is cut, so is what it carries

    @abstractmethod
    def fits(self, text: bytes, members: Members | None) -> bool:
        """Whether a sampled line is wrapped this way; `members` where it is a JSON object."""

    @abstractmethod
    def unwrap(self, line: Line) -> Payload | Refused | None:
        """Return what a line carries, why it can't be told, or None where it carries no text at all."""



_SECOND = rb"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)"
_AFTER = rb"(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) (stdout|stderr) "
_CRI_LINE = re.compile(_SECOND + _AFTER + rb"([FP])(?::[^ \n]*)?(?: (.*))?", re.DOTALL)


class Cri(Wrapper):
    """`time stream tag text`, as Kubernetes' runtimes write it; more tags may follow the first after colons."""

    name = "cri"
    words = "by a container runtime (CRI)"
    cuts_text = True

    def fits(self, text: bytes, members: Members | None) -> bool:
        """Whether a sampled line is wrapped this way."""
        return members is None and _CRI_LINE.fullmatch(text) is not None

    def unwrap(self, line: Line) -> Payload | Refused | None:
        """Return what a line carries, or why it can't be told."""
        match = _CRI_LINE.fullmatch(line.data.lstrip(b"\0"))
        if match is None:
            return Refused(LineFault.INCOMPLETE_LAST_LINE if line.unfinished else LineFault.WRAPPER_UNREADABLE)
        stream, tag, text = match.groups()
        return Payload(stream.decode(), text or b"", is_part=tag == b"P")


@dataclass(frozen=True)
class JsonWrapper(Wrapper):
    """An object whose `key` holds the text.

    `has_parts`: texts end with a line feed, and one without is a part. `marks_parts`: an entry says
    itself that it is one. `text_may_lack`: an entry without the key is an entry without a text.
    """

    name: str
    words: str
    key: str
    is_like: Callable[[Members], bool]
    has_parts: bool = False
    marks_parts: bool = False
    text_may_lack: bool = False

    @property
    def _read(self) -> tuple[str, ...]:
        return (self.key, "stream", "_STREAM_ID", "_LINE_BREAK")

    def fits(self, text: bytes, members: Members | None) -> bool:  # noqa: ARG002 - the other way of wrapping needs it
        """Whether a sampled line is wrapped this way."""
        return members is not None and self.is_like(members)

    def unwrap(self, line: Line) -> Payload | Refused | None:
        """Return what a line carries, why it can't be told, or None where it carries no text at all."""
        members: Members | Refused | None = texts_of(line.data, self._read)
        if members is None:
            members = parse_line(line, {self.key: None})
        if isinstance(members, Refused):
            return members
        if self.key not in members and self.text_may_lack:
            return None
        data = self._bytes_of(members.get(self.key))
        if isinstance(data, Refused):
            return data
        if self.marks_parts:
            return Payload(_journal_stream(members), data, is_part=members.get("_LINE_BREAK") == _CUT_LINE)
        if not self.has_parts:
            return Payload(_OTHER_STREAM, data)
        return Payload(_stream_of(members), data.removesuffix(b"\n"), is_part=not data.endswith(b"\n"))

    def _bytes_of(self, value: object) -> bytes | Refused:
        if _is_text(value):
            return str(value).encode()
        if not self.text_may_lack:
            return Refused(LineFault.WRAPPER_UNREADABLE)
        return _journal_bytes(value)


_CUT_LINE = "line-max"  # what journald notes where it cut a line at its LineMax (systemd.journal-fields, _LINE_BREAK)
_LONGEST_STREAM_ID = 64  # journald's have 32 digits


def _journal_stream(members: Members) -> str:
    """Return by what an entry's stream is known: journald numbers each connection to a standard output."""
    stream = members.get("_STREAM_ID")
    return f"journal {stream}" if _is_text(stream) and len(str(stream)) <= _LONGEST_STREAM_ID else _OTHER_STREAM


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not isinstance(value, NumberText)


def _journal_bytes(value: object) -> bytes | Refused:
    """Return a message that is not plain text: the journal writes it as numbers, and null where it left it out."""
    if value is None:
        return Refused(LineFault.MESSAGE_LEFT_OUT)
    if isinstance(value, list) and not isinstance(value, Pairs) and all(_is_byte(part) for part in value):
        return bytes(int(part) for part in value)
    return Refused(LineFault.WRAPPER_UNREADABLE)


def _is_byte(part: object) -> bool:
    return isinstance(part, NumberText) and part.isdecimal() and len(part) <= 3 and int(part) <= 255


def _stream_of(members: Members) -> str:
    stream = members.get("stream")
    return str(stream) if _is_text(stream) and stream in STREAMS else _OTHER_STREAM


def _is_docker(members: Members) -> bool:
    """Whether these are Docker's keys and no others."""
    return (
        members.keys() <= {"log", "stream", "attrs", "time"} and _is_text(members.get("log"))
        and _stream_of(members) != _OTHER_STREAM and _is_text(members.get("time"))
    )  # fmt: skip


def _is_journal(members: Members) -> bool:
    """Whether this is an entry of the journal: only journalctl writes these addresses."""
    return "MESSAGE" in members and "__CURSOR" in members and _is_text(members.get("__REALTIME_TIMESTAMP"))


def _is_logcli(members: Members) -> bool:
    """Whether these are logcli's keys and no others; it can be told to leave the labels out."""
    return (
        members.keys() <= {"labels", "line", "timestamp"} and _is_text(members.get("line"))
        and _is_text(members.get("timestamp")) and isinstance(members.get("labels", {}), dict | Pairs)
    )  # fmt: skip


WRAPPERS: tuple[Wrapper, ...] = (
    Cri(),
    JsonWrapper("docker", "by Docker (json-file)", "log", _is_docker, has_parts=True),
    JsonWrapper("journald", "by journald (journalctl -o json)", "MESSAGE", _is_journal, marks_parts=True, text_may_lack=True),
    JsonWrapper("logcli", "by Loki (logcli -o jsonl)", "line", _is_logcli),
)


def wrapper_of(lines: Sequence[bytes]) -> Wrapper | None:
    """Return the wrapper of a file from sampled lines: the one that more than half of them have."""
    sample = [text for line in lines if (text := line.strip(b"\r\0\xef\xbb\xbf")).strip()]
    parsed = [(text, _members(text)) for text in sample]
    for wrapper in WRAPPERS:
        if 2 * sum(wrapper.fits(text, members) for text, members in parsed) > len(sample):
            return wrapper
    return None


_KEYS = tuple(f'"{wrapper.key}"'.encode() for wrapper in WRAPPERS if isinstance(wrapper, JsonWrapper))


def _members(text: bytes) -> Members | None:
    """Return a line's members where it may be wrapped in an object."""
    if not any(key in text for key in _KEYS):
        return None
    found = parse_line(Line(0, 0, text), {})
    return None if isinstance(found, Refused) else found
