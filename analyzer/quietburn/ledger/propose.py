"""A mapping for a ledger that no dialect fits, proposed from a sample of its lines.

Only names and kinds of values are looked at; no value is kept or shown.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from quietburn.ledger.careful import Pairs
from quietburn.ledger.events import BY_NAME, COLUMNS, STORED_AS, Kind, logged_name
from quietburn.ledger.mapping import Mapping
from quietburn.ledger.raw import is_field_name
from quietburn.limits import epoch_seconds

Members = dict[str, Any]
_UNITS = {
    "s": "s", "sec": "s", "secs": "s", "seconds": "s", "ms": "ms", "millis": "ms", "milliseconds": "ms", "us": "us", "ns": "ns",
}
_MOST_DEPTH = 4
# Words that a key's name is made of, by column: all of a set, in order of trust.
_WORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "ttft_ms": (("ttft",), ("first", "token"), ("first", "chunk")),
    "queue_age_ms": (("queue", "time"), ("queue", "wait"), ("queue", "age")),
    "latency_ms": (("latency", "end"), ("latency", "total"), ("latency",), ("duration",), ("elapsed",)),
    "deadline_ms": (("deadline",), ("timeout",)),
    "prompt_tokens": (("prompt", "tokens"), ("input", "tokens"), ("input", "length")),
    "completion_tokens": (("completion", "tokens"), ("output", "tokens"), ("output", "length")),
    "reasoning_tokens": (("reasoning", "tokens"),),
    "cached_tokens": (("cached", "tokens"), ("cache", "read")),
    "actual_tokens": (("total", "tokens"),),
    "answer_chars": (("answer", "chars"), ("text", "chars"), ("output", "chars")),
    "status": (("http", "status"), ("status", "code"), ("response", "code")),
    "error": (("error", "type"), ("error", "code"), ("error",)),
    "finish_reason": (("finish", "reason"), ("stop", "reason")),
    "model": (("model",),),
    "backend": (("upstream", "host"), ("backend",), ("provider",), ("target",)),
    "request_id": (("request", "id"),),
    "tenant": (("tenant",), ("team",)),
    "route": (("path",), ("route",), ("endpoint",)),
    "user_agent": (("user", "agent"),),
}
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}.*")


@dataclass
class Seen:
    """What a sample shows of one key: in how many lines it has a value, and of which kinds."""

    lines: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def mostly(self, *kinds: str) -> bool:
        """Whether four of five values are of these kinds."""
        return sum(self.kinds[kind] for kind in kinds) >= 0.8 * self.lines


@dataclass(frozen=True)
class Proposed:
    """One column of a proposal: where it comes from, the share of lines that have it, and why."""

    column: str  # as users log it
    key: str
    unit: str | None
    share: float
    why: str


def keys_seen(sample: Iterable[Members]) -> dict[str, Seen]:
    """Return every key and path of a sample with what it holds."""
    seen: dict[str, Seen] = {}
    for members in sample:
        for key, value in _leaves(members, (), 0):
            found = seen.setdefault(key, Seen())
            found.lines += 1
            found.kinds[_kind(value)] += 1
    return seen


def _leaves(members: Members, above: tuple[str, ...], depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in members.items():
        if not is_field_name(key):
            continue  # it may be what a caller wrote
        if isinstance(value, dict | Pairs) and depth < _MOST_DEPTH:
            yield from _leaves(dict(value), (*above, key), depth + 1)
        elif value is not None and value != "":
            plain = not above and not key.startswith("/")
            yield key if plain else "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in (*above, key)), value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return "number" if epoch_seconds(float(value)) is None else "time"
    if isinstance(value, str):
        return "time" if _TIME.fullmatch(value.strip()) else "text"
    return "other"


def propose(sample: list[Members], known: Iterable[Mapping]) -> list[Proposed]:
    """Return the columns that a sample's keys may stand for, each with its reason; a key stands for one of them."""
    seen = keys_seen(sample)
    aliases = _aliases(known)
    found: list[Proposed] = []
    taken: set[str] = set()
    for column in COLUMNS:
        if not column.given or column.name == "path":  # a path is taken as the route
            continue
        name = logged_name(column.name)
        best = _best(name, column.kind, seen, aliases.get(name, {}), taken)
        if best is not None:
            key, unit, why = best
            taken.add(key)
            found.append(Proposed(name, key, unit, seen[key].lines / len(sample), why))
    return found


