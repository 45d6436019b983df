"""The files of a new rule: an example that already works, with the places to fill in marked TODO."""

import re
from pathlib import Path

from quietburn.authoring.checkout import Checkout
from quietburn.errors import UsageError

_SKELETONS = Path(__file__).resolve().parent / "skeletons"
_WINDOWED = ("rule.toml", "case.py.txt", "fault.py.txt")
_OF_EVENTS = ("event-rule.toml", "event-case.py.txt", "fault.py.txt")
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def new_rule(place: Checkout, rule_id: str, *, of_events: bool = False) -> list[Path]:
    """Write the files of a new rule, windowed or over single events, and return them.

    Raises UsageError for an id that is malformed or taken.
    """
    if not _ID.fullmatch(rule_id) or not 3 <= len(rule_id) <= 61:  # as Rule.id is bounded
        raise UsageError(f"rules new {rule_id!r}: use lower-case words joined by -, such as streams-slowed.")
    files = dict(zip(place.written_by_hand(rule_id), _OF_EVENTS if of_events else _WINDOWED, strict=True))
    for path in files:
        if path.exists():
            raise UsageError(f"rules new {rule_id}: {place.name(path)} already exists. Choose another id.")
    for path, skeleton in files.items():
        path.write_text(_filled((_SKELETONS / skeleton).read_text(encoding="utf-8"), rule_id), encoding="utf-8", newline="\n")
    return list(files)


def _filled(text: str, rule_id: str) -> str:
    words = rule_id.split("-")
    names = {"@ID@": rule_id, "@NAME@": "_".join(words), "@ALERT@": "".join(word.capitalize() for word in words)}
    for mark, name in names.items():
        text = text.replace(mark, name)
    return text
