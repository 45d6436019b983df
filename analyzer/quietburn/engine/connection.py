"""A DuckDB connection that reaches nothing but the data it is given."""

import os
import tempfile
from pathlib import Path

import duckdb

MEMORY_LIMIT = "1GB"  # of DuckDB's buffers; what exceeds it is spilled to a private folder


def connect(*, threads: int | None = None, memory_limit: str = MEMORY_LIMIT) -> tuple[duckdb.DuckDBPyConnection, Path]:
    """Return an in-memory connection and its private folder for spilled data.

    No extension is installed or loaded by itself and no progress bar is drawn. The caller
    removes the folder.
    """
    spill = Path(tempfile.mkdtemp(prefix="quietburn-"))  # mkdtemp makes it 0700
    connection = duckdb.connect(
        config={
            "threads": threads or os.cpu_count() or 1,
            "memory_limit": memory_limit,
            "temp_directory": str(spill),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    return connection, spill
