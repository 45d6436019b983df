"""Which of the stored lines count, and their durations in known units: the view `counted_lines`.

It depends on which files are looked at, so nothing that is stored changes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import duckdb

from quietburn.ledger.repeats import COUNTED_LINES, REPEATS, Repeated, find_repeated_ids, find_repeats, lines_of
from quietburn.ledger.samecall import SAME_CALL, find_same_calls
from quietburn.ledger.units import GivenUnits, Settled, select_settled, settle_units, settled_columns


@dataclass(frozen=True)
class Counted:
    """What the view `counted_lines` holds: its canonical columns, what was left out by file, and units that were settled."""

    columns: frozenset[str]
    repeats: dict[int, Repeated]
    same_call: dict[int, int]
    settled: list[Settled]


def count_lines(
    connection: duckdb.DuckDBPyConnection, columns: frozenset[str], file_ids: Iterable[int] | None, given: GivenUnits
) -> Counted:
    """Make the view `counted_lines` of some files (None: of all), each event once.

    `columns` are those that are stored; `given` are the units that the configuration names.
    """
    lines = lines_of(file_ids)
    find_repeated_ids(connection, columns, lines)
    repeats = find_repeats(connection, columns, lines)
    once = _without(lines, REPEATS) if repeats else lines
    same_call = find_same_calls(connection, columns, once)
    once = _without(once, SAME_CALL) if same_call else once
    settled = settle_units(connection, columns, once, given)
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {COUNTED_LINES} AS {select_settled(columns, settled, once)}")
    return Counted(settled_columns(columns), repeats, same_call, settled)


def _without(lines: str, table: str) -> str:
    """Return lines but for those of a table; not where it is empty: an anti-join against nothing would cost a scan."""
    return f"(SELECT * FROM {lines} WHERE row_id NOT IN (SELECT row_id FROM {table}))"
