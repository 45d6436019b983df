"""The exact parser for suspect lines: it decides them, names the reason, and keeps numbers as they are written."""

import json
import re
import threading
from collections.abc import Collection, Iterable
from collections.abc import Mapping as KeyMap
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from quietburn.records.lines import MAX_LINE_BYTES, MAX_NESTING, Line
from quietburn.records.reasons import LineFault

Members = dict[str, Any]
# Matches from any quote on, to the end of the line where the string has none: a search that
# failed there would start again at each escaped quote.
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


class NumberText(str):
    """A JSON number as it was written, so that ids stay exact and times stay decimal."""

    __slots__ = ()


@dataclass(frozen=True)
class Refused:
    """A line that is not an event, and why."""

    code: LineFault


class _ConflictError(Exception):
    """A key stood twice in one object."""


class Pairs(list[tuple[str, Any]]):
    """The members of a JSON object that repeats keys, in order."""


class _Repeats(threading.local):
    """Whether the line that this thread reads holds an object that repeats keys."""

    found = False


_repeats = _Repeats()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Pairs:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    _repeats.found = True
    return Pairs(pairs)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=NumberText, parse_int=NumberText, parse_constant=NumberText
)


def parse_line(line: Line, known: Collection[str]) -> dict[str, Any] | Refused:
    """Return a line's members, or why it is refused.

    Numbers come as NumberText. A key that the dialect knows may stand twice only with the
    same value; of an unknown key the last value is kept.
    """
    code = _unfit_bytes(line.data)
    if code:
        return Refused(LineFault.INCOMPLETE_LAST_LINE if line.unfinished and code is LineFault.NOT_UTF8 else code)
    text = line.data.lstrip(b"\0").decode("utf-8").strip(" \t\r\n")
    value = _decode(text, unfinished=line.unfinished)
    if isinstance(value, Refused):
        return value
    if "\\u" in text and _has_lone_surrogate(value):
        return Refused(LineFault.NOT_UNICODE)
    try:
        return _members(value, known)
    except _ConflictError:
        return Refused(LineFault.CONFLICTING_KEY)


def decode(text: str) -> Any:
    """Return what a JSON text holds, numbers as they are written; a text that is none, as it is."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return text
    return text if "\\u" in text and _has_lone_surrogate(value) else value


def _decode(text: str, *, unfinished: bool) -> dict[str, Any] | Pairs | Refused:
    _repeats.found = False
    try:
        value, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError as problem:
        return Refused(_syntax_fault(problem, text, unfinished=unfinished))
    except RecursionError:
        return Refused(LineFault.TOO_DEEP)
    if end != len(text):
        return Refused(LineFault.TRAILING_TEXT if isinstance(value, dict | Pairs) else LineFault.NOT_JSON)
    return value if isinstance(value, dict | Pairs) else Refused(LineFault.NOT_AN_OBJECT)


def _unfit_bytes(data: bytes) -> LineFault | None:
    if len(data) > MAX_LINE_BYTES:
        return LineFault.TOO_LONG
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return LineFault.NOT_UTF8
    if data.count(b"{") + data.count(b"[") > MAX_NESTING and _depth(data) > MAX_NESTING:
        return LineFault.TOO_DEEP
    return None


def _depth(data: bytes) -> int:
    depth = deepest = 0
    for byte in re.findall(rb"[\[\]{}]", _STRINGS.sub(b"", data)):
        depth += 1 if byte in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _syntax_fault(problem: json.JSONDecodeError, text: str, *, unfinished: bool) -> LineFault:
    if unfinished:
        return LineFault.INCOMPLETE_LAST_LINE
    at_end = problem.pos >= len(text.rstrip()) or problem.msg.startswith("Unterminated string")
    return LineFault.CUT_SHORT if at_end and text.startswith("{") else LineFault.NOT_JSON


def _has_lone_surrogate(value: object) -> bool:
    """Whether any string within holds half of a surrogate pair (JSON escapes can write one)."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            if any("\ud800" <= char <= "\udfff" for char in part):
                return True
        elif isinstance(part, dict):
            waiting += part.items()
        elif isinstance(part, list | tuple):
            waiting += part
    return False


def _members(pairs: dict[str, Any] | Pairs, known: Collection[str]) -> dict[str, Any]:
    if not _repeats.found:
        return dict(pairs)
    members = dict(pairs)
    for key in known:
        if key.startswith("/"):
            _check_path(pairs, key)
    if isinstance(pairs, Pairs):
        for key, value in pairs:
            if key in known and not _same(members[key], value):
                raise _ConflictError
    return members


def _check_path(value: Any, path: str) -> None:
    """Raise where an object on a path holds the path's next key twice, with different values."""
    for step in steps_of(path):
        if isinstance(value, Pairs):
            found = [part for key, part in value if key == step]
            if any(not _same(found[0], other) for other in found[1:]):
                raise _ConflictError
        value = _step(value, step)


def has_conflict(value: dict[str, Any] | Pairs, key: str) -> bool:
    """Whether an object, or one on the path that the key is, holds the key twice with different values."""
    try:
        _check_path(value, key if key.startswith("/") else "/" + key.replace("~", "~0").replace("/", "~1"))
    except _ConflictError:
        return True
    return False


@lru_cache(maxsize=4096)
def steps_of(path: str) -> tuple[str, ...]:
    """Return the keys that a path leads along."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/"))


def _same(a: object, b: object) -> bool:
    return type(a) is type(b) and a == b


def resolve(members: KeyMap[str, Any], key: str) -> Any:
    """Return the value at a key, or at a `/path` into nested objects and lists; None where absent."""
    if not key.startswith("/"):
        return members.get(key)
    value: Any = members
    for step in steps_of(key):
        value = value.get(step) if type(value) is dict else _step(value, step)
        if value is None:
            return None
    return value


def _step(value: Any, step: str) -> Any:
    if isinstance(value, Pairs):
        value = dict(value)
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isdecimal():
        index = int(step)
        return value[index] if index < len(value) else None
    return None


def keys_with_values(members: KeyMap[str, Any]) -> Iterable[str]:
    """Return the keys that hold something."""
    return (key for key, value in members.items() if value is not None)


def token(value: Any) -> str | None:
    """Return a value as JSON text, numbers as they are written; None for null."""
    if value is None:
        return None
    if isinstance(value, NumberText):
        return "0" if value == "-0" else str(value)
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{token(part) or 'null'}" for key, part in value) + "}"
    if isinstance(value, dict):
        return token(Pairs(value.items()))
    if isinstance(value, list):
        return "[" + ",".join(token(part) or "null" for part in value) + "]"
    return json.dumps(value, ensure_ascii=False)
