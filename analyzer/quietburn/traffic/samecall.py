"""Both ends of one call in one log: a mesh logs it at the caller's proxy and at the callee's."""

import duckdb

from quietburn.traffic.repeats import REPEATED_IDS

SAME_CALL = "same_call"  # temporary: row_id and file_id of callees' lines of calls that a caller's line tells

_CLOCKS_US = 1_000_000  # two proxies' clocks differ by less


def find_same_calls(connection: duckdb.DuckDBPyConnection, columns: frozenset[str], lines: str) -> dict[int, int]:
    """Note the callees' lines whose call stands in a caller's line too, by request id and time; return how many by file.

    `lines` is a subquery over `ledger_events`. Needs `find_repeated_ids` of the same lines.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {SAME_CALL} (row_id BIGINT, file_id INTEGER)")
    if not {"request_id", "proxy_side"} <= columns:
        return {}
    candidates = f"(SELECT * FROM {lines} WHERE row_id IN (SELECT row_id FROM {REPEATED_IDS}))"
    connection.execute(
        f"INSERT INTO {SAME_CALL} SELECT row_id, file_id FROM {candidates} callee WHERE proxy_side = 'inbound' AND EXISTS ("
        f"SELECT 1 FROM {candidates} caller WHERE {is_same_call(columns)})"
    )
    return dict(connection.execute(f"SELECT file_id, count(*) FROM {SAME_CALL} GROUP BY file_id").fetchall())


def is_same_call(columns: frozenset[str]) -> str:
    """Return the predicate over lines `caller` and `callee`: the first is the caller's end of a call with the callee's id.

    A line whose end can't be read may be the caller's: better one call too few than a callee's answer that nobody got.
    """
    side = "caller.proxy_side = 'outbound'"
    if "unreadable" in columns:
        side = f"({side} OR (caller.proxy_side IS NULL AND caller.unreadable))"
    return f"caller.request_id = callee.request_id AND {side} AND {_at_one_time(columns)}"


def _at_one_time(columns: frozenset[str]) -> str:
    """Return the predicate: the spans of caller and callee overlap, as far as both are known."""
    if "ts_us" not in columns:
        return "TRUE"
    start = {side: f"COALESCE({side}.started_us, {side}.ts_us)" if "started_us" in columns else f"{side}.ts_us"
             for side in ("caller", "callee")}  # fmt: skip
    return (
        f"COALESCE({start['callee']} <= caller.ts_us + {_CLOCKS_US} AND {start['caller']} <= callee.ts_us + {_CLOCKS_US}, TRUE)"
    )
