"""Lines that stand twice, ids that stand in several lines, and ids that come again with other content.

What is a repeat depends on which files are looked at, so nothing is deleted: the lines that count
are noted, and a store keeps every line of every file.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from quietburn.common.sql import any_of, count_where
from quietburn.ledger.tables import EVENTS_TABLE, QUARANTINE_TABLE

COUNTED_LINES = "counted_lines"  # a view: what is left of the lines of a run, durations in known units
REPEATS = "repeats"  # temporary: lines that stand twice, whether each was shipped again, and the line that counts
LOST_IDS = "ids_of_lost_attempts"  # temporary: ids of requests of which a line was refused, since its time can't be read
REPEATED_IDS = "lines_of_repeated_ids"  # temporary: row_id of lines whose id, or else whose key, stands in several lines


class Repeated(NamedTuple):
    """How many lines of a file are the same event again, and how many of these were shipped again with other keys."""

    lines: int
    reshipped: int


def lines_of(file_ids: Iterable[int] | None) -> str:
    """Return a subquery over the lines of some files (None: of all), with `row_id`."""
    listed = "" if file_ids is None else f" WHERE file_id IN ({', '.join(str(number) for number in file_ids) or 'NULL'})"
    return f"(SELECT rowid AS row_id, * FROM {EVENTS_TABLE}{listed})"


def find_repeated_ids(connection: duckdb.DuckDBPyConnection, columns: frozenset[str], lines: str) -> None:
    """Note which of some lines have an id, or without one an idempotency key, that stands in several of them.

    Looking for groups among millions of ids costs time; everything that looks at several lines of
    an id starts from this small table. It goes by hashes: a line too many costs a little work and
    no result.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {REPEATED_IDS} (row_id BIGINT)")
    without_id = "request_id IS NULL AND " if "request_id" in columns else ""
    for column, where in (
        ("request_id", "request_id IS NOT NULL"), ("idempotency_key", f"{without_id}idempotency_key IS NOT NULL"),
    ):
        if column not in columns:
            continue
        connection.register("repeated_hashes", pa.table({"id": _repeated_hashes(connection, column, lines, where)}))
        connection.execute(
            f"INSERT INTO {REPEATED_IDS} SELECT row_id FROM {lines} "
            f"WHERE {where} AND hash({column}) IN (SELECT id FROM repeated_hashes)"
        )
        connection.unregister("repeated_hashes")


def find_lost_attempts(
    connection: duckdb.DuckDBPyConnection, columns: frozenset[str], lines: str, file_ids: Iterable[int] | None
) -> None:
    """Note the requests of which a line was refused for its time: what is left of them may not be all.

    Adds their lines to those of repeated ids, so that requests are put together of them. Needs
    `find_repeated_ids`.
    """
    listed = "TRUE" if file_ids is None else f"file_id IN ({', '.join(str(number) for number in file_ids) or 'NULL'})"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {LOST_IDS} AS SELECT DISTINCT request_id AS id FROM {QUARANTINE_TABLE} "
        f"WHERE request_id IS NOT NULL AND {listed}"
    )
    if "request_id" in columns and connection.execute(f"SELECT 1 FROM {LOST_IDS} LIMIT 1").fetchall():
        connection.execute(
            f"INSERT INTO {REPEATED_IDS} SELECT row_id FROM {lines} WHERE request_id IN (SELECT id FROM {LOST_IDS}) "
            f"AND row_id NOT IN (SELECT row_id FROM {REPEATED_IDS})"
        )


_SORTED_AT_ONCE = 8_000_000


def _repeated_hashes(
    connection: duckdb.DuckDBPyConnection, column: str, lines: str, where: str
) -> "np.ndarray[Any, np.dtype[np.uint64]]":
    """Return the hashes that come more than once; sorted numbers tell it several times faster than groups do."""
    ((rows,),) = connection.execute(f"SELECT count(*) FROM {lines} WHERE {where}").fetchall()
    parts = rows // _SORTED_AT_ONCE + 1
    found = []
    for part in range(parts):
        mine = f"{where} AND hash({column}) % {parts} = {part}" if parts > 1 else where
        hashes = connection.execute(f"SELECT hash({column}) AS id FROM {lines} WHERE {mine}").fetchnumpy()["id"]
        ordered = np.sort(np.asarray(hashes, np.uint64))
        found.append(np.unique(ordered[1:][ordered[1:] == ordered[:-1]]))
    return np.concatenate(found)


