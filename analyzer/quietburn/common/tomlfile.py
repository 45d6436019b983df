"""TOML files from anywhere: read within bounds, or refused in one line."""

import tomllib
from pathlib import Path
from typing import Any

from quietburn.errors import ConfigError

MOST_BYTES = 512 << 10
MOST_DOTS = 300  # in a line; Python's reader takes time by the square of a dotted key's parts
MOST_DEPTH = 64
_INT64 = range(-(2**63), 2**63)  # TOML's own bounds, which Python's reader doesn't hold


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """Return a TOML file's content. Raises ConfigError that names the file, called `kind` in the message."""
    try:
        return _checked(_parsed(_text(path)))
    except _UnusableError as problem:
        raise ConfigError(f"{kind} {printed(path)}: {problem}.") from None


def printed(path: Path) -> str:
    """Return a path as text that any stream takes."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class _UnusableError(Exception):
    """What is wrong with the file, in words."""


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as problem:
        raise _UnusableError(f"can't be read ({(problem.strerror or str(problem)).lower()})") from None
    except UnicodeDecodeError:
        raise _UnusableError("not valid UTF-8; save it as UTF-8 text") from None
    if len(data) > MOST_BYTES:
        raise _UnusableError(f"is larger than {MOST_BYTES >> 10} KiB, the most that is read")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MOST_DOTS:
            raise _UnusableError(f"line {number} has more than {MOST_DOTS} dots; write tables, and lists on several lines")
    return text


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise _UnusableError(f"not valid TOML: {problem}") from None
    except RecursionError:
        raise _UnusableError(f"not valid TOML: nested deeper than {MOST_DEPTH} levels") from None
    except ValueError:  # Python's own limit on the digits of a whole number
        raise _UnusableError("not valid TOML: an integer exceeds 64 bits") from None


def _checked(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content, which holds no number and no depth that those who read it can't take."""
    level: list[tuple[str, object]] = list(content.items())
    for _ in range(MOST_DEPTH):
        level = [item for key, value in level for item in _within(key, value)]
    if level:
        raise _UnusableError(f"{level[0][0][:80]}: nested deeper than {MOST_DEPTH} levels")
    return content


def _within(key: str, value: object) -> list[tuple[str, object]]:
    if isinstance(value, dict):
        return [(f"{key}.{name}", inner) for name, inner in value.items()]
    if isinstance(value, list):
        return [(key, inner) for inner in value]
    if isinstance(value, int) and value not in _INT64:
        raise _UnusableError(f"{key[:80]}: an integer exceeds 64 bits")
    return []
