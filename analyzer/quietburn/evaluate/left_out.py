"""Events that are in neither rate, because they do not generate: grouped by where they went."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from quietburn.engine.base import Engine

MOST_ENTRIES = 50
SEVERAL = "several"  # the kind of an entry that holds the rest


@dataclass(frozen=True)
class LeftOut:
    """Events of one kind at one route, or at paths that differ only in what looks like an id.

    `statuses` counts them by HTTP status, "none" where there was none; `tokens` is None where none
    of them says how many it took; `file` and `first_line` are where the first stands.
    """

    pattern: str
    kind: str
    events: int
    statuses: dict[str, int]
    tokens: float | None
    file: str
    first_line: int


_GROUPS = """
    SELECT COALESCE(pattern, '') AS pattern, kind, CAST(status AS INTEGER) AS status, count(*) AS events,
        sum(tokens) AS tokens, min(struct_pack(file_id := file_id, line := line, file := file)) AS first
    FROM events WHERE NOT is_attempt GROUP BY 1, 2, 3
"""


def left_out(engine: Engine) -> list[LeftOut]:
    """Return what the rates leave out, most events first; behind the first entries stands one for all others."""
    found: dict[tuple[str, str], LeftOut] = {}
    places: dict[tuple[str, str], tuple[int, int]] = {}
    for group in engine.select(_GROUPS).to_pylist():
        key, entry, first = (group["pattern"], group["kind"]), _entry(group), group["first"]
        place = (first["file_id"], first["line"])
        if key in found:
            entry = _both(found[key], entry) if places[key] < place else _both(entry, found[key])
        found[key], places[key] = entry, min(place, places.get(key, place))
    ordered = sorted(found.values(), key=lambda one: (-one.events, one.pattern, one.kind))
    if len(ordered) <= MOST_ENTRIES:
        return ordered
    shown, rest = ordered[: MOST_ENTRIES - 1], ordered[MOST_ENTRIES - 1 :]
    return [*shown, _all_others(rest)]


def _entry(group: dict[str, Any]) -> LeftOut:
    status = "none" if group["status"] is None else str(group["status"])
    first = group["first"]
    return LeftOut(
        group["pattern"], group["kind"], group["events"], {status: group["events"]}, group["tokens"], first["file"] or "",
        first["line"],
    )


def _both(first: LeftOut, second: LeftOut) -> LeftOut:
    """Return two entries as one, which begins where the first does."""
    statuses = {
        status: first.statuses.get(status, 0) + second.statuses.get(status, 0)
        for status in sorted(first.statuses | second.statuses)
    }
    known = [entry.tokens for entry in (first, second) if entry.tokens is not None]
    return replace(first, events=first.events + second.events, statuses=statuses, tokens=sum(known) if known else None)


def _all_others(entries: Iterable[LeftOut]) -> LeftOut:
    first, *others = entries
    whole = first
    for entry in others:
        whole = _both(whole, entry)
    return replace(whole, pattern=f"{len(others) + 1:,} others", kind=SEVERAL)
