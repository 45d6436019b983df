"""Series in the formats that Prometheus reads: its text format, and OpenMetrics with timestamps."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from quietburn.metrics.contract import COUNTERS, GAUGES, HISTOGRAM_SUFFIXES, HISTOGRAMS, READING, Counter, Gauge, Histogram
from quietburn.metrics.samples import Frame, Series, number_text

_METRICS: dict[str, Counter | Histogram | Gauge] = {
    metric.name: metric for metric in (*COUNTERS, *HISTOGRAMS, *GAUGES, *READING)
}
_END = "# EOF\n"


@dataclass(frozen=True)
class Family:
    """The series of one metric, in order."""

    metric: Counter | Histogram | Gauge
    series: tuple[Series, ...]

    @property
    def kind(self) -> str:
        """Return the metric's type as the formats name it."""
        return type(self.metric).__name__.lower()


def families(series: Iterable[Series]) -> list[Family]:
    """Return series by metric, both in order of their names: a format allows each metric once."""
    ordered = sorted(series, key=lambda each: (_metric_of(each.name).name, each.name, _without_bound(each)))
    return [Family(_METRICS[name], tuple(found)) for name, found in groupby(ordered, key=lambda each: _metric_of(each.name).name)]


def text_format(series: Iterable[Series]) -> Iterator[str]:
    """Yield lines of Prometheus's text format 0.0.4: the last value of each series, without a time."""
    for family in families(series):
        yield from _head(family, family.metric.name)
        for each in family.series:
            yield f"{_name_of(each)} {number_text(each.points[-1][1])}\n"


def openmetrics(series: Iterable[Series], frame: Frame, step_s: int) -> Iterator[str]:
    """Yield lines of OpenMetrics: each series at every step of the frame, with its time in seconds since 1970.

    A counter keeps its value between its increments. A gauge stands where it was measured only.
    """
    start = frame.base * 60
    for family in families(series):
        yield from _head(family, family.metric.name.removesuffix("_total"))
        for each in family.series:
            points = _stepped(each, frame.minutes * 60, step_s) if each.is_counter else each.points
            for second, value in points:
                yield f"{_name_of(each)} {number_text(value)} {start + second}\n"
    yield _END


def _name_of(series: Series) -> str:
    return series.selector.removesuffix("{}")


def _metric_of(name: str) -> Counter | Histogram | Gauge:
    """Return the contract's metric that a series is of."""
    if name in _METRICS:
        return _METRICS[name]
    return next(_METRICS[name.removesuffix(suffix)] for suffix in HISTOGRAM_SUFFIXES if name.endswith(suffix))


def _without_bound(series: Series) -> tuple[object, ...]:
    """Return what orders the series of a name: buckets of one histogram stand together, by rising bound."""
    labels = [label for label in series.labels if label[0] != "le"]
    return (labels, *(float(value) for name, value in series.labels if name == "le"))


def _head(family: Family, name: str) -> Iterator[str]:
    said = family.metric.help.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {name} {said}\n"
    yield f"# TYPE {name} {family.kind}\n"


def _stepped(series: Series, seconds: int, step_s: int) -> Iterator[tuple[int, float]]:
    """Yield a counter at each step from the frame's start to its end."""
    place, value = 0, 0.0
    for second in range(0, seconds + 1, step_s):
        while place < len(series.points) and series.points[place][0] <= second:
            value = series.points[place][1]
            place += 1
        yield second, value
