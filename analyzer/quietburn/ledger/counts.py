"""What became of one file's lines, counted."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from quietburn.ledger.raw import UnknownKeys


@dataclass
class FileCounts:
    """What became of one file's lines: lines = used + not_a_request + duplicates + quarantined + blank."""

    label: str
    dialect: str
    why: str
    file_id: int = 0
    dialects: tuple[str, ...] = ()
    lines: int = 0
    events: int = 0
    not_a_request: int = 0
    quarantined: int = 0
    incomplete_last_line: bool = False
    blank: int = 0
    duplicates: int = 0
    invalid_values: int = 0
    coerced: int = 0
    naive_times: int = 0
    leading_nuls: int = 0
    unknown: UnknownKeys = field(default_factory=UnknownKeys)

    def stored(self) -> dict[str, Any]:
        """Return the counts as a store keeps them."""
        return dataclasses.asdict(self)

    @classmethod
    def restored(cls, stored: dict[str, Any]) -> "FileCounts":
        """Return counts that a store kept."""
        return cls(**{**stored, "dialects": tuple(stored["dialects"]), "unknown": UnknownKeys(**stored["unknown"])})