def _aliases(known: Iterable[Mapping]) -> dict[str, dict[str, str | None]]:
    """Return by column the plain names under which dialects give it, with their unit."""
    aliases: dict[str, dict[str, str | None]] = {}
    for mapping in known:
        for column, ways in mapping.columns.items():
            for way in ways:
                for key in way.sources if not way.transform and not way.when else ():
                    aliases.setdefault(column, {}).setdefault(_plain(key), way.unit)
    return aliases


def _plain(key: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"([a-z])([A-Z])", r"\1_\2", key.rsplit("/", 1)[-1]).lower()).strip("_")


def _best(
    name: str, kind: Kind, seen: dict[str, Seen], aliases: dict[str, str | None], taken: set[str]
) -> tuple[str, str | None, str] | None:
    free = {key: what for key, what in seen.items() if key not in taken and _fits(name, kind, what)}
    ranked = sorted(free, key=lambda key: (-free[key].lines, key.count("/"), key))
    for key in ranked:
        if _plain(key) in aliases:
            return key, _unit(name, key, aliases[_plain(key)]), "a name that known dialects use"
    for words in _WORDS.get(name, ()):
        for key in ranked:
            if set(words) <= set(_plain(key).split("_")):
                return key, _unit(name, key, None), f"its name says {' '.join(words)}"
    if name == "ts" and ranked:
        return ranked[0], None, "its values are times; taken as the end"
    return None


def _fits(name: str, kind: Kind, what: Seen) -> bool:
    if kind is Kind.TIME:
        return what.mostly("time")
    if kind is Kind.FLAG:
        return what.mostly("flag")
    if kind is Kind.TEXT:
        return what.mostly("text", "number") if name in ("request_id", "error") else what.mostly("text")
    return what.mostly("number")


def _unit(name: str, key: str, unit: str | None) -> str | None:
    own = BY_NAME[STORED_AS.get(name, name)].unit
    if own not in ("ms", "s") or BY_NAME[STORED_AS.get(name, name)].kind is Kind.TIME:
        return None
    told = _UNITS.get(_plain(key).rsplit("_", 1)[-1], unit)
    return None if told == own else told


def as_toml(name: str, proposed: list[Proposed], sample: list[Members]) -> str:
    """Return a proposal as a mapping file: pasteable, and valid for `--map`."""
    timed = any(item.column in ("ts", "started_at") for item in proposed)
    always = [item.key for item in proposed if item.share == 1.0][:3]
    lines = ["[dialect]", f"name = {_text(name)}", 'title = "proposed by quietburn map: look it over"']
    if not timed:
        lines.append('time = "none"  # no key holds a time between 2015 and 2100: rules that need time are not evaluated')
    lines += ["", "[recognise]  # keys that every sampled line has", f"all = [{', '.join(map(_text, always))}]", "", "[columns]"]
    for item in proposed:
        unit = f", unit = {_text(item.unit)}" if item.unit else ""
        unit += ', transform = "route_of_path"' if item.column == "route" else ""
        lines.append(f"# {_share(item.share)} of lines; {item.why}{_doubt(item)}")
        lines.append(f"{item.column} = {{ from = {_text(item.key)}{unit} }}")
    if not any(item.column == "route" for item in proposed):
        lines += ["# no key names a route: every line is taken as a call for an answer", 'route = { value = "complete" }']
    used = {item.key for item in proposed}
    left = [(key, what.lines / len(sample)) for key, what in keys_seen(sample).items() if key not in used]
    if left:
        lines += ["", "# Keys that stand for no column here, with their share of lines:"]
        lines += [f"#   {key}  {_share(share)}" for key, share in sorted(left, key=lambda item: -item[1])[:40]]
    return "\n".join(lines) + "\n"


def _doubt(item: Proposed) -> str:
    unit = BY_NAME[STORED_AS.get(item.column, item.column)].unit
    named = item.unit or _plain(item.key).rsplit("_", 1)[-1] in _UNITS
    return "" if unit not in ("ms", "s") or named else f"; taken as {unit}, since its name tells no unit"


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "under 1%"


def _text(text: str) -> str:
    """Return a field's name as TOML writes it: no such name holds what would have to be escaped."""
    return f'"{text}"'
