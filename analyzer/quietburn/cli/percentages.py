"""Parse shares and percentages given to flags."""

import math

from quietburn.errors import UsageError


def parse_share(text: str, flag: str) -> float:
    """Return a share from `5%` or `0.05`. Raises UsageError naming the flag."""
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise UsageError(f"{flag} {text!r}: write a share such as 5% or 0.05.")
    return share
