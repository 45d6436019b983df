"""Numbers as cells of a table."""

from collections.abc import Iterable, Sequence

from tests.precision.tallies import Firer, Part

_NOTHING = "-"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def percent(share: float | None) -> str:
    """Return a share in whole percent, and small ones with a decimal."""
    if share is None:
        return _NOTHING
    return f"{100 * share:.1f} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


def part(counted: Part) -> str:
    """Return a share with its counts and interval."""
    ends = counted.interval
    if ends is None:
        return _NOTHING
    return f"{counted.hits} of {counted.of}: {percent(counted.share)} ({100 * ends[0]:.0f}–{100 * ends[1]:.0f})"  # noqa: RUF001


def minutes(seconds: float | None) -> str:
    """Return a delay in minutes."""
    return _NOTHING if seconds is None else f"{seconds / 60:.0f}"


def rate(events: float) -> str:
    """Return events a week."""
    return f"{events:.1f}" if events == events else _NOTHING  # noqa: PLR0124 - not a number where nothing was watched


def of_random(firer: Firer) -> str:
    """Return what a random firer would reach: precision; recall weak, moderate, strong."""
    if firer.precision is None:
        return _NOTHING
    return f"{percent(firer.precision)}; {' / '.join(percent(share) for share in firer.recall)}"
