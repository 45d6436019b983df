"""Propose a mapping for a ledger that no dialect fits, from a sample of its lines.

Names, and what the sample shows of their values, decide what a key may stand for; what speaks
against it makes a line of the proposal a comment. No value is kept or shown.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from quietburn.common.columns import BY_NAME, COLUMNS, STORED_AS, UNSETTLED, Kind, logged_name
from quietburn.common.limits import epoch_seconds
from quietburn.dialects.doubts import name_doubt, value_doubt
from quietburn.dialects.mapping import Mapping
from quietburn.dialects.names import Unit, named_unit, plain_name
from quietburn.dialects.unknown import is_field_name
from quietburn.records.exact import Pairs

Members = dict[str, Any]
_MOST_DEPTH = 4
# Words that a key's name is made of, by column: all of a set, in order of trust.
_WORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "ts": (("end", "time"), ("ended",), ("finished",), ("end",)),
    "started_at": (("start", "time"), ("started",), ("start",)),
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
    "route": (("route",),),
    "path": (("path",), ("uri",), ("endpoint",)),
    "user_agent": (("user", "agent"),),
}
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}.*")
_SUFFIXED = re.compile(r"(?<![0-9])(?:[0-9]+(?:\.[0-9]+)? ?(?:d|h|min|m|s|ms|us|ns) ?)+")
BY_VALUES = "its values are times; assumed to be the end"


@dataclass
class Seen:
    """What a sample shows of one key: its values by line, and of which kinds they are."""

    values: dict[int, Any] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def lines(self) -> int:
        """Return in how many lines the key has a value."""
        return len(self.values)

    def mostly(self, *kinds: str) -> bool:
        """Whether four of five values are of these kinds."""
        return sum(self.kinds[kind] for kind in kinds) >= 0.8 * self.lines


@dataclass(frozen=True)
class Proposed:
    """One column of a proposal: where it comes from, the share of lines that have it, and why.

    `doubt` says what speaks against it: then it is a comment.
    """

    column: str  # as users log it
    key: str
    unit: Unit | None
    share: float
    why: str
    doubt: str | None = None
    has_suffixes: bool = False  # its values name their units

    @property
    def lacks_unit(self) -> bool:
        """Whether it is a duration whose unit neither its name nor anything else tells yet."""
        column = STORED_AS.get(self.column, self.column)
        return column in UNSETTLED and self.unit is None and named_unit(self.key) is None and not self.has_suffixes


def keys_seen(sample: Iterable[Members]) -> dict[str, Seen]:
    """Return every key and path of a sample with what it holds."""
    seen: dict[str, Seen] = {}
    for line, members in enumerate(sample):
        for key, value in _leaves(members, (), 0):
            found = seen.setdefault(key, Seen())
            found.values[line] = value
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
        if _TIME.fullmatch(value.strip()):
            return "time"
        return "duration" if _SUFFIXED.fullmatch(value.strip()) else "text"
    return "other"


def propose(sample: list[Members], known: Iterable[Mapping]) -> list[Proposed]:
    """Return the columns that a sample's keys may stand for, each with its reason; a key stands for one of them."""
    seen = keys_seen(sample)
    aliases = _aliases(known)
    found: list[Proposed] = []
    taken: set[str] = set()
    # The status first: what an error may be depends on it.
    for column in sorted(COLUMNS, key=lambda column: column.name != "status"):
        if not column.given:
            continue
        best = _best(logged_name(column.name), column.kind, seen, aliases, taken, _statuses(found, seen))
        if best is not None:
            taken |= {best.key} if best.doubt is None else set()
            found.append(replace(best, unit=_unit(best.column, best.key), share=seen[best.key].lines / len(sample)))
    order = [logged_name(column.name) for column in COLUMNS]
    return _one_end(sorted((one for one in found if _is_free(one, taken)), key=lambda one: order.index(one.column)))


def _is_free(one: Proposed, taken: set[str]) -> bool:
    """Whether a doubtful column's key stands for no other column."""
    return one.doubt is None or one.key not in taken


def _statuses(found: list[Proposed], seen: dict[str, Seen]) -> dict[int, Any]:
    return next((seen[one.key].values for one in found if one.column == "status" and one.doubt is None), {})


def _one_end(found: list[Proposed]) -> list[Proposed]:
    """Doubt an end that nothing but its values tells where the start is known: the span between them would be no latency."""
    if not any(one.column == "started_at" and one.doubt is None for one in found):
        return found
    return [
        replace(one, doubt="the start is known; which time is the end is a guess")
        if one.column == "ts" and one.why == BY_VALUES and one.doubt is None else one
        for one in found
    ]  # fmt: skip


