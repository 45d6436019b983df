"""The tables of a run and of a store: their names and columns, once, and whether a store's are ours."""

from collections.abc import Iterator

import duckdb

from quietburn.common.columns import BY_NAME
from quietburn.errors import InputError
from quietburn.records.reasons import FieldFault, LineFault

EVENTS_TABLE = "ledger_events"
QUARANTINE_TABLE = "quarantined_lines"
INVALID_TABLE = "invalid_fields"
FILES_TABLE = "ledger_files"
MARK_TABLE = "quietburn_store"
MOST_FILES = 1_000_000  # a higher id was not given by us

_OF_A_RUN = {
    EVENTS_TABLE: {"file_id": "INTEGER", "line": "BIGINT", "dialect": "VARCHAR", "line_check": "BIGINT", "item": "BIGINT"},
    # Refused lines; where `item` is given, one item of a line that was used. `request_id` is that of an event without a time.
    QUARANTINE_TABLE: {
        "file_id": "INTEGER", "line": "BIGINT", "byte_offset": "BIGINT", "length": "BIGINT", "code": "VARCHAR", "item": "BIGINT",
        "request_id": "VARCHAR",
    },
    INVALID_TABLE: {"file_id": "INTEGER", "line": "BIGINT", "field": "VARCHAR", "code": "VARCHAR"},
    FILES_TABLE: {
        "file_id": "INTEGER", "label": "VARCHAR", "path": "VARCHAR", "head_bytes": "BIGINT", "head": "VARCHAR",
        "resume_at": "BIGINT", "end_at": "BIGINT", "tail": "VARCHAR", "lines": "BIGINT", "open_line": "BIGINT",
        "counts": "VARCHAR", "ended_counts": "VARCHAR",
    },
}
_OF_A_STORE = {**_OF_A_RUN, MARK_TABLE: {"version": "INTEGER"}}
# An event has the columns that its ledgers brought; older stores lack `item`, and the ids of refused events.
_MAY_COME_LATER = {
    QUARANTINE_TABLE: {"item": "BIGINT", "request_id": "VARCHAR"},
    EVENTS_TABLE: {"item": "BIGINT"} | {column.name: column.sql_type for column in BY_NAME.values()},
}
_CODES = {QUARANTINE_TABLE: LineFault, INVALID_TABLE: FieldFault}


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables of a run where they are missing."""
    for name, columns in _OF_A_RUN.items():
        listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({listed})")
    for name in (EVENTS_TABLE, QUARANTINE_TABLE):  # of older stores
        connection.execute(f"ALTER TABLE {name} ADD COLUMN IF NOT EXISTS item BIGINT")
    connection.execute(f"ALTER TABLE {QUARANTINE_TABLE} ADD COLUMN IF NOT EXISTS request_id VARCHAR")


def refuse_foreign(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Refuse a store that holds a view, a function or a table of somebody else's. Raises InputError naming it.

    To be asked before anything else is: a view would run when it is read. The catalogue is asked
    under its full name, so that no function of the file can stand in for it.
    """
    _refuse(name, _foreign(connection))


def refuse_other_columns(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Refuse a store whose tables have other columns or codes than ours have. Raises InputError naming the table."""
    columns: dict[str, dict[str, str]] = {table: {} for table in _OF_A_STORE}
    for table, column, kind, default in connection.execute(
        "SELECT table_name, column_name, data_type, column_default FROM system.main.duckdb_columns() WHERE NOT internal"
    ).fetchall():
        columns[table][column] = kind if default is None else f"{kind}, computed"
    for table, found in columns.items():
        _refuse(name, _other_columns(table, found))
    _refuse(name, _unknown_codes(connection))


def _refuse(name: str, problems: Iterator[str]) -> None:
    problem = next(problems, None)
    if problem:
        raise InputError(f"--db {name}: {problem}; quietburn did not create this. Load the ledgers into a new file.")


def _foreign(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    for listing, column, kind in (
        ("duckdb_views", "view_name", "view"), ("duckdb_functions", "function_name", "function"),
        ("duckdb_tables", "table_name", "table"),
    ):
        for (found,) in connection.execute(
            f"SELECT {column} FROM system.main.{listing}() WHERE NOT internal ORDER BY 1"
        ).fetchall():
            if kind != "table" or found not in _OF_A_STORE:
                yield f"holds the {kind} {found!r}"


def _other_columns(table: str, found: dict[str, str]) -> Iterator[str]:
    later = _MAY_COME_LATER.get(table, {})
    known = later | _OF_A_STORE[table]
    for column, kind in found.items():
        if known.get(column) != kind:
            yield f"its table {table} has a column {column!r} of type {kind}"
    for column in _OF_A_STORE[table]:
        if column not in found and column not in later:
            yield f"its table {table} has no column {column!r}" if found else f"it has no table {table}"


def _unknown_codes(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    for table, codes in _CODES.items():
        for (code,) in connection.execute(f"SELECT DISTINCT code FROM {table}").fetchall():
            if code not in set(codes):
                yield f"its table {table} has the unknown reason {code!r}"
