"""The text of single lines, read again from their file when somebody asks for it."""

from collections.abc import Iterable

from quietburn.ledger.inputs import LedgerFile, opened

_CHUNK = 1 << 20


def line_texts(ledger: LedgerFile, places: Iterable[tuple[int, int]]) -> dict[int, str]:
    """Return texts by byte offset for (offset, length) places; bytes that are not UTF-8 as escapes.

    Standard input can't be read again and gives nothing.
    """
    if ledger.path is None:
        return {}
    found: dict[int, str] = {}
    with opened(ledger) as stream:
        at = 0
        for offset, length in sorted(places):
            while at < offset and (skipped := stream.read(min(_CHUNK, offset - at))):
                at += len(skipped)
            data = b""
            while len(data) < length and (part := stream.read(length - len(data))):
                data += part
            at += len(data)
            found[offset] = data.decode("utf-8", "backslashreplace")
    return found
