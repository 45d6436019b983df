"""A DuckDB connection that reaches nothing but the data it is given."""

import os
import re
import shutil
import tempfile
from pathlib import Path

import duckdb

from quietburn.errors import InputError

MEMORY_LIMIT = "1GB"  # of DuckDB's buffers; what exceeds it is spilled to a private folder


def connect(
    *, threads: int | None = None, memory_limit: str = MEMORY_LIMIT, database: Path | None = None
) -> tuple[duckdb.DuckDBPyConnection, Path]:
    """Return a connection, in memory or to a store's file, and its private folder for spilled data.

    No extension is installed or loaded by itself and no progress bar is drawn. The caller
    removes the folder. Raises InputError when the file can't be opened as a store.
    """
    spill = Path(tempfile.mkdtemp(prefix="quietburn-"))  # mkdtemp makes it 0700
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": threads or os.cpu_count() or 1,
        "memory_limit": memory_limit,
        "temp_directory": str(spill),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        connection = duckdb.connect(":memory:" if database is None else str(database), config=config)
    except duckdb.Error as problem:
        shutil.rmtree(spill, ignore_errors=True)
        raise InputError(_unopened(database, str(problem))) from None
    connection.execute("SET enable_progress_bar = false")
    # Rows know their file and line; nothing relies on the order in which they were inserted.
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET TimeZone = 'UTC'")
    return connection, spill


def _unopened(database: Path | None, words: str) -> str:
    """Return why a store can't be opened; DuckDB's own words are read, not shown."""
    holder = re.search(r"PID (\d+)", words)
    if "lock" in words.lower():
        who = f"process {holder[1]}" if holder else "another process"
        return f"--db {database}: is held by {who}. Wait until it is done, or name another file."
    if "not a valid DuckDB" in words or "not a DuckDB" in words or "Serialization" in words:
        return f"--db {database}: is not a store of quietburn (no DuckDB file). Name another file."
    return f"--db {database}: can't be opened; check that its folder exists and that you may write there."
