"""Which of the stored lines count, and their durations in known units: the view `counted_lines`.

It depends on which files are looked at, so nothing that is stored changes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import duckdb

from quietburn.ledger.repeats import COUNTED_LINES, REPEATS, Repeated, find_repeated_ids, find_repeats, lines_of
from quietburn.ledger.units import GivenUnits, Settled, select_settled, settle_units, settled_columns


@dataclass(frozen=True)
class Counted:
    """What the view `counted_lines` holds: its canonical columns, repeats by file, and units that were settled."""

    columns: frozenset[str]
    repeats: dict[int, Repeated]
    settled: list[Settled]


def count_lines(
    connection: duckdb.DuckDBPyConnection, columns: frozenset[str], file_ids: Iterable[int] | None, given: GivenUnits
) -> Counted:
    """Make the view `counted_lines` of some files (None: of all) without repeats.

    `columns` are those that are stored; `given` are the units that the configuration names.
    """
    lines = lines_of(file_ids)
    find_repeated_ids(connection, columns, lines)
    repeats = find_repeats(connection, columns, lines)
    # An anti-join of every line against nothing would cost a scan.
    once = f"(SELECT * FROM {lines} WHERE row_id NOT IN (SELECT row_id FROM {REPEATS}))" if repeats else lines
    settled = settle_units(connection, columns, once, given)
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {COUNTED_LINES} AS {select_settled(columns, settled, once)}")
    return Counted(settled_columns(columns), repeats, settled)
