"""A DuckDB connection that reaches nothing but the data it is given."""

import os
import re
import shutil
import tempfile
from contextlib import suppress
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
        if database is not None:
            _make_if_missing(database)
        connection = duckdb.connect(":memory:" if database is None else str(database), config=config)
    except (duckdb.Error, OSError) as problem:
        shutil.rmtree(spill, ignore_errors=True)
        raise InputError(_unopened(database, str(problem))) from None
    connection.execute("SET enable_progress_bar = false")
    # Rows know their file and line; nothing relies on the order in which they were inserted.
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET TimeZone = 'UTC'")
    return connection, spill


def _make_if_missing(database: Path) -> None:
    """Make an empty database beside and give it its name when it is whole.

    DuckDB writes a new file in steps, and can't open what a kill leaves in between. An empty file
    (as mktemp makes one) holds nothing and is taken for a missing one.
    """
    empty = database.is_file() and database.stat().st_size == 0
    if database.exists() and not empty:
        return
    with tempfile.TemporaryDirectory(dir=database.parent, prefix=f".{database.name}.") as beside:
        made = Path(beside) / database.name
        duckdb.connect(str(made)).close()
        if empty:
            made.replace(database)
        else:
            with suppress(FileExistsError):  # another process was faster; its file is as good
                os.link(made, database)


def _unopened(database: Path | None, words: str) -> str:
    """Return why a store can't be opened; DuckDB's own words are read, not shown."""
    holder = re.search(r"PID (\d+)", words)
    if "lock" in words.lower():
        who = f"process {holder[1]}" if holder else "another process"
        return f"--db {database}: is held by {who}. Wait until it is done, or name another file."
    if "not a valid DuckDB" in words or "not a DuckDB" in words or "Serialization" in words:
        return f"--db {database}: is not a store of quietburn (no DuckDB file). Name another file."
    return f"--db {database}: can't be opened; check that its folder exists and that you may write there."
