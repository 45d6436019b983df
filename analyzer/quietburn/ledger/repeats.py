"""Lines that stand twice, ids that stand in several lines, and ids that come again with other content."""

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

EVENTS_TABLE = "ledger_events"
_REPEATED_IDS = "repeated_ids"
_REPEATED_KEYS = "repeated_keys"


def find_repeated_ids(connection: duckdb.DuckDBPyConnection, columns: frozenset[str]) -> None:
    """Note which ids and which idempotency keys (of lines without an id) stand in several lines.

    Looking for groups among millions of ids costs time; everything that looks at several lines of
    an id starts from these small tables. They hold hashes: an id too many costs a little work and
    no result.
    """
    has_id = "request_id" in columns
    without_id = "request_id IS NULL AND " if has_id else ""
    for name, column, where in (
        (_REPEATED_IDS, "request_id", "request_id IS NOT NULL"),
        (_REPEATED_KEYS, "idempotency_key", f"{without_id}idempotency_key IS NOT NULL"),
    ):
        found = _repeated_hashes(connection, column, where) if column in columns else np.empty(0, np.uint64)
        connection.register("repeated_hashes", pa.table({"id": found}))
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT id FROM repeated_hashes")
        connection.unregister("repeated_hashes")


_SORTED_AT_ONCE = 8_000_000


def _repeated_hashes(connection: duckdb.DuckDBPyConnection, column: str, where: str) -> "np.ndarray[Any, np.dtype[np.uint64]]":
    """Return the hashes that come more than once; sorted numbers tell it several times faster than groups do."""
    ((rows,),) = connection.execute(f"SELECT count(*) FROM {EVENTS_TABLE} WHERE {where}").fetchall()
    parts = rows // _SORTED_AT_ONCE + 1
    found = []
    for part in range(parts):
        mine = f"{where} AND hash({column}) % {parts} = {part}" if parts > 1 else where
        hashes = connection.execute(f"SELECT hash({column}) AS id FROM {EVENTS_TABLE} WHERE {mine}").fetchnumpy()["id"]
        ordered = np.sort(np.asarray(hashes, np.uint64))
        found.append(np.unique(ordered[1:][ordered[1:] == ordered[:-1]]))
    return np.concatenate(found)


def repeated_ids(columns: frozenset[str]) -> str:
    """Return the predicate over lines: the line's id, or else its key, stands in several lines."""
    parts = []
    if "request_id" in columns:
        parts.append(f"hash(request_id) IN (SELECT id FROM {_REPEATED_IDS})")
    if "idempotency_key" in columns:
        without = "request_id IS NULL AND " if "request_id" in columns else ""
        parts.append(f"({without}hash(idempotency_key) IN (SELECT id FROM {_REPEATED_KEYS}))")
    return " OR ".join(parts) or "FALSE"


def drop_repeats(connection: duckdb.DuckDBPyConnection, columns: frozenset[str]) -> dict[int, int]:
    """Delete lines that are the same event again; return how many by file.

    A line counts as a repeat when all fields are equal, those that no dialect knows among them,
    and it has an id or a time with a fraction of a second; the first stays.
    """
    find_repeated_ids(connection, columns)
    candidates = [repeated_ids(columns)]
    if "ts_us" in columns:
        named = [name for name in ("request_id", "idempotency_key") if name in columns]
        without = "".join(f"{name} IS NULL AND " for name in named)
        times = f"SELECT ts_us FROM {EVENTS_TABLE} WHERE {without}ts_us IS NOT NULL GROUP BY ts_us HAVING count(*) > 1"
        candidates.append(f"({without}ts_us % 1000000 <> 0 AND ts_us IN ({times}))")
    # First by the few columns that tell most, then, where these agree, by all of them.
    narrow = ", ".join(name for name in ("request_id", "idempotency_key", "ts_us", "attempt", "status") if name in columns)
    if not narrow:
        return {}
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE alike AS SELECT row_id FROM (SELECT rowid AS row_id, "
        f"count(*) OVER (PARTITION BY {narrow}) AS n FROM {EVENTS_TABLE} WHERE {' OR '.join(candidates)}) WHERE n > 1"
    )
    if connection.execute("SELECT count(*) FROM alike").fetchall() == [(0,)]:
        return {}
    every = ", ".join(["dialect", "line_check", *sorted(columns)])
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE repeats AS SELECT row_id, file_id FROM (SELECT rowid AS row_id, file_id, "
        f"row_number() OVER (PARTITION BY {every} ORDER BY file_id, line) AS nth "
        f"FROM {EVENTS_TABLE} WHERE rowid IN (SELECT row_id FROM alike)) WHERE nth > 1"
    )
    by_file = {int(f): int(n) for f, n in connection.execute("SELECT file_id, count(*) FROM repeats GROUP BY 1").fetchall()}
    if by_file:
        connection.execute(f"DELETE FROM {EVENTS_TABLE} WHERE rowid IN (SELECT row_id FROM repeats)")
    connection.execute("DROP TABLE repeats")
    return by_file


def conflicting_ids(connection: duckdb.DuckDBPyConnection, columns: frozenset[str]) -> int:
    """Return how many lines came again with the same id, attempt and time, but other content.

    Needs `find_repeated_ids` of the same lines.
    """
    if not {"request_id", "ts_us"} <= columns:
        return 0
    keys = ", ".join(name for name in ("request_id", "attempt", "ts_us") if name in columns)
    ((count,),) = connection.execute(
        f"SELECT sum(n - 1) FROM (SELECT count(*) AS n FROM {EVENTS_TABLE} WHERE ts_us IS NOT NULL "
        f"AND hash(request_id) IN (SELECT id FROM {_REPEATED_IDS}) GROUP BY {keys} HAVING count(*) > 1)"
    ).fetchall()
    return int(count or 0)
