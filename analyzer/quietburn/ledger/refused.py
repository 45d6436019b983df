"""Write refused lines as JSON lines: place and reason, and the text only on request."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from typing import BinaryIO

from quietburn.errors import InputError
from quietburn.records.inputs import LedgerFile, opened
from quietburn.records.reasons import QuarantinedLine

_MOST_RAW_BYTES = 64 << 10
_CHUNK = 4 << 20


def refused_lines(lines: Iterable[QuarantinedLine], ledgers: Iterable[LedgerFile], *, show_raw: bool) -> str:
    """Return refused lines as JSON lines.

    With `show_raw` each has its text under `raw`: at most 64 KiB of it, bytes that are no UTF-8 as
    escapes, null where the ledger can't be read again (standard input).
    """
    by_label = {ledger.label: ledger for ledger in ledgers}
    written = []
    for label, of_file in groupby(lines, key=lambda line: line.file):
        listed = list(of_file)
        texts = _texts(by_label.get(label), listed) if show_raw else iter([None] * len(listed))
        for line, text in zip(listed, texts, strict=True):
            record: dict[str, object] = {
                "file": line.file, "line": line.line, "offset": line.offset, "length": line.length,
                "code": line.code.value, "reason": line.reason,
            }
            if show_raw:
                record["raw"] = text
            written.append(json.dumps(record) + "\n")
    return "".join(written)


def _texts(ledger: LedgerFile | None, lines: list[QuarantinedLine]) -> Iterator[str | None]:
    """Yield the lines' texts, in order of their places."""
    left = len(lines)
    if ledger is not None and ledger.path is not None:
        # A ledger that is gone or changed since it was read costs the texts, not the report.
        with suppress(InputError), opened(ledger) as stream:
            at = 0
            for line in lines:
                at = _skip(stream, at, line.offset)
                data = _read(stream, min(line.length, _MOST_RAW_BYTES))
                at += len(data)
                left -= 1
                yield data.decode("utf-8", "backslashreplace")
    yield from [None] * left


def _skip(stream: BinaryIO, at: int, offset: int) -> int:
    while at < offset and (chunk := stream.read(min(_CHUNK, offset - at))):
        at += len(chunk)
    return at


def _read(stream: BinaryIO, size: int) -> bytes:
    data = b""
    while len(data) < size and (part := stream.read(size - len(data))):
        data += part
    return data
