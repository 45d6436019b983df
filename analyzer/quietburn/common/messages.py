"""Small helpers for messages: what pydantic found, in our words; the nearest known name."""

from collections.abc import Iterable
from difflib import get_close_matches

from pydantic import ValidationError

_MOST_NAMED = 10
_LONGEST_KEY = 100


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` for the closest known name, or an empty string."""
    close = get_close_matches(name[:_LONGEST_KEY], list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def validation_problems(error: ValidationError, known: Iterable[str] = ()) -> list[str]:
    """Return the first problems that pydantic found, as `key: what is wrong` in our words, and how many more there are."""
    found = error.errors(include_url=False, include_context=True)
    return first_of([_problem(dict(item), known) for item in found[:_MOST_NAMED]], len(found))


def first_of(problems: list[str], in_all: int) -> list[str]:
    """Return the first problems, and how many more there are."""
    return problems[:_MOST_NAMED] + ([f"and {in_all - _MOST_NAMED:,} more"] if in_all > _MOST_NAMED else [])


def shortened(key: str) -> str:
    """Return a key of somebody's file, cut where it is too long to print."""
    return key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}..."


def _problem(item: dict[str, object], known: Iterable[str]) -> str:
    location = item.get("loc")
    parts = [str(part) for part in location] if isinstance(location, tuple) else []
    key = shortened(".".join(part for part in parts if not part.startswith("function-")) or "(file)")
    kind = str(item.get("type"))
    if kind == "extra_forbidden":
        return f"{key}: unknown key{nearest(parts[-1], known)}"
    if kind == "missing":
        return f"{key}: is required"
    context = item.get("ctx")
    if kind == "value_error" and isinstance(context, dict):
        return f"{key}: {context.get('error')}"
    words = str(item.get("msg", "is not valid"))
    return f"{key}: {words[:1].lower()}{words[1:]}"
