"""A DuckDB connection that reaches nothing but the data it is given."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from quietburn.common import temporary
from quietburn.errors import InputError
from quietburn.records.inputs import label_of

MEMORY_LIMIT = "1GB"  # of DuckDB's buffers; what exceeds it is spilled to a private folder
_WORDS_OF_DAMAGE = ("corrupt", "could not read enough bytes")  # DuckDB has no class of its own for these
_SCHEME = re.compile(r"[A-Za-z0-9_]*:")


def connect(
    *, threads: int | None = None, memory_limit: str = MEMORY_LIMIT, database: Path | None = None, read_only: bool = False
) -> tuple[duckdb.DuckDBPyConnection, Path]:
    """Return a connection, in memory or to a store's file, and its private folder for spilled data.

    It reaches no other file and no network, installs and loads no extension by itself, and draws
    no progress bar. The caller removes the folder. `read_only` opens a store as it lies, and needs
    no right to write there. Raises InputError when the file can't be opened as a store.
    """
    if database is not None:
        refuse_other_systems(database)
    spill = temporary.make_folder()
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": threads or os.cpu_count() or 1,
        "memory_limit": memory_limit,
        "temp_directory": str(spill),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        if database is not None and not read_only:
            _make_if_missing(database)
        name = ":memory:" if database is None else str(database)
        connection = duckdb.connect(name, read_only=read_only, config=config)
    except (duckdb.Error, OSError, RuntimeError) as problem:
        temporary.remove(spill)
        raise InputError(_unopened(database, str(problem), read_only=read_only)) from None
    # Whatever a store of somebody else's holds, it can't make us read another file; there is no way back to `true`.
    connection.execute("SET enable_external_access = false")
    connection.execute("SET enable_progress_bar = false")
    # Rows know their file and line; nothing relies on the order in which they were inserted.
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET TimeZone = 'UTC'")
    return connection, spill


@contextmanager
def naming_damage(database: Path | None) -> Iterator[None]:
    """Turn what DuckDB says of a damaged store into one line that names it. Raises InputError."""
    try:
        yield
    except duckdb.Error as problem:
        if database is None or not _is_damage(problem):
            raise
        raise InputError(
            f"--db {database}: is damaged. Restore it from a backup, or load the ledgers into a new file."
        ) from None


def _is_damage(problem: duckdb.Error) -> bool:
    internal = isinstance(problem, duckdb.FatalException | duckdb.InternalException | duckdb.SerializationException)
    return internal or any(words in str(problem).lower() for words in _WORDS_OF_DAMAGE)


def refuse_other_systems(database: Path) -> None:
    """Refuse names that DuckDB takes for no file (`:memory:`, `md:name`) or can't take. Raises InputError."""
    name = str(database)
    shown = label_of(name)
    if shown != name:
        raise InputError(f"--db {shown}: its name is not UTF-8, which DuckDB requires. Name another file.")
    scheme = _SCHEME.match(name)
    if scheme:
        raise InputError(f"--db {name}: DuckDB reads {scheme[0]!r} as a remote system. Name a local file.")


def _make_if_missing(database: Path) -> None:
    """Make an empty database beside and give it its name when it is whole.

    DuckDB writes a new file in steps, and can't open what a kill leaves in between. An empty file
    (as mktemp makes one) holds nothing and is taken for a missing one.
    """
    empty = database.is_file() and database.stat().st_size == 0
    if database.exists() and not empty:
        return
    with temporary.folder(database.parent, f".{database.name}.") as beside:
        made = beside / database.name
        duckdb.connect(str(made)).close()
        if empty:
            made.replace(database)
        else:
            with suppress(FileExistsError):  # another process was faster; its file is as good
                os.link(made, database)


def _unopened(database: Path | None, words: str, *, read_only: bool) -> str:
    """Return why a store can't be opened; DuckDB's own words are read, not shown."""
    holder = re.search(r"PID (\d+)", words)
    if "lock" in words.lower():
        who = f"process {holder[1]}" if holder else "another process"
        return f"--db {database}: is in use by {who}. Wait until it has finished, or name another file."
    if "not a valid DuckDB" in words or "not a DuckDB" in words or "Serialization" in words:
        return f"--db {database}: is not a quietburn store (not a DuckDB file). Name another file."
    allowed = "read it" if read_only else "write there"
    return f"--db {database}: can't be opened; check that its folder exists and that you may {allowed}."
