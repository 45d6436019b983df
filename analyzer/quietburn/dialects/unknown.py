"""Keys that no dialect knows: counted and named, never made columns."""

import re
from dataclasses import dataclass, field


@dataclass
class UnknownKeys:
    """Keys that the dialect doesn't know: lines that hold one, and the first of them."""

    counts: dict[str, int] = field(default_factory=dict)
    first_lines: dict[str, int] = field(default_factory=dict)

    def add(self, key: str, count: int, line: int) -> None:
        """Count lines that hold a key."""
        self.counts[key] = self.counts.get(key, 0) + count
        self.first_lines[key] = min(line, self.first_lines.get(key, line))

    def named(self) -> "UnknownKeys":
        """Return the keys as they may be shown and kept: what is no field's name may be what a caller wrote."""
        shown = UnknownKeys()
        for key, count in self.counts.items():
            name = key if is_field_name(key) or _MASKED.fullmatch(key) else f"(a key of {len(key)} characters)"
            shown.add(name, count, self.first_lines[key])
        return shown


# Names of fields are shown, so that a renamed one is seen; what does not look like one may hold a secret.
_FIELD_NAME = re.compile(r"^(?=.*[a-z])(?!(?:.*[0-9]){4})[A-Za-z_@][A-Za-z0-9_.@:/-]*")
_LONGEST_FIELD_NAME = 48
_MASKED = re.compile(r"\(a key of [0-9]+ characters\)")


def is_field_name(key: str) -> bool:
    """Whether a key looks like a field's name, and so may be shown."""
    return len(key) <= _LONGEST_FIELD_NAME and _FIELD_NAME.fullmatch(key) is not None
