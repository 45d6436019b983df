"""Ledgers as container runtimes and collectors write them."""

import json
from collections.abc import Callable, Iterable

Wrap = Callable[[bytes], bytes]


def cri(text: bytes, stream: str = "stdout", tag: str = "F") -> bytes:
    """Return a line as a CRI runtime writes it: the bytes as they come."""
    return f"2026-09-08T02:14:03.123456789Z {stream} {tag} ".encode() + text


def docker(text: bytes, stream: str = "stdout", end: str = "\n") -> bytes:
    """Return a line as Docker's json-file driver writes it; `end` is empty for a part of a longer line."""
    return _object({"log": text.decode() + end, "stream": stream, "time": "2026-09-08T02:14:03.123456789Z"})


def journald(text: bytes, stream: str | None = None, *, is_part: bool = False) -> bytes:
    """Return an entry as `journalctl -o json` writes it: unprintable bytes as numbers, and a note where a line was cut."""
    try:
        printable = all(char >= " " or char == "\t" for char in text.decode())
    except UnicodeDecodeError:
        printable = False
    return _object({
        "__CURSOR": "s=1;i=2", "__REALTIME_TIMESTAMP": "1788833643123456", "_SYSTEMD_UNIT": "gateway.service",
        "MESSAGE": text.decode() if printable else list(text), "PRIORITY": "6", "_TRANSPORT": "stdout",
        **({"_STREAM_ID": stream} if stream is not None else {}), **({"_LINE_BREAK": "line-max"} if is_part else {}),
    })  # fmt: skip


def logcli(text: bytes) -> bytes:
    """Return an entry as `logcli -o jsonl` writes it."""
    return _object({"labels": {"app": "gateway"}, "line": text.decode(), "timestamp": "2026-09-08T02:14:03.123456789Z"})


def _object(members: dict[str, object]) -> bytes:
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


WRAPS: dict[str, Wrap] = {"cri": cri, "docker": docker, "journald": journald, "logcli": logcli}


def wrapped(lines: Iterable[bytes], wrap: Wrap) -> bytes:
    """Return lines as a file of wrapped ones."""
    return b"".join(wrap(line) + b"\n" for line in lines)
