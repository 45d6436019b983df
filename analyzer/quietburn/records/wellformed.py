"""Validate lines with a strict JSON parser in C++; `exact` reads those that it refuses."""

import threading
from collections.abc import Callable, Iterable
from collections.abc import Mapping as KeyMap
from dataclasses import dataclass
from typing import Any, Protocol

import simdjson

from quietburn.records.lines import MAX_LINE_BYTES, MAX_NESTING


class _Parser(threading.local):
    """One parser a thread: it holds the buffers, and one line at a time."""

    def __init__(self) -> None:
        self.parse: Callable[[bytes], Any] = simdjson.Parser().parse


_local = _Parser()
_REFUSED = (ValueError, RuntimeError)  # syntax and UTF-8; numbers beyond 64 bits


def pair_counts(texts: Iterable[bytes]) -> list[int]:
    """Return of each text how many members its object has, repeated ones counted each; -1 where it is not vouched for."""
    parse = _local.parse
    counts: list[int] = []
    for text in texts:
        if text[:1] != b"{" or (len(text) > _LONG and _may_be_too_deep(text)):
            counts.append(-1)
            continue
        try:
            counts.append(len(parse(text)))
        except _REFUSED:
            counts.append(-1)
    return counts


_LONG = 2 * MAX_NESTING  # each level takes two bytes


def _may_be_too_deep(text: bytes) -> bool:
    """Whether a line opens so much that it may be nested too deep, or is too long."""
    return len(text) > MAX_LINE_BYTES or text.count(b"{") + text.count(b"[") > MAX_NESTING


@dataclass(frozen=True, slots=True)
class Look:
    """What a closer look at a line shows: its keys, those that hold what becomes no column, and whether it is plain."""

    keys: list[str]
    unread: list[str]
    is_plain: bool  # no object on a way to a value repeats a key, and no text stands for an object


class Wanted(Protocol):
    """What is read of a line's keys."""

    @property
    def read_whole(self) -> frozenset[str]:
        """Return the keys of which all that they hold becomes columns."""

    @property
    def embedded(self) -> frozenset[str]:
        """Return the keys that may hold JSON as text."""

    @property
    def nested(self) -> KeyMap[str, Any]:
        """Return the ways to values below the top level, step by step."""


def look(text: bytes, source: Wanted) -> Look:
    """Look closely at a line that was vouched for."""
    document = _local.parse(text)
    keys = list(document)
    read = source.read_whole
    unread = [key for key in keys if key not in read and not _is_null(document, key)]
    told = [document[key] for key in source.embedded.intersection(keys)]
    is_plain = not _repeats(document, source.nested) and not any(
        type(value) is str and value.lstrip()[:1] in ("{", "[") for value in told
    )
    return Look(keys, unread, is_plain)


def _is_null(document: Any, key: str) -> bool:
    """Whether null stands under a key; under one that holds a NUL character, which simdjson can't find again, it is not told."""
    try:
        return document[key] is None
    except KeyError:
        return False


def _repeats(node: Any, tree: KeyMap[str, Any]) -> bool:
    """Whether an object repeats a key, or one on the ways from it does."""
    if type(node) is simdjson.Array:
        places = [int(step) for step in tree if step.isdecimal()]
        return any(_repeats(node[place], tree[str(place)]) for place in places if place < len(node))
    if type(node) is not simdjson.Object:
        return False
    keys = list(node)
    held = set(keys)
    return len(held) < len(keys) or any(step in held and _repeats(node[step], below) for step, below in tree.items())


def texts_of(text: bytes, wanted: Iterable[str]) -> dict[str, str] | None:
    """Return the texts under some keys of a line.

    None where the line is not vouched for, repeats a key, or holds anything else under one of them.
    """
    if _may_be_too_deep(text):
        return None
    try:
        document = _local.parse(text)
        keys = list(document) if type(document) is simdjson.Object else []
        held = set(keys)
        found = {key: document[key] for key in wanted if key in held}
        del document
    except _REFUSED:
        return None
    whole = len(held) == len(keys) > 0 and all(type(value) is str for value in found.values())
    return found if whole else None
