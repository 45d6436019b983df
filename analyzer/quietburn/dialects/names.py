"""What can be inferred from a key's name."""

import re
from typing import Literal

Unit = Literal["s", "ms", "us", "ns"]
UNITS: dict[str, Unit] = {
    "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "ms": "ms", "msec": "ms", "msecs": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms",
    "us": "us", "usec": "us", "usecs": "us", "micros": "us", "microseconds": "us",
    "ns": "ns", "nsec": "ns", "nanos": "ns", "nanoseconds": "ns",
}  # fmt: skip


def plain_name(key: str) -> str:
    """Return the last step of a key as lower-case words joined by `_`."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"([a-z])([A-Z])", r"\1_\2", key.rsplit("/", 1)[-1]).lower()).strip("_")


def named_unit(key: str) -> Unit | None:
    """Return the unit that a key's name ends with (`latency_ms`, `durationSeconds`); None where it tells none."""
    return UNITS.get(plain_name(key).rsplit("_", 1)[-1])
