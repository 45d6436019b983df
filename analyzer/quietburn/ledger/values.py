"""How the value of each key is taken from a parsed line: worked out once a file, not once a line."""

from collections.abc import Callable, Iterable
from collections.abc import Mapping as KeyMap
from typing import Any

from quietburn.ledger.careful import resolve
from quietburn.ledger.transforms import TRANSFORMS

Getter = Callable[[dict[str, Any]], Any]
_TELL_OF_NOTHING = ("span_status", "status_unless_failed")  # what says nothing of a failure did not fail


def getters(keys: Iterable[str], derived: KeyMap[str, tuple[str, tuple[str, ...]]]) -> dict[str, Getter]:
    """Return for each key, path, or name of what a transform makes, what gives its value (None where there is none)."""
    return {key: _made(*derived[key]) if key in derived else _getter(key) for key in keys}


def _getter(key: str) -> Getter:
    if key.startswith("/"):
        return lambda members: resolve(members, key)
    return lambda members: members.get(key)


def _made(name: str, keys: tuple[str, ...]) -> Getter:
    """Return what gives a transform's value; of nothing it makes nothing."""
    transform, sources = TRANSFORMS[name], [_getter(key) for key in keys]
    if len(sources) == 1:
        (source,) = sources
        return lambda members: None if (value := source(members)) is None else transform(value)

    def joint(members: dict[str, Any]) -> Any:
        values = [source(members) for source in sources]
        return transform(*values) if name in _TELL_OF_NOTHING or any(value is not None for value in values) else None

    return joint
