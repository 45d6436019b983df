"""Strings from ledgers, made inert for terminals and CI logs."""

import unicodedata

_KEPT = {" "}


def printable(text: str) -> str:
    r"""Return text on one line in which no character can act: controls, escapes, bidi marks, line ends.

    What is taken out is shown as its escape (`\x1b`, `\u202e`), so that nothing vanishes.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _is_inert(char) else _escape(char) for char in text)


def _is_inert(char: str) -> bool:
    return char in _KEPT or (char.isprintable() and unicodedata.category(char) not in ("Cf", "Zl", "Zp"))


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
