"""Join retries that carry no request id to the failed attempt before them.

SDKs count the retries of a call in a header and send no id with it, so each attempt has an id of the
gateway's own. Which attempt it repeats is inferred: the latest failed one of the same kind of caller
that no other retry follows. Where callers of one kind fail side by side two retries may be swapped, which
changes no count.
"""

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from quietburn.common.sql import literal
from quietburn.traffic.repeats import REPEATED_IDS

_IDS = "ids_of_retries"  # temporary: row_id and the id of the request that the line belongs to
_LONGEST_WAIT_S = 15.0  # SDKs wait 8 s at most where nobody tells them how long
_CALLER = ("user_agent", "client", "tenant", "path", "route", "model", "deadline_ms")
_READ = ("request_id", "ts_us", "started_us", "latency_ms", "attempt", "status", "client_closed", "retry_after_s")
Line = dict[str, Any]


def find_retries(connection: duckdb.DuckDBPyConnection, columns: frozenset[str], lines: str, dialects: frozenset[str]) -> int:
    """Find, in lines of dialects that log the SDKs' count, retries without an id of their request; return how many were joined.

    Needs `find_repeated_ids` of the lines, to which it adds.
    """
    if not dialects or not {"attempt", "ts_us", "request_id"} <= columns:
        return 0
    ids = _ids(_suspects(connection, columns, lines, dialects))
    if not ids:
        return 0
    table = pa.table({"row_id": pa.array(ids.keys(), pa.int64()), "request_id": pa.array(ids.values(), pa.string())})
    connection.register("found_ids", table)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {_IDS} AS SELECT * FROM found_ids")
    connection.execute(f"INSERT INTO {REPEATED_IDS} SELECT row_id FROM found_ids")
    connection.unregister("found_ids")
    return len(ids) - len(set(ids.values()))


def with_ids_of_requests(lines: str) -> str:
    """Return lines with the ids of their requests, once `find_retries` has joined any."""
    return (
        f"(SELECT l.* REPLACE (COALESCE(i.request_id, l.request_id) AS request_id) FROM {lines} l "
        f"LEFT JOIN {_IDS} i ON l.row_id = i.row_id)"
    )


def _suspects(
    connection: duckdb.DuckDBPyConnection, columns: frozenset[str], lines: str, dialects: frozenset[str]
) -> list[Line]:
    """Return retries and failed attempts whose id stands in one line only, by their start."""
    known = ["row_id", "file_id", *(name for name in (*_CALLER, *_READ) if name in columns)]
    listed = ", ".join(literal(name) for name in sorted(dialects))
    failed = "status IN (408, 409, 429) OR status >= 500" if "status" in columns else "FALSE"
    left = " OR client_closed" if "client_closed" in columns else ""
    alone = f"dialect IN ({listed}) AND row_id NOT IN (SELECT row_id FROM {REPEATED_IDS})"
    ((retries,),) = connection.execute(f"SELECT count(*) FROM {lines} WHERE attempt >= 2 AND {alone}").fetchall()
    if not retries:
        return []
    rows = connection.execute(
        f"SELECT {', '.join(known)} FROM {lines} WHERE {alone} AND attempt >= 1 AND ts_us IS NOT NULL "
        f"AND request_id IS NOT NULL AND (attempt >= 2 OR {failed}{left})"
    ).fetchall()
    return sorted((dict(zip(known, row, strict=True)) for row in rows), key=_start)


def _start(line: Line) -> float:
    started, latency = line.get("started_us"), line.get("latency_ms")
    return float(started) if started is not None else line["ts_us"] - 1000 * (latency or 0.0)


def _ids(lines: list[Line]) -> dict[int, str]:
    """Return by line the id of the request that it belongs to, of lines that were joined."""
    waiting: dict[tuple[Any, ...], list[Line]] = {}
    ids: dict[int, str] = {}
    for line in lines:
        caller = (line["file_id"], *(line.get(name) for name in _CALLER))
        before = _before(line, waiting.get((*caller, line["attempt"] - 1), []))
        if before is not None:
            ids.setdefault(before["row_id"], before["request_id"])
            ids[line["row_id"]] = ids[before["row_id"]]
        if _may_be_retried(line):
            waiting.setdefault((*caller, line["attempt"]), []).append(line)
    return ids


def _before(line: Line, failed: list[Line]) -> Line | None:
    """Take the latest failed attempt that the line can be the retry of."""
    start = _start(line)
    for place in range(len(failed) - 1, -1, -1):
        waited_s = (start - failed[place]["ts_us"]) / 1e6
        if 0 <= waited_s <= _LONGEST_WAIT_S + (failed[place].get("retry_after_s") or 0.0):
            return failed.pop(place)
    return None


def _may_be_retried(line: Mapping[str, Any]) -> bool:
    status = line.get("status")
    return bool(line.get("client_closed")) or status in (408, 409, 429) or (status is not None and status >= 500)
