"""Series as the input of a promtool test.

In the held form each sample of a counter stands for one second more, so that ranges which leave out
their left edge (Prometheus 3) see what those see that keep it (2.x).
"""

from collections.abc import Iterable

from quietburn.metrics.samples import STEP_S, Series, number_text


def held_values(series: Series, seconds: int, offset: int = 0) -> str:
    """Return the values at a one-second interval: each counter sample twice, a second apart.

    With an `offset` in seconds the counter is sampled off the evaluation grid, and not held.
    """
    if not series.is_counter:
        return _sparse(series.points, seconds)
    changes = dict(series.points)
    value = 0.0
    parts = [f"_x{offset}"] if offset else []
    pending = sorted(changes)
    index = 0
    for second in range(0, seconds + 1, STEP_S):
        while index < len(pending) and pending[index] <= second + offset:
            value = changes[pending[index]]
            index += 1
        text = number_text(value)
        parts.append(f"{text} _x{STEP_S - 1}" if offset else f"{text} {text} _x{STEP_S - 2}")
    return " ".join(parts)


def _sparse(points: Iterable[tuple[int, float]], seconds: int) -> str:
    parts: list[str] = []
    at = 0
    for second, value in points:
        if second > at:
            parts.append(f"_x{second - at}")
        parts.append(number_text(value))
        at = second + 1
    if at <= seconds:
        parts.append(f"_x{seconds - at + 1}")
    return " ".join(parts)


def stepped_values(series: Series, seconds: int) -> str:
    """Return the values at a 15-second interval, equal ones run together."""
    changes = dict(series.points)
    runs: list[tuple[str, int]] = []
    value = "_" if not series.is_counter else "0"
    for second in range(0, seconds + 1, STEP_S):
        if second in changes:
            value = number_text(changes[second])
        elif not series.is_counter:
            value = "_"
        if runs and runs[-1][0] == value:
            runs[-1] = (value, runs[-1][1] + 1)
        else:
            runs.append((value, 1))
    return " ".join(_run_text(text, count) for text, count in runs)


def _run_text(text: str, count: int) -> str:
    if text == "_":
        return f"_x{count}"
    return text if count == 1 else f"{text}x{count - 1}"
