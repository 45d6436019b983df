"""What a store remembers of each ledger, and how it recognises that ledger again.

A ledger is known by its content, not by its name: the hash of its first bytes, and of the last
bytes before the place up to which it was read. So a reload adds nothing, a grown file adds its
new lines, a rotated one is the same file under another name, and a rewritten one is another.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO

import duckdb
from pydantic import Field, TypeAdapter

from quietburn.errors import InputError
from quietburn.ledger.counts import FileCounts
from quietburn.ledger.tables import FILES_TABLE, MARK_TABLE, MOST_FILES, refuse_foreign, refuse_other_columns
from quietburn.records.inputs import LedgerFile, opened

STORE_VERSION = 2  # what a line becomes has changed; events that were stored before would mix two meanings
HEAD_BYTES = 64 << 10
TAIL_BYTES = 4 << 10
_SURE_HEAD = 4 << 10  # a shorter head may be shared by chance; then the place must be the same too
_CHUNK = 4 << 20
_MARK = r"^[0-9]{1,9}:[0-9a-f]{64}$"


@dataclass(frozen=True)
class Remembered:
    """How far a ledger was read, and what its content was there.

    `label` is the name it was loaded under, `path` where it lay. `resume_at` is the byte after the
    last line that ended, `end_at` the file's end; `open_line` the number of a line that had no end
    yet, None where the file ended with a line. `counts` are those of all lines, `ended_counts`
    those of the lines that ended.
    """

    file_id: Annotated[int, Field(ge=0, lt=MOST_FILES)]
    label: str
    path: str
    head_bytes: int
    head: str
    resume_at: int
    end_at: int
    tail: Annotated[str, Field(pattern=_MARK)]
    lines: int
    open_line: int | None
    counts: dict[str, Any]
    ended_counts: dict[str, Any]

    def starts_like(self, head: bytes, path: str) -> bool:
        """Whether a ledger begins as this one did."""
        if len(head) < self.head_bytes or (self.head_bytes < _SURE_HEAD and path != self.path):
            return False
        return digest(head[: self.head_bytes]) == self.head


def digest(data: bytes) -> str:
    """Return the hash by which contents are compared."""
    return hashlib.sha256(data).hexdigest()


def tail_mark(tail: bytes) -> str:
    """Return how many bytes were kept before the end of what was read, and their hash."""
    return f"{len(tail)}:{digest(tail)}"


def ends_like(tail: bytes, mark: str) -> bool:
    """Whether bytes end as a mark says."""
    size = int(mark.partition(":")[0])
    return len(tail) >= size and tail_mark(tail[len(tail) - size :]) == mark


def remembered_files(connection: duckdb.DuckDBPyConnection) -> Iterator[Remembered]:
    """Yield every file of the store, the first loaded first. Raises InputError for one that we can't have written."""
    names = [field.name for field in dataclasses.fields(Remembered)]
    for row in connection.execute(f"SELECT {', '.join(names)} FROM {FILES_TABLE} ORDER BY file_id").fetchall():
        try:
            file = _AS_WRITTEN.validate_python(dict(zip(names, (*row[:-2], *map(json.loads, row[-2:])), strict=True)))
            for counts in (file.counts, file.ended_counts):
                _COUNTS.validate_python(counts)
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InputError(
                f"--db: its entry for ledger {row[1]!r} is unreadable; the file is damaged. Load the ledgers into a new file."
            ) from None
        yield file


def remember(connection: duckdb.DuckDBPyConnection, file: Remembered) -> None:
    """Write what is known of a file, in place of what was."""
    connection.execute(f"DELETE FROM {FILES_TABLE} WHERE file_id = ?", [file.file_id])
    values = [*dataclasses.astuple(file)[:-2], json.dumps(file.counts), json.dumps(file.ended_counts)]
    connection.execute(f"INSERT INTO {FILES_TABLE} VALUES ({', '.join('?' * len(values))})", values)


_AS_WRITTEN = TypeAdapter(Remembered)
_COUNTS = TypeAdapter(FileCounts)


@dataclass(frozen=True)
class Resumed:
    """A stream that stands where a ledger was read to, with the bytes before that place."""

    stream: BinaryIO
    tail: bytes


@contextmanager
def resumed(ledger: LedgerFile, file: Remembered) -> Iterator[Resumed | None]:
    """Open a ledger where it was read to; None when its content there is another (it was rewritten)."""
    with opened(ledger) as stream:
        start = max(0, file.resume_at - TAIL_BYTES)
        if ledger.is_compressed:
            left = start
            while left > 0 and (chunk := stream.read(min(_CHUNK, left))):
                left -= len(chunk)
        else:
            stream.seek(start)
        tail = _exactly(stream, file.resume_at - start)
        yield Resumed(stream, tail) if ends_like(tail, file.tail) else None


def _exactly(stream: BinaryIO, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Keep everything that is written within, or nothing of it."""
    connection.execute("BEGIN TRANSACTION")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException as problem:
        with suppress(duckdb.Error):  # what broke the connection leaves nothing to roll back
            connection.execute("ROLLBACK")
        if isinstance(problem, duckdb.IOException | duckdb.FatalException | duckdb.TransactionException):
            raise InputError(
                "--db: can't be written, so nothing of this ledger was kept: the disk is full or the file is unavailable. "
                "Free some space and run again."
            ) from None
        raise


def is_store(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Return whether a DuckDB file is a store; an empty one is none yet: a first load that was killed leaves it.

    Raises InputError when it holds something else, was written by another version, or has been changed.
    """
    held = connection.execute("SELECT table_name FROM system.main.duckdb_tables() WHERE NOT internal").fetchall()
    views = connection.execute("SELECT view_name FROM system.main.duckdb_views() WHERE NOT internal").fetchall()
    if not held and not views:
        return False
    if (MARK_TABLE,) not in held:
        raise InputError(f"--db {name}: is a DuckDB file of another program. Name a new file.")
    refuse_foreign(connection, name)
    if _version(connection) != STORE_VERSION:
        raise InputError(
            f"--db {name}: was written by another version of quietburn, which read lines into other columns (routes, errors, "
            "tokens); load the ledgers into a new file."
        )
    refuse_other_columns(connection, name)
    return True


def _version(connection: duckdb.DuckDBPyConnection) -> int | None:
    with suppress(duckdb.Error):  # a mark of another shape is none of ours
        if len(found := connection.execute(f"SELECT version FROM {MARK_TABLE}").fetchall()) == 1:
            return found[0][0] if isinstance(found[0][0], int) else None
    return None


def mark_store(connection: duckdb.DuckDBPyConnection) -> None:
    """Mark an empty DuckDB file as a store of this version."""
    connection.execute(f"CREATE TABLE {MARK_TABLE} (version INTEGER)")
    connection.execute(f"INSERT INTO {MARK_TABLE} VALUES (?)", [STORE_VERSION])