def _aliases(known: Iterable[Mapping]) -> dict[str, set[tuple[str, ...]]]:
    """Return by column the names under which dialects give it, step by step."""
    aliases: dict[str, set[tuple[str, ...]]] = {}
    for mapping in known:
        for column, ways in mapping.columns.items():
            for way in ways:
                for key in way.sources if not way.transform and not way.when else ():
                    aliases.setdefault(column, set()).add(_steps(key))
    return aliases


def _steps(key: str) -> tuple[str, ...]:
    return tuple(plain_name(step) for step in key[1:].split("/")) if key.startswith("/") else (plain_name(key),)


def _best(
    name: str, kind: Kind, seen: dict[str, Seen], aliases: dict[str, set[tuple[str, ...]]], taken: set[str],
    statuses: dict[int, Any],
) -> Proposed | None:
    """Return the first key that nothing speaks against, else the first that may stand for the column at all."""
    candidates = [
        Proposed(
            name, key, None, 0, why, name_doubt(name, key, whole=whole) or value_doubt(name, key, seen, statuses),
            has_suffixes=seen[key].mostly("duration"),
        )
        for key, why, whole in _candidates(name, kind, seen, aliases.get(name, set()))
        if key not in taken
    ]
    return next((one for one in candidates if one.doubt is None), candidates[0] if candidates else None)


def _candidates(name: str, kind: Kind, seen: dict[str, Seen], aliases: set[tuple[str, ...]]) -> Iterator[tuple[str, str, bool]]:
    """Yield keys that may stand for a column, the most trusted first, with the reason, and whether all of the name gives it."""
    free = {key: what for key, what in seen.items() if _fits(name, kind, what)}
    ranked = sorted(free, key=lambda key: (-free[key].lines, key.count("/"), key))
    # A nested name that a dialect knows counts as a whole: its last step alone may be anything (`value`).
    for key in ranked:
        if _steps(key) in aliases or _steps(key)[-1:] in aliases:
            yield key, "a name that known dialects use", _steps(key) in aliases
    for words in _WORDS.get(name, ()):
        for key in ranked:
            if set(words) <= set(plain_name(key).split("_")):
                yield key, f"its name says {' '.join(words)}", False
    if name == "ts":
        yield from ((key, BY_VALUES, True) for key in ranked)


def _fits(name: str, kind: Kind, what: Seen) -> bool:
    if kind is Kind.TIME:
        return what.mostly("time")
    if kind is Kind.FLAG:
        return what.mostly("flag")
    if kind is Kind.TEXT:
        return what.mostly("text", "number") if name in ("request_id", "error") else what.mostly("text")
    return what.mostly("number", "duration") if kind is Kind.DURATION else what.mostly("number")


def _unit(name: str, key: str) -> Unit | None:
    """Return the unit that a key's name tells, where it is another than the column's own."""
    column = BY_NAME[STORED_AS.get(name, name)]
    told = named_unit(key) if column.unit in ("ms", "s") and column.kind is not Kind.TIME else None
    return None if told == column.unit else told


def as_toml(name: str, proposed: list[Proposed], sample: list[Members]) -> str:
    """Return a proposal as a mapping file: pasteable, and valid for `--map`."""
    active = [item for item in proposed if item.doubt is None]
    always = [item.key for item in active if item.share == 1.0][:3]
    lines = ["[dialect]", f"name = {_text(name)}", 'title = "proposed by quietburn map: review it"']
    if not any(item.column in ("ts", "started_at") for item in active):
        lines.append('time = "none"  # no key has a time between 2015 and 2100: rules that need time are not evaluated')
    lines += ["", "[recognise]  # keys that every sampled line has", f"all = [{', '.join(map(_text, always))}]", "", "[columns]"]
    for item in proposed:
        unit = f", unit = {_text(item.unit)}" if item.unit else ""
        lines.append(f"# {_share(item.share)} of lines; {item.why}")
        line = f"{item.column} = {{ from = {_text(item.key)}{unit} }}"
        lines += [line] if item.doubt is None else [f"# left out: {item.doubt}", f"# {line}"]
    if not any(item.column in ("route", "path", "operation") for item in proposed):
        lines += ["# no key names a route: every line counts as a generating call", 'route = { value = "complete" }']
    used = {item.key for item in proposed}
    left = [(key, what.lines / len(sample)) for key, what in keys_seen(sample).items() if key not in used]
    if left:
        lines += ["", "# Keys not mapped to a column, with their share of lines:"]
        lines += [f"#   {key}  {_share(share)}" for key, share in sorted(left, key=lambda item: -item[1])[:40]]
    return "\n".join(lines) + "\n"


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "under 1%"


def _text(text: str) -> str:
    """Return a field's name as TOML writes it: no such name holds what would have to be escaped."""
    return f'"{text}"'
