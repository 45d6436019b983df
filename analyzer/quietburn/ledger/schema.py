"""What the dialects of a file want of its keys, and as what type the fast way reads each."""

from collections.abc import Mapping as KeyMap
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from quietburn.ledger.events import Kind
from quietburn.ledger.mapping import Events
from quietburn.ledger.rawcolumns import RAW_TYPES, RawKind
from quietburn.ledger.values import Getter, getters


@dataclass(frozen=True)
class Source:
    """What the dialects of a file want of its keys.

    `roles` holds for each key the kinds of columns that it feeds; `private` the keys of raw
    texts by the name of the text; `careful_only` that the fast way can't read this file;
    `derived` what transforms make, with their source keys; `embedded` keys that may hold JSON as
    text; `events` where several events of a line lie, each with the keys that mark its dialect;
    `asked` keys on which conditions stand, so that they are read even where they hold a raw text.
    """

    roles: KeyMap[str, frozenset[Kind]]
    private: KeyMap[str, tuple[str, ...]]
    ignored: frozenset[str] = frozenset()
    careful_only: bool = False
    derived: KeyMap[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    embedded: frozenset[str] = frozenset()
    events: tuple[tuple[Events, tuple[str, ...]], ...] = ()
    asked: frozenset[str] = frozenset()

    @cached_property
    def private_keys(self) -> dict[str, str]:
        """Return the text's name by source key."""
        return {key: name for name, keys in self.private.items() for key in keys}

    def knows(self, key: str) -> bool:
        """Whether a top-level key belongs to the dialect."""
        return key in self.roles or key in self.ignored or key in self._roots

    def reads_whole(self, key: str) -> bool:
        """Whether all that a top-level key holds becomes columns: not where only parts of it are read, or none."""
        return key in self.roles and key not in self.ignored

    @cached_property
    def _roots(self) -> frozenset[str]:
        read = [*self.roles, *(key for _, keys in self.derived.values() for key in keys)]
        plain = {key for key in read if not key.startswith("/")}
        return frozenset(plain | {key[1:].split("/", 1)[0] for key in read if key.startswith("/")})

    @cached_property
    def getters(self) -> dict[str, Getter]:
        """Return what gives the value of each key, raw texts among them."""
        return getters([*self.roles, *self.private_keys], self.derived)

    @cached_property
    def columns(self) -> tuple[tuple[str, Getter, frozenset[Kind]], ...]:
        """Return the keys that become columns, what gives their values, and the kinds that they feed."""
        return tuple((key, self.getters[key], roles) for key, roles in self.roles.items() if self.is_column(key))

    def is_column(self, key: str) -> bool:
        """Whether a key of the dialect becomes a column as it is; a raw text does only where a condition stands on it."""
        return key not in self.private_keys or key in self.asked

    @cached_property
    def watched(self) -> tuple[str, ...]:
        """Return the keys and paths of which a line may not hold two values."""
        return tuple(dict.fromkeys([*self.roles, *(key for _, keys in self.derived.values() for key in keys)]))


class FastSchema:
    """Which key is read as which type in one file; learns keys that first appear after the sample.

    Shared by the threads that parse blocks of the file: entries are only ever added or given up,
    and what is read does not depend on them (a line that fits no entry goes the careful way).

    Keys that nobody knows, and those that are ignored, are announced too once they were met: a
    block without surprises is read at once, while one with an unannounced key must be read in small
    pieces. `infer` is set where there are too many of them, or one can't be announced; `scattered`
    where lines hold keys that hardly another has, so that each line is read by itself.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.kinds: dict[str, RawKind] = {}
        self.infer = False
        self.scattered = False
        self._unknown: dict[str, pa.DataType | None] = {}  # None: of changing type, not to be announced

    def meet(self, table: pa.Table) -> None:
        """Announce from now on the keys of a table that nobody knows or that are ignored, as what they were found to be."""
        for name, found in zip(table.schema.names, table.schema.types, strict=True):
            if name in self.kinds or name in self._unknown or (self.source.knows(name) and name not in self.source.ignored):
                continue
            announced = _announced(found)
            if announced is None or len(self._unknown) >= _MOST_UNKNOWN:
                self.infer = True
            else:
                self._unknown.setdefault(name, announced)

    def give_up(self, key: str) -> bool:
        """Announce an unknown key no more, since its values change their type; whether it is one that was announced."""
        if key not in self._unknown:
            return False
        self._unknown[key] = None
        return True

    def learn(self, key: str, kind: RawKind) -> None:
        """Note that the fast way reads a key as this kind, unless it already has another."""
        if not self.source.knows(key) or key in self.source.ignored:
            return
        if kind is RawKind.STRING or key not in self.source.private_keys:
            self.kinds.setdefault(key, kind)

    def arrow(self) -> pa.Schema:
        """Return the explicit schema for the reader."""
        known = list(self.kinds.items())  # in one step: another thread may learn a key meanwhile
        unknown = [(key, kind) for key, kind in list(self._unknown.items()) if kind is not None]
        return pa.schema([(key, RAW_TYPES[kind]) for key, kind in known] + unknown)


_MOST_UNKNOWN = 64  # each costs room in every block


def _announced(found: pa.DataType) -> pa.DataType | None:
    """Return the type as which an unknown key is announced; None where it says too little of the values to come."""
    if pa.types.is_boolean(found):
        return found
    if pa.types.is_integer(found) or pa.types.is_floating(found):
        return pa.float64()
    return pa.string() if pa.types.is_string(found) or pa.types.is_timestamp(found) else None


def number_kind(roles: frozenset[Kind]) -> RawKind:
    """Return how the fast way reads a number in a key with these roles."""
    if Kind.TIME in roles:
        return RawKind.DECIMAL
    return RawKind.INTEGER if Kind.TEXT in roles else RawKind.NUMBER
