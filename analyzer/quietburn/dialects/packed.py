"""The records of a parsed line: one, or several where its dialect packs them."""

from collections.abc import Collection, Iterator
from typing import Any

from quietburn.dialects.mapping import Events
from quietburn.dialects.sources import Source
from quietburn.records.exact import NumberText, Pairs, decode, has_conflict, steps_of
from quietburn.records.reasons import LineFault

Members = dict[str, Any]


def records_of(members: Members, source: Source) -> Iterator[tuple[int | None, Members | LineFault]]:
    """Yield the records of a line, each with its place in it (from 1; None where the line is the record).

    An item that is no object, or that holds a key of the dialect twice with different values, comes as its fault.
    """
    for events, marks in source.events:
        if events.path[1:].split("/", 1)[0] in members:
            marked = {key: members[key] for key in marks if key in members}
            for place, item in enumerate(_items(members, steps_of(events.path)), 1):
                yield place, LineFault.NOT_AN_OBJECT if item is None else _record(item, events, marked, source)
            return
    yield None, read_embedded(members, source.embedded)


def _record(item: Members | Pairs, events: Events, marked: Members, source: Source) -> Members | LineFault:
    members = dict(item)
    record = members | {key: _attributes(members[key]) for key in events.attributes if key in members}
    repeats = isinstance(item, Pairs) or any(isinstance(record.get(key), Pairs) for key in events.attributes)
    if repeats and any(has_conflict(part, key) for part in (item, record) for key in source.watched):
        return LineFault.CONFLICTING_KEY
    return read_embedded(marked | record, source.embedded)


def _items(value: Any, steps: tuple[str, ...]) -> Iterator[Members | Pairs | None]:
    """Yield the items at a path; None for one that is no object."""
    if not steps:
        yield value if isinstance(value, Pairs | dict) else None
        return
    step, rest = steps[0], steps[1:]
    if step == "*":
        for item in value if isinstance(value, list) and not isinstance(value, Pairs) else ():
            yield from _items(item, rest)
    elif isinstance(value, Pairs | dict) and step in dict(value):
        yield from _items(dict(value)[step], rest)


def _attributes(value: Any) -> Any:
    """Return OTLP's list of `{key, value}` as an object; what is none is left as it is."""
    if not isinstance(value, list) or isinstance(value, Pairs):
        return value
    found = [dict(part) for part in value if isinstance(part, Pairs | dict)]
    pairs = [(part["key"], any_value(part.get("value"))) for part in found if isinstance(part.get("key"), str)]
    members = dict(pairs)
    return members if len(members) == len(pairs) else Pairs(pairs)


def any_value(value: Any) -> Any:
    """Return what an OTLP value holds; integers come as strings there, and are numbers."""
    if not isinstance(value, Pairs | dict) or not value:
        return None
    kind, held = next(iter(dict(value).items()))
    if kind == "intValue":
        digits = held.removeprefix("-") if isinstance(held, str) else ""
        return NumberText(held) if digits.isascii() and digits.isdecimal() else held
    if kind == "arrayValue" and isinstance(held, Pairs | dict):
        listed = dict(held).get("values")
        return [any_value(item) for item in listed] if isinstance(listed, list) else []
    return held


def read_embedded(members: Members, keys: Collection[str]) -> Members:
    """Return a line's members with the JSON read that stands in texts under these keys."""
    texts = {key: members[key] for key in keys if type(members.get(key)) is str}
    return members | {key: decode(text) for key, text in texts.items() if text.lstrip()[:1] in ("{", "[")} if texts else members
