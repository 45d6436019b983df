"""Strings from ledgers, made inert for terminals and CI logs."""

import re
import unicodedata

_KEPT = {" "}
# CI runners read commands from logs: `::name::` at the start of a line, blanks before it or not (GitHub);
# `##[name]` and `##vso[name]` anywhere in it (GitHub's older form, Azure, TeamCity).
_AT_START = re.compile(r"^(\s*):(?=:)")
_ANYWHERE = re.compile(r"#(?=#[A-Za-z]*\[)")


def printable(text: str) -> str:
    r"""Return text on one line in which no character can act: controls, escapes, bidi marks, line ends.

    What is taken out is shown as its escape (`\x1b`, `\u202e`), so that nothing vanishes. So is the
    first character of what a CI runner would take for a command.
    """
    if not (text.isascii() and text.isprintable()):
        text = "".join(char if _is_inert(char) else _escape(char) for char in text)
    return _ANYWHERE.sub(r"\\x23", _AT_START.sub(r"\1\\x3a", text))


def inert_json(text: str) -> str:
    """Return the same JSON with no CI runner's command in it (no line of it starts with text of a ledger)."""
    return _ANYWHERE.sub(r"\\u0023", text)


def _is_inert(char: str) -> bool:
    return char in _KEPT or (char.isprintable() and unicodedata.category(char) not in ("Cf", "Zl", "Zp"))


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
