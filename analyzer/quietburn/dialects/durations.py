"""Durations written with their units: `161.45s`, `29m59s`, `350ms`, `1h2m`."""

from quietburn.common.sql import literal

_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_PARTS = {
    "d": ("d", 86_400_000.0),
    "h": ("h", 3_600_000.0),
    "m": ("(?:min|m)", 60_000.0),
    "s": ("(?:sec|s)", 1000.0),
    "ms": ("ms", 1.0),
    "us": ("(?:us|\u00b5s|\u03bcs)", 1e-3),
    "ns": ("ns", 1e-6),
}
_PATTERN = "^" + "".join(f"(?:{_NUMBER} ?{word} ?)?" for word, _ in _PARTS.values()) + "$"


def suffixed_ms(text: str) -> str:
    """Return the SQL of what a text with units says in milliseconds; NULL where it is no such text."""
    trimmed = f"trim({text})"
    names = ", ".join(literal(name) for name in _PARTS)
    found = f"regexp_extract({trimmed}, {literal(_PATTERN)}, [{names}])"
    total = " + ".join(
        f"COALESCE(TRY_CAST(NULLIF(struct_extract({found}, {literal(name)}), '') AS DOUBLE), 0) * {factor!r}"
        for name, (_, factor) in _PARTS.items()
    )
    return f"CASE WHEN regexp_matches({trimmed}, '[a-z]$') AND regexp_matches({trimmed}, {literal(_PATTERN)}) THEN {total} END"
