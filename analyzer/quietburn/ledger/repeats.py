"""Lines that stand twice, and ids that come again with other content."""

import duckdb

EVENTS_TABLE = "ledger_events"


def drop_repeats(connection: duckdb.DuckDBPyConnection, columns: frozenset[str]) -> dict[int, int]:
    """Delete lines that are the same event again; return how many by file.

    A line counts as a repeat when all fields are equal and it has an id or a time with a
    fraction of a second; the first stays.
    """
    candidates = []
    if "request_id" in columns:
        ids = f"SELECT request_id FROM {EVENTS_TABLE} WHERE request_id IS NOT NULL GROUP BY request_id HAVING count(*) > 1"
        candidates.append(f"request_id IN ({ids})")
    if "ts_us" in columns:
        without = "request_id IS NULL AND " if "request_id" in columns else ""
        keyed = {"request_id", "idempotency_key"} <= columns
        has_id = " OR (request_id IS NULL AND idempotency_key IS NOT NULL)" if keyed else ""
        times = f"SELECT ts_us FROM {EVENTS_TABLE} WHERE {without}ts_us IS NOT NULL GROUP BY ts_us HAVING count(*) > 1"
        candidates.append(f"(({without}ts_us % 1000000 <> 0 AND ts_us IN ({times})){has_id})")
    if not candidates:
        return {}
    every = ", ".join(["dialect", *sorted(columns)])
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE repeats AS SELECT row_id, file_id FROM (SELECT rowid AS row_id, file_id, "
        f"row_number() OVER (PARTITION BY {every} ORDER BY file_id, line) AS nth "
        f"FROM {EVENTS_TABLE} WHERE {' OR '.join(candidates)}) WHERE nth > 1"
    )
    by_file = {int(f): int(n) for f, n in connection.execute("SELECT file_id, count(*) FROM repeats GROUP BY 1").fetchall()}
    if by_file:
        connection.execute(f"DELETE FROM {EVENTS_TABLE} WHERE rowid IN (SELECT row_id FROM repeats)")
    connection.execute("DROP TABLE repeats")
    return by_file


def conflicting_ids(connection: duckdb.DuckDBPyConnection, columns: frozenset[str]) -> int:
    """Return how many lines came again with the same id, attempt and time, but other content."""
    if not {"request_id", "ts_us"} <= columns:
        return 0
    keys = ", ".join(name for name in ("request_id", "attempt", "ts_us") if name in columns)
    ((count,),) = connection.execute(
        f"SELECT sum(n - 1) FROM (SELECT count(*) AS n FROM {EVENTS_TABLE} WHERE request_id IS NOT NULL AND ts_us IS NOT NULL "
        f"GROUP BY {keys} HAVING count(*) > 1)"
    ).fetchall()
    return int(count or 0)
