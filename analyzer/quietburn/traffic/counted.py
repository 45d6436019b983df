"""The view `counted_lines`: which stored lines count, with their durations in known units.

It depends on which files are looked at, so nothing that is stored changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb

from quietburn.ledger.units import GivenUnits, Settled, select_settled, settle_units, settled_columns
from quietburn.traffic.other_ends import find_other_ends
from quietburn.traffic.repeats import (
    COUNTED_LINES,
    REPEATS,
    Repeated,
    find_lost_attempts,
    find_repeated_ids,
    find_repeats,
    lines_of,
)
from quietburn.traffic.retries import find_retries, with_ids_of_requests
from quietburn.traffic.samecall import SAME_CALL, find_same_calls
from quietburn.traffic.vantage import INNER, Log, SameTraffic, filled, find_same_traffic


@dataclass(frozen=True)
class Counted:
    """What the view `counted_lines` holds: its canonical columns, what was left out, and units that were settled."""

    columns: frozenset[str]
    repeats: dict[int, Repeated]
    same_call: dict[int, int]
    settled: list[Settled]
    same_traffic: list[SameTraffic]
    joined_retries: int  # without an id of their request


def count_lines(
    connection: duckdb.DuckDBPyConnection, columns: frozenset[str], file_ids: Iterable[int] | None, given: GivenUnits,
    logs: Mapping[tuple[int, str], Log], sdk_counting: frozenset[str], *, join: bool,
) -> Counted:
    """Make the view `counted_lines` of some files (None: of all), each event once.

    `columns` are those that are stored; `given` are the units that the configuration names; `logs`
    the log of each file and dialect; `sdk_counting` are dialects whose attempts the callers' SDKs count;
    `join` that what a judged log lacks is taken from the other log of the same traffic.
    """
    file_ids = None if file_ids is None else list(file_ids)
    lines = lines_of(file_ids)
    find_repeated_ids(connection, columns, lines)
    repeats = find_repeats(connection, columns, lines)
    find_lost_attempts(connection, columns, lines, file_ids)
    once = _without(lines, REPEATS) if repeats else lines
    same_call = find_same_calls(connection, columns, once)
    once = _without(once, SAME_CALL) if same_call else once
    settled = settle_units(connection, columns, once, given)
    once, columns = f"({select_settled(columns, settled, once)})", settled_columns(columns)
    same_traffic = find_same_traffic(connection, columns, once, logs)
    is_same = any(found.same for found in same_traffic)
    find_other_ends(connection, columns, lines, same_call=bool(same_call), same_traffic=is_same)
    if is_same:
        judged = _without(once, INNER)
        once = filled(columns, judged, once) if join else judged
    retries = find_retries(connection, columns, once, sdk_counting)
    once = with_ids_of_requests(once) if retries else once
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {COUNTED_LINES} AS SELECT * FROM {once}")
    return Counted(columns, repeats, same_call, settled, same_traffic, retries)


def _without(lines: str, table: str) -> str:
    """Return lines but for those of a table; not where it is empty: an anti-join against nothing would cost a scan."""
    return f"(SELECT * FROM {lines} WHERE row_id NOT IN (SELECT row_id FROM {table}))"
