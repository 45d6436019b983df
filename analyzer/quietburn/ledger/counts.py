"""Counts of what became of one file's lines."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from quietburn.dialects.unknown import UnknownKeys


@dataclass
class FileCounts:
    """What became of one file's lines: lines = used + not_a_request + duplicates + quarantined + blank."""

    label: str
    dialect: str
    why: str
    file_id: int = 0
    wrapper: str = ""
    dialects: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()  # that its lines have, with something in them or not
    lines: int = 0  # records, in a document
    physical_lines: int = 0
    events: int = 0
    joined: int = 0  # further lines of events that were written in parts
    not_a_request: int = 0
    other_text: int = 0  # of these: texts in a wrapper that are no JSON
    quarantined: int = 0
    incomplete_last_line: bool = False
    blank: int = 0
    packed: int = 0  # events beyond the first of their line, in dialects that put several into one
    bad_items: int = 0  # events refused within lines that were used
    other_items: int = 0  # items that are no requests, in dialects that put several into one line
    duplicates: int = 0
    reshipped: int = 0  # of these: lines that differ in keys that no column is made of
    same_call: int = 0  # used lines of a callee's proxy whose call the caller's proxy logged: in no rate
    invalid_values: int = 0
    coerced: int = 0
    naive_times: int = 0
    leading_nuls: int = 0
    invented: int = 0  # failed attempts that report 0 ms: their usage and timings are unknown
    time_units: dict[str, int] = field(default_factory=dict)  # lines by the unit of their time, where that is a number
    unknown: UnknownKeys = field(default_factory=UnknownKeys)

    def count_times(self, unit: str, lines: int) -> None:
        """Count lines whose time is a number in this unit."""
        if lines:
            self.time_units[unit] = self.time_units.get(unit, 0) + lines

    @property
    def used(self) -> int:
        """Return how many physical lines the events were written in."""
        return self.events - self.packed + self.joined

    def stored(self) -> dict[str, Any]:
        """Return the counts as a store keeps them: without what a caller may have written."""
        return dataclasses.asdict(dataclasses.replace(self, unknown=self.unknown.named()))

    @classmethod
    def restored(cls, stored: dict[str, Any]) -> "FileCounts":
        """Return counts that a store kept."""
        lists = {name: tuple(stored.get(name, ())) for name in ("dialects", "keys")}
        return cls(**{**stored, **lists, "unknown": UnknownKeys(**stored["unknown"])})
