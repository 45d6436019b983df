"""What a second vantage point says of a judged call: the proxy before the callee in a mesh, or another log of the run."""

import duckdb

from quietburn.traffic.samecall import SAME_CALL, is_same_call
from quietburn.traffic.vantage import PAIRS

OTHER_ENDS = "other_ends"  # temporary: row_id of judged lines, and the status that the other end's line has


def find_other_ends(
    connection: duckdb.DuckDBPyConnection, columns: frozenset[str], lines: str, *, same_call: bool, same_traffic: bool
) -> None:
    """Note the status that the other end of each judged call tells.

    `lines` is a subquery over the lines of both ends; `same_call` that `find_same_calls`, `same_traffic`
    that `find_same_traffic` found any. Of several lines of a callee the last one speaks.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {OTHER_ENDS} (row_id BIGINT, other_status DOUBLE)")
    if "status" not in columns:
        return
    if same_call:
        last = "ORDER BY callee.ts_us DESC, callee.row_id" if "ts_us" in columns else "ORDER BY callee.row_id DESC"
        connection.execute(
            f"INSERT INTO {OTHER_ENDS} SELECT caller.row_id, callee.status FROM {lines} callee JOIN {lines} caller "
            f"ON {is_same_call(columns)} WHERE callee.row_id IN (SELECT row_id FROM {SAME_CALL}) "
            f"QUALIFY row_number() OVER (PARTITION BY caller.row_id {last}) = 1"
        )
    if same_traffic:
        connection.execute(
            f"INSERT INTO {OTHER_ENDS} SELECT p.outer_row, i.status FROM {PAIRS} p JOIN {lines} i ON i.row_id = p.inner_row "
            f"WHERE p.outer_row NOT IN (SELECT row_id FROM {OTHER_ENDS})"
        )
