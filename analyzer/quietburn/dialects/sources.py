"""Which keys of a file its dialects read, and for which columns."""

from collections.abc import Iterable
from collections.abc import Mapping as KeyMap
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from quietburn.common.columns import Kind
from quietburn.dialects.mapping import Events, Mapping


def root_of(key: str) -> str:
    """Return the top-level key that a key is, or that a `/path` begins with."""
    return key[1:].split("/", 1)[0].replace("~1", "/").replace("~0", "~") if key.startswith("/") else key


@dataclass(frozen=True)
class Source:
    """What the dialects of a file want of its keys.

    `roles` holds for each key the kinds of columns that it feeds; `private` the keys of raw
    texts by the name of the text; `derived` what transforms make, with their source keys;
    `embedded` keys that may hold JSON as text; `events` where several events of a line lie, each
    with the keys that mark its dialect; `asked` keys on which conditions stand, so that they are
    read even where they hold a raw text.
    """

    roles: KeyMap[str, frozenset[Kind]]
    private: KeyMap[str, tuple[str, ...]]
    ignored: frozenset[str] = frozenset()
    derived: KeyMap[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    embedded: frozenset[str] = frozenset()
    events: tuple[tuple[Events, tuple[str, ...]], ...] = ()
    asked: frozenset[str] = frozenset()

    def knows(self, key: str) -> bool:
        """Whether a top-level key belongs to the dialect."""
        return key in self.by_root or key in self.ignored

    @cached_property
    def read_whole(self) -> frozenset[str]:
        """Return the keys of which all that they hold becomes columns: not where only parts are read, or none."""
        return frozenset(self.roles) - self.ignored

    @cached_property
    def private_keys(self) -> frozenset[str]:
        """Return the keys of raw texts."""
        return frozenset(key for keys in self.private.values() for key in keys)

    def is_column(self, key: str) -> bool:
        """Whether a key of the dialect becomes a column as it is; a raw text does only where a condition stands on it."""
        return key not in self.private_keys or key in self.asked

    @cached_property
    def watched(self) -> tuple[str, ...]:
        """Return the keys and paths that are read, of which a line may not hold two values."""
        made = [key for _, keys in self.derived.values() for key in keys]
        named = [key for key in (*self.roles, *self.private_keys) if key not in self.derived]
        return tuple(dict.fromkeys([*named, *made]))

    @cached_property
    def by_root(self) -> dict[str, list[str]]:
        """Return the watched keys and paths by their top-level key."""
        found: dict[str, list[str]] = {}
        for key in self.watched:
            found.setdefault(root_of(key), []).append(key)
        for events, _ in self.events:
            found.setdefault(root_of(events.path), [])
        return found

    @cached_property
    def nested(self) -> dict[str, Any]:
        """Return as a tree the steps to objects and lists that lie on a way to a value."""
        tree: dict[str, Any] = {}
        for key in self.watched:
            at = tree
            for step in list(steps(key))[:-1]:
                at = at.setdefault(step, {})
        return tree


def steps(key: str) -> Iterable[str]:
    """Return the keys that a key or a `/path` leads along."""
    if not key.startswith("/"):
        return (key,)
    return (step.replace("~1", "/").replace("~0", "~") for step in key[1:].split("/"))


def source_of(mappings: tuple[Mapping, ...]) -> Source:
    """Return what some dialects want together."""
    roles: dict[str, frozenset[Kind]] = {}
    private: dict[str, tuple[str, ...]] = {}
    for mapping in mappings:
        for key, kinds in mapping.roles.items():
            roles[key] = roles.get(key, frozenset()) | kinds
        for name, keys in mapping.private_sources.items():
            private[name] = tuple(dict.fromkeys((*private.get(name, ()), *keys)))
    return Source(
        roles, private, frozenset(key for mapping in mappings for key in mapping.ignored),
        derived={key: made for mapping in mappings for key, made in mapping.derived.items()},
        embedded=frozenset(key for mapping in mappings for key in mapping.dialect.embedded),
        events=tuple((mapping.events, mapping.recognise.keys) for mapping in mappings if mapping.events),
        asked=frozenset(key for mapping in mappings for key in mapping.asked),
    )
