"""CPU use from elsewhere: a CSV file, or Prometheus's answer to a range query."""

import csv
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from quietburn.common.limits import FIRST_S, LAST_S, MINUTE_US, epoch_seconds
from quietburn.errors import InputError
from quietburn.records.inputs import label_of, os_words

_MOST_BYTES = 256 << 20
_BACKEND_LABELS = ("backend", "instance", "pod", "node", "host")


@dataclass(frozen=True)
class CpuSample:
    """CPU use of one backend ("": of all) at a time, in percent."""

    ts_us: int
    backend: str
    percent: float


@dataclass
class CpuSamples:
    """What a file holds: usable samples, and rows that are none, with the first of them."""

    samples: list[CpuSample] = field(default_factory=list)
    refused: int = 0
    first_refused: int | None = None
    scaled: bool = False  # ratios were read as such and made percent

    def refuse(self, row: int) -> None:
        """Count a row that can't be used."""
        self.refused += 1
        self.first_refused = row if self.first_refused is None else self.first_refused

    def notices(self, name: str) -> Iterator[str]:
        """Yield what the reader must know of them."""
        ratios = ", ratios of 1 read as 100 %" if self.scaled else ""
        yield f"CPU use comes from {name}: {len(self.samples):,} samples{ratios}."
        if self.refused:
            yield f"{name}: {self.refused:,} rows have no usable time and number; the first is row {self.first_refused}."


def read_cpu(path: Path, zone: str | None) -> CpuSamples:
    """Read CPU samples: CSV with the columns ts, cpu_pct and perhaps backend, or a query_range answer in JSON.

    `zone` is the zone of times that name none. Raises InputError naming the file and what it needs.
    """
    name = label_of(str(path))
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"--cpu {name}: is larger than 256 MiB. Give CPU use per minute, not per request.")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"--cpu {name}: is not UTF-8 text. Give CSV (ts,cpu_pct[,backend]) or a query_range response.") from None
    except OSError as problem:
        raise InputError(f"--cpu {name}: can't be read ({os_words(problem)}).") from None
    found = _from_json(text, name) if text.lstrip()[:1] in "{[" and text.strip() else _from_csv(text, name, zone)
    if not found.samples:
        raise InputError(f"--cpu {name}: contains no usable sample. Each needs a time (ts) and a number (cpu_pct, 0 to 100).")
    return found


def _from_csv(text: str, name: str, zone: str | None) -> CpuSamples:
    rows = csv.DictReader(text.splitlines())
    columns = [column.strip() for column in rows.fieldnames or ()]
    if not {"ts", "cpu_pct"} <= set(columns):
        raise InputError(f"--cpu {name}: the first line must name the columns ts and cpu_pct (backend is optional).")
    rows.fieldnames = columns
    found = CpuSamples()
    try:
        for number, row in enumerate(rows, start=2):
            _add(found, number, _moment(row["ts"], zone), row["cpu_pct"], (row.get("backend") or "").strip())
    except csv.Error as problem:
        raise InputError(f"--cpu {name}: is not valid CSV ({problem}).") from None
    return found


def _from_json(text: str, name: str) -> CpuSamples:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"--cpu {name}: starts like JSON but is not valid JSON.") from None
    series = _matrix(answer)
    if series is None:
        raise InputError(f"--cpu {name}: is not a range query response. It needs data.result with `values` (resultType matrix).")
    found = CpuSamples()
    number = 0
    for labels, values in series:
        backend = next((str(labels[label]) for label in _BACKEND_LABELS if label in labels), "")
        for value in values:
            number += 1
            pair = value if isinstance(value, list) and len(value) == 2 else (None, None)
            _add(found, number, _moment(pair[0], None), pair[1], backend)
    if found.samples and max(sample.percent for sample in found.samples) <= 1:
        found.scaled = True
        found.samples = [CpuSample(s.ts_us, s.backend, s.percent * 100) for s in found.samples]
    return found


def _matrix(answer: Any) -> list[tuple[dict[str, Any], list[Any]]] | None:
    data = answer.get("data") if isinstance(answer, dict) else None
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(result, list) or not all(isinstance(one, dict) and isinstance(one.get("values"), list) for one in result):
        return None
    return [(one["metric"] if isinstance(one.get("metric"), dict) else {}, one["values"]) for one in result]


def _add(found: CpuSamples, row: int, ts_us: int | None, value: object, backend: str) -> None:
    percent = _number(value)
    if ts_us is None or percent is None or not 0 <= percent <= 100:
        found.refuse(row)
    else:
        found.samples.append(CpuSample(ts_us, backend, percent))


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _moment(value: object, zone: str | None) -> int | None:
    """Return microseconds since 1970: of a number by its size, or of an ISO time."""
    number = _number(value)
    if number is not None:
        seconds = epoch_seconds(number)
        return None if seconds is None else round(seconds * 1_000_000)
    try:
        moment = datetime.fromisoformat(str(value).strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(zone) if zone else UTC)
    since_1970 = moment.timestamp()
    return round(since_1970 * 1_000_000) if FIRST_S <= since_1970 <= LAST_S else None


def by_minute(samples: Iterable[CpuSample]) -> list[tuple[str, int, float]]:
    """Return the mean by backend and minute (its end, in minutes since 1970), in order."""
    sums: dict[tuple[str, int], tuple[float, int]] = {}
    for sample in samples:
        key = (sample.backend, -(-sample.ts_us // MINUTE_US))
        total, count = sums.get(key, (0.0, 0))
        sums[key] = (total + sample.percent, count + 1)
    return [(backend, minute, total / count) for (backend, minute), (total, count) in sorted(sums.items())]