def find_repeats(connection: duckdb.DuckDBPyConnection, columns: frozenset[str], lines: str) -> dict[int, Repeated]:
    """Note which lines are the same event again; return how many by file.

    A line is a duplicate when all its keys are equal to another's, those that no dialect reads
    among them, and it has an id or a time with a fraction of a second. It was shipped again when it
    has both, all columns are equal, and only keys differ that aren't read (an ingest id). The first
    line counts. Needs `find_repeated_ids` of the same lines.
    """
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {REPEATS} (row_id BIGINT, file_id INTEGER, reshipped BOOLEAN, first_row BIGINT)"
    )
    # First by the few columns that tell most, then, where these agree, by all of them.
    narrow = ", ".join(name for name in ("request_id", "idempotency_key", "ts_us", "attempt", "status") if name in columns)
    if not narrow:
        return {}
    connection.execute(f"CREATE OR REPLACE TEMP TABLE maybe_alike AS SELECT row_id FROM {REPEATED_IDS}")
    if "ts_us" in columns:
        named = [name for name in ("request_id", "idempotency_key") if name in columns]
        without = "".join(f"{name} IS NULL AND " for name in named)
        times = f"SELECT ts_us FROM {lines} WHERE {without}ts_us IS NOT NULL GROUP BY ts_us HAVING count(*) > 1"
        connection.execute(
            f"INSERT INTO maybe_alike SELECT row_id FROM {lines} WHERE {without}ts_us % 1000000 <> 0 AND ts_us IN ({times})"
        )
    if "unreadable" in columns:  # an id that can't be read may be another's
        unread = f"SELECT row_id FROM {lines} WHERE unreadable"
        connection.execute(f"DELETE FROM maybe_alike WHERE row_id IN ({unread})")
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE alike AS SELECT row_id FROM (SELECT row_id, count(*) OVER (PARTITION BY {narrow}) AS n "
        f"FROM {lines} WHERE row_id IN (SELECT row_id FROM maybe_alike)) WHERE n > 1"
    )
    if connection.execute("SELECT count(*) FROM alike").fetchall() == [(0,)]:
        return {}
    every = ", ".join(["dialect", *sorted(columns)])
    read = ", ".join(["dialect", *sorted(columns - {"writer"})])  # which collector shipped a line makes it no other event
    order = "ORDER BY file_id, line, item"
    connection.execute(
        f"INSERT INTO {REPEATS} SELECT row_id, file_id, nth = 1, first_row FROM (SELECT row_id, file_id, "
        f"row_number() OVER (PARTITION BY {every}, line_check {order}) AS nth, "
        f"row_number() OVER (PARTITION BY {read} {order}) AS nth_read, "
        f"first_value(row_id) OVER (PARTITION BY {read} {order}) AS first_row, {_is_one_event(columns)} AS one_event "
        f"FROM {lines} WHERE row_id IN (SELECT row_id FROM alike)) WHERE nth > 1 OR (nth_read > 1 AND one_event)"
    )
    counted = connection.execute(f"SELECT file_id, count(*), {count_where('reshipped')} FROM {REPEATS} GROUP BY 1").fetchall()
    return {int(file_id): Repeated(int(lines), int(again)) for file_id, lines, again in counted}


def _is_one_event(columns: frozenset[str]) -> str:
    """Return the predicate: the line's columns name one event, by an id and a time with a fraction of a second."""
    if "request_id" not in columns:
        return "FALSE"
    fraction = any_of(f"{name} % 1000000 <> 0" for name in ("ts_us", "started_us") if name in columns)
    return f"request_id IS NOT NULL AND ({fraction})"


def conflicting_ids(connection: duckdb.DuckDBPyConnection, columns: frozenset[str]) -> int:
    """Return how many lines came again with the same id, attempt and time, but other content.

    Needs the view `counted_lines`.
    """
    if not {"request_id", "ts_us"} <= columns:
        return 0
    keys = ", ".join(name for name in ("request_id", "attempt", "ts_us") if name in columns)
    ((count,),) = connection.execute(
        f"SELECT sum(n - 1) FROM (SELECT count(*) AS n FROM {COUNTED_LINES} WHERE ts_us IS NOT NULL "
        f"AND request_id IS NOT NULL AND row_id IN (SELECT row_id FROM {REPEATED_IDS}) GROUP BY {keys} HAVING count(*) > 1)"
    ).fetchall()
    return int(count or 0)
