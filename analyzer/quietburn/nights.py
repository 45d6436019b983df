"""What a store holds, night by night."""

from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from quietburn.engine.duckdb import DuckEngine
from quietburn.errors import InputError
from quietburn.ledger.mapping import shipped_mappings
from quietburn.ledger.repeats import EVENTS_TABLE
from quietburn.timerange import iso

_NOON = timedelta(hours=12)


class Night(BaseModel):
    """A night, noon to noon in a zone, named after the day on which it began."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    night: str
    events: int
    first_ts: str | None
    last_ts: str | None
    files: list[str]


def nights(store: Path, zone: tzinfo | None) -> list[Night]:
    """Return the nights of a store, the oldest first. Raises InputError for what is no store."""
    if not store.is_file():
        raise InputError(f"--db {store}: no such file. `quietburn analyze LEDGER --db {store}` makes it.")
    with DuckEngine(known=shipped_mappings(), database=store) as engine:
        if "ts_us" not in engine.loader.columns:
            return []
        labels = engine.loader.labels()
        hours = engine.connection.execute(
            f"SELECT ts_us // 3600000000 AS hour, file_id, count(*), min(ts_us), max(ts_us) FROM {EVENTS_TABLE} "
            "WHERE ts_us IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2"
        ).fetchall()
    found: dict[str, list[tuple[int, int, int, int]]] = {}
    for hour, file_id, count, first, last in hours:
        moment = datetime.fromtimestamp(hour * 3600, zone or UTC)
        found.setdefault((moment - _NOON).date().isoformat(), []).append((file_id, count, first, last))
    return [_night(day, parts, labels) for day, parts in sorted(found.items())]


def _night(day: str, parts: list[tuple[int, int, int, int]], labels: tuple[str, ...]) -> Night:
    return Night(
        night=day,
        events=sum(count for _, count, _, _ in parts),
        first_ts=iso(min(first for _, _, first, _ in parts)),
        last_ts=iso(max(last for _, _, _, last in parts)),
        files=sorted({labels[file_id] for file_id, _, _, _ in parts}),
    )
