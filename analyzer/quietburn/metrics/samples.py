"""A ledger as series of the metrics contract.

Counters are sampled on the evaluation grid, every 15 s, and start at an explicit 0. Gauges stand
once a minute, 15 s before its end: inside the minute's window and no other's edge.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from quietburn.engine.base import Engine
from quietburn.engine.minutes import exact_mean
from quietburn.metrics.contract import (
    CPU_RATIO,
    EVENTS,
    HISTOGRAMS,
    HOURLY_TOKEN_CAP,
    Count,
    Counter,
    Histogram,
    counter_named,
)

STEP_S = 15
_STEP_US = STEP_S * 1_000_000
_STEPS_A_MINUTE = 60 // STEP_S


@dataclass(frozen=True)
class Series:
    """One series: name, labels, and its points as (seconds since the test's start, value), in order."""

    name: str
    labels: tuple[tuple[str, str], ...]
    points: tuple[tuple[int, float], ...]
    is_counter: bool

    @property
    def selector(self) -> str:
        """Return the series in exposition form, empty labels left out."""
        listed = ",".join(f'{name}="{escape_label(value)}"' for name, value in self.labels if value)
        return f"{self.name}{{{listed}}}"


@dataclass(frozen=True)
class Frame:
    """The span that a test covers, in minutes since 1970.

    Events after `base` are in it; evaluations from `first` to `last` are judged, those before
    only let windows fill.
    """

    base: int
    first: int
    last: int

    @property
    def minutes(self) -> int:
        """Return how many minutes are evaluated."""
        return self.last - self.base

    def second(self, minute: int) -> int:
        """Return a minute's end as seconds since the test's start."""
        return (minute - self.base) * 60


class EventRows:
    """What an engine's events hold, asked once each: an alert's tests cut the same counts into many frames."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a SELECT."""
        if sql not in self._rows:
            self._rows[sql] = self._engine.select(sql).to_pylist()
        return self._rows[sql]

    def steps(self, sql: str, frame: Frame) -> list[dict[str, Any]]:
        """Return the rows of a SELECT that lie in a frame, each with its `step` counted from the test's start."""
        first, last = frame.base * _STEPS_A_MINUTE, frame.last * _STEPS_A_MINUTE
        return [row | {"step": row["step"] - first} for row in self.rows(sql) if first < row["step"] <= last]


def escape_label(value: str) -> str:
    """Return a label value for double quotes."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def ledger_series(
    ledger: EventRows, frame: Frame, names: Iterable[str], bounds: Iterable[str], *, token_cap: float | None = None,
    events: tuple[Count, ...] = (),
) -> list[Series]:
    """Return the series of the named metrics over a frame, sorted by name and labels.

    `events` are a rule's own, beside those that any ledger has.
    """
    wanted = set(names)
    found: list[Series] = []
    for name in sorted(wanted):
        counter = counter_named(name)
        if counter is not None:
            counts = (*counter.counts, *events) if name == EVENTS else counter.counts
            found += _counter_series(ledger, frame, counter, counts)
    for histogram in HISTOGRAMS:
        if any(name.startswith(histogram.name) for name in wanted):
            found += _histogram_series(ledger, frame, histogram, sorted(bounds, key=float), wanted)
    if CPU_RATIO in wanted:
        found += _cpu_series(ledger, frame)
    if HOURLY_TOKEN_CAP in wanted and token_cap is not None:
        every_minute = tuple((minute * 60, token_cap) for minute in range(frame.minutes + 1))
        found.append(Series(HOURLY_TOKEN_CAP, (), every_minute, is_counter=False))
    return sorted(found, key=lambda series: (series.name, series.labels))


_STEP = f"(ts_us + {_STEP_US - 1}) // {_STEP_US}"  # number of the 15 s step that an event falls into


def _counter_series(ledger: EventRows, frame: Frame, counter: Counter, counts: tuple[Count, ...]) -> list[Series]:
    found = []
    for count in counts:
        labels = ", ".join(f"{sql} AS {name}" for name, sql in counter.labels)
        keys = ", ".join(name for name, _ in counter.labels)
        rows = ledger.steps(
            f"SELECT {keys}, step, sum(value) AS value FROM (SELECT {labels}, {_STEP} AS step, {count.value} AS value "
            f"FROM {count.source} WHERE ({count.where}) AND minute IS NOT NULL) GROUP BY {keys}, step ORDER BY {keys}, step",
            frame,
        )
        found += _grouped(counter.name, [name for name, _ in counter.labels], count.fixed, rows)
    return found


def _grouped(
    name: str, keys: list[str], fixed: tuple[tuple[str, str], ...], rows: list[dict[str, object]]
) -> list[Series]:
    """Return counters from increments by step; rows come ordered by labels and step."""
    by_labels: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for row in rows:
        points = by_labels.setdefault(tuple(str(row[key]) for key in keys), [(0, 0.0)])
        points.append((int(str(row["step"])) * STEP_S, points[-1][1] + float(str(row["value"]))))
    return [
        Series(name, (*zip(keys, values, strict=True), *fixed), tuple(points), is_counter=True)
        for values, points in by_labels.items()
    ]


def _histogram_series(
    ledger: EventRows, frame: Frame, histogram: Histogram, bounds: list[str], wanted: set[str]
) -> list[Series]:
    keys = [name for name, _ in histogram.labels]
    listed = "".join(f"{sql} AS {name}, " for name, sql in histogram.labels)
    grouped = "".join(f"{key}, " for key in keys)
    ways: list[tuple[str, tuple[tuple[str, str], ...], str]] = []
    if histogram.name + "_bucket" in wanted:
        ways += [("_bucket", (("le", b),), f"CASE WHEN value <= {float(b) * 1000!r} THEN 1 ELSE 0 END") for b in bounds]
        ways.append(("_bucket", (("le", "+Inf"),), "1"))
    if histogram.name + "_count" in wanted:
        ways.append(("_count", (), "1"))
    if histogram.name + "_sum" in wanted:
        ways.append(("_sum", (), "value / 1000"))
    found = []
    for suffix, fixed, counted in ways:
        rows = ledger.steps(
            f"SELECT {grouped}step, sum({counted}) AS value FROM (SELECT {listed}{_STEP} AS step, "
            f"{histogram.column_ms} AS value FROM events WHERE {histogram.column_ms} IS NOT NULL AND minute IS NOT NULL) "
            f"GROUP BY {grouped}step ORDER BY {grouped}step",
            frame,
        )
        found += _grouped(histogram.name + suffix, keys, fixed, rows)
    return found


def _cpu_series(ledger: EventRows, frame: Frame) -> list[Series]:
    rows = ledger.rows(
        f"SELECT COALESCE(backend, '') AS backend, minute, {exact_mean('cpu_pct')} / 100 AS value FROM events "
        "WHERE cpu_pct IS NOT NULL AND minute IS NOT NULL GROUP BY COALESCE(backend, ''), minute ORDER BY 1, 2"
    )
    by_backend: dict[str, list[tuple[int, float]]] = {}
    for row in (row for row in rows if frame.base < row["minute"] <= frame.last):
        by_backend.setdefault(row["backend"], []).append((frame.second(row["minute"]) - STEP_S, row["value"]))
    return [
        Series(CPU_RATIO, (("backend", backend),), tuple(points), is_counter=False)
        for backend, points in by_backend.items()
    ]


def number_text(value: float) -> str:
    """Return a sample's value as promtool reads it exactly."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)
