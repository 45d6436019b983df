"""What a call is for, told by the name of its route, its operation or its path: one table for all dialects.

The table is rules/routes.toml. What the user's configuration lists stands before it.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from quietburn.common.callkinds import CallKind
from quietburn.common.resources import ROUTES_FILE, rules_dir

Lists = Mapping[CallKind, tuple[str, ...]]


@dataclass(frozen=True)
class Told:
    """A call's kind, and its kind where the line shows that something was generated."""

    kind: CallKind
    if_shown: CallKind

    @classmethod
    def surely(cls, kind: CallKind) -> "Told":
        """Return a kind that holds whatever else the line shows."""
        return cls(kind, kind)


_IF_SHOWN = Told(CallKind.OTHER, CallKind.GENERATE)
_METHOD = re.compile(r"^([A-Za-z]+)\s+(?=\S)")
_CUT = re.compile(r"^[a-z][a-z0-9+.-]*://[^/?#]*|[?#].*$|(?<!\s)\s+http/[0-9.]+$", re.IGNORECASE | re.DOTALL)
_NONE = ("", "-")  # what loggers write where there is nothing


def is_path(text: str) -> bool:
    """Whether a route is given by its path rather than by a name."""
    return "/" in text


def plain_path(text: str) -> tuple[str, str]:
    """Return the method that stands before a path (or "") and the bare path, as it is compared."""
    found = _METHOD.match(text.strip())
    method, rest = (found[1], text.strip()[found.end() :]) if found else ("", text.strip())
    bare = _CUT.sub("", _CUT.sub("", rest))  # a query may stand before the HTTP version
    return method.upper(), re.sub(r"/{2,}", "/", bare).rstrip("/") or "/"


def pattern_of(path: str) -> str:
    """Return a path in which segments that look like ids are `*`: those with a digit or over 20 characters."""
    segments = plain_path(path)[1].split("/")
    return "/".join("*" if _looks_like_id(segment) else segment for segment in segments)


_API_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]*)?")


def _looks_like_id(segment: str) -> bool:
    if _API_VERSION.fullmatch(segment):
        return False
    return len(segment) > 20 or any(character.isdigit() for character in segment)


def _matcher(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    if not patterns:
        return None
    verbs = [pattern for pattern in patterns if pattern.startswith(":")]
    endings = [pattern.strip("/") for pattern in patterns if not pattern.startswith(":")]
    found = [re.escape(verb) + "$" for verb in verbs] + [f"(?:^|/){_ending(ending)}$" for ending in endings]
    return re.compile("|".join(found), re.IGNORECASE)


def _ending(pattern: str) -> str:
    """Return the regular expression of an ending; a `*` at its end leaves verbs to their own patterns."""
    parts = [".+" if part == "**" else re.escape(part).replace(r"\*", "[^/]+") for part in pattern.split("/")]
    if pattern.endswith("/*"):
        parts[-1] = "[^/:]+"
    return "/".join(parts)


@dataclass(frozen=True)
class _List:
    """The patterns of one kind in one part of the table."""

    kind: CallKind
    pattern: re.Pattern[str]


def _compiled(lists: Lists) -> tuple[_List, ...]:
    made = [(kind, _matcher(patterns)) for kind, patterns in lists.items()]
    return tuple(_List(kind, pattern) for kind, pattern in made if pattern is not None)


def _by_name(lists: Lists) -> dict[str, CallKind]:
    return {name.lower(): kind for kind, names in lists.items() for name in names}


@dataclass(frozen=True)
class RouteTable:
    """The table of routes: the shipped lists, and before them those of the user."""

    exceptions: Lists
    endings: Lists
    names: Lists
    operations: Lists
    own: Lists = field(default_factory=dict)  # the user's: names, and paths, which hold a `/`

    def with_own(self, own: Lists) -> "RouteTable":
        """Return the table with a user's lists before its own."""
        return replace(self, own=own)

    @cached_property
    def _own_paths(self) -> tuple[_List, ...]:
        return _compiled({kind: tuple(filter(is_path, listed)) for kind, listed in self.own.items()})

    @cached_property
    def _own_names(self) -> dict[str, CallKind]:
        return _by_name(self.own)

    @cached_property
    def _paths(self) -> tuple[_List, ...]:
        return (*_compiled(self.exceptions), *_compiled(self.endings))

    @cached_property
    def _names(self) -> dict[str, CallKind]:
        return _by_name(self.names)

    @cached_property
    def _operations(self) -> dict[str, CallKind]:
        return self._names | _by_name(self.operations)

    def tell(
        self, *, route: str | None = None, operation: str | None = None, path: str | None = None, method: str | None = None
    ) -> Told:
        """Return the kind of a call from what its line says of it; what is None it doesn't say."""
        own = self._of_user(route, operation, path)
        if own is not None:
            return Told.surely(own)
        if name := own_name(route):
            return Told.surely(self._names.get(name.lower(), CallKind.GENERATE))
        if operation and (kind := self._operations.get(operation.strip().lower())):
            return Told.surely(kind)
        paths = [text for text in (path, route) if text and text.strip() not in _NONE]
        if paths:
            return self._of_paths(paths, method)
        return Told.surely(CallKind.OTHER if operation else CallKind.GENERATE)

    def _of_user(self, route: str | None, operation: str | None, path: str | None) -> CallKind | None:
        named = (self._own_names.get(text.strip().lower()) for text in (own_name(route), operation) if text)
        placed = (_first(self._own_paths, plain_path(text)[1]) for text in (path, route) if text and is_path(text))
        return next((kind for kind in (*named, *placed) if kind), None)

    def _of_paths(self, paths: list[str], method: str | None) -> Told:
        """Return the kind by the first path that stands in a list."""
        plain = [plain_path(text) for text in paths]
        kind = next((found for _, bare in plain if (found := _first(self._paths, bare))), None)
        if kind not in (None, CallKind.GENERATE):
            return Told.surely(kind)
        asked = (method or next((told for told, _ in plain if told), "")).strip().upper()
        if asked in ("OPTIONS", "HEAD"):
            return Told.surely(CallKind.OTHER)
        return _IF_SHOWN if kind is None or asked == "GET" else Told.surely(kind)


def _first(lists: tuple[_List, ...], path: str) -> CallKind | None:
    return next((one.kind for one in lists if one.pattern.search(path)), None)


def own_name(route: str | None) -> str | None:
    """Return the name that a line gives its route; None where it gives none, or a path."""
    name = (route or "").strip()
    return None if name in _NONE or is_path(name) else name


@cache
def shipped_routes() -> RouteTable:
    """Return the shipped table."""
    content = tomllib.loads((rules_dir() / ROUTES_FILE).read_text(encoding="utf-8"))
    return RouteTable(**{part: _lists(content[part]) for part in ("exceptions", "endings", "names", "operations")})


def _lists(table: Mapping[str, Any]) -> Lists:
    return {CallKind(kind): tuple(patterns) for kind, patterns in table.items()}
