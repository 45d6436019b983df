"""List what a store holds, file by file, read-only."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import duckdb

from quietburn.common import temporary
from quietburn.common.timerange import iso
from quietburn.engine.connection import connect, naming_damage
from quietburn.ledger.counts import FileCounts
from quietburn.ledger.store import is_store, remembered_files
from quietburn.ledger.tables import EVENTS_TABLE


@dataclass(frozen=True)
class StoredFile:
    """One ledger of a store: where it lay, its span, and what became of its lines."""

    path: str
    dialect: str
    first_ts: str | None
    last_ts: str | None
    lines: int
    events: int
    quarantined: int
    not_a_request: int
    blank: int

    def as_dict(self) -> dict[str, object]:
        """Return the fields as plain data."""
        return dataclasses.asdict(self)


def stored_files(database: Path) -> list[StoredFile]:
    """Return the ledgers of a store in the order in which they were loaded.

    Raises InputError when the file is no store, or another process holds it.
    """
    if database.stat().st_size == 0:  # as mktemp makes it: no store yet, and none is made of it here
        return []
    connection, spill = connect(database=database, read_only=True)
    try:
        with naming_damage(database):
            return _stored_in(connection, database)
    finally:
        connection.close()
        temporary.remove(spill)


def _stored_in(connection: duckdb.DuckDBPyConnection, database: Path) -> list[StoredFile]:
    if not is_store(connection, str(database)):
        return []
    columns = {row[0] for row in connection.execute(f"DESCRIBE {EVENTS_TABLE}").fetchall()}
    times = "min(ts_us), max(ts_us)" if "ts_us" in columns else "NULL, NULL"
    spans = {
        int(file_id): (first, last)
        for file_id, first, last in connection.execute(
            f"SELECT file_id, {times} FROM {EVENTS_TABLE} GROUP BY file_id"
        ).fetchall()
    }
    return [
        _stored(file.path, FileCounts.restored(file.counts), *spans.get(file.file_id, (None, None)))
        for file in remembered_files(connection)
    ]


def _stored(path: str, counts: FileCounts, first_us: int | None, last_us: int | None) -> StoredFile:
    return StoredFile(
        path, counts.dialect, None if first_us is None else iso(first_us), None if last_us is None else iso(last_us),
        counts.lines, counts.events, counts.quarantined, counts.not_a_request, counts.blank,
    )
