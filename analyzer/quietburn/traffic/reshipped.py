"""Which keys differ in lines that were shipped again.

A store keeps columns, not lines, so the ledgers are read again: only the lines concerned, and not
more than a few of them.
"""

import io
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, BinaryIO, cast

import duckdb

from quietburn.dialects.detect import parsed_sample
from quietburn.dialects.unknown import UnknownKeys
from quietburn.errors import InputError
from quietburn.ledger.tables import EVENTS_TABLE
from quietburn.records.framing.formats import wrapper_of
from quietburn.records.framing.framed import sample_payloads
from quietburn.records.inputs import LedgerFile, opened
from quietburn.traffic.repeats import REPEATS

_MOST_LINES = 100

Place = tuple[int, int]  # file id, line


def differing_keys(connection: duckdb.DuckDBPyConnection, ledgers: Mapping[int, LedgerFile]) -> dict[str, int]:
    """Return in how many of the first lines that were shipped again each key differs from the line that counts.

    `ledgers` are the files of the run by id. Lines that can't be read again (standard input, a file
    that is gone) name no key.
    """
    pairs: list[tuple[Place, Place]] = [
        ((file_id, line), (first_file, first_line))
        for file_id, line, first_file, first_line in connection.execute(
            f"SELECT e.file_id, e.line, f.file_id, f.line FROM {REPEATS} r JOIN {EVENTS_TABLE} e ON e.rowid = r.row_id "
            f"JOIN {EVENTS_TABLE} f ON f.rowid = r.first_row WHERE r.reshipped ORDER BY 1, 2 LIMIT {_MOST_LINES}"
        ).fetchall()
    ]
    records = _records(ledgers, {place for pair in pairs for place in pair})
    differing = UnknownKeys()
    for place, first in pairs:
        if place in records and first in records:
            for key in _differing(records[place], records[first]):
                differing.add(key, 1, place[1])
    return differing.named().counts


def _differing(record: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [key for key in {**record, **other} if record.get(key) != other.get(key)]


def _records(ledgers: Mapping[int, LedgerFile], places: Iterable[Place]) -> dict[Place, dict[str, Any]]:
    """Return the records at some places, as far as they can be read again."""
    found: dict[Place, dict[str, Any]] = {}
    wanted: dict[int, set[int]] = {}
    for file_id, line in places:
        wanted.setdefault(file_id, set()).add(line)
    for file_id, numbers in wanted.items():
        ledger = ledgers.get(file_id)
        if ledger is None or ledger.path is None:
            continue
        with suppress(InputError), opened(ledger) as stream:
            texts = _lines(stream, numbers)
            wrapper = wrapper_of(list(texts.values()))
            for number, text in texts.items():
                parsed = parsed_sample([text] if wrapper is None else sample_payloads([text], wrapper))
                if len(parsed) == 1:
                    found[file_id, number] = parsed[0]
    return found


def _lines(stream: BinaryIO, numbers: set[int]) -> dict[int, bytes]:
    """Return some physical lines of a stream by number, the first being 1."""
    # A decompressed stream is raw: it reads, but knows no lines.
    buffered = stream if isinstance(stream, io.BufferedIOBase) else io.BufferedReader(cast(io.RawIOBase, stream))
    reached = enumerate(islice(buffered, max(numbers)), start=1)
    return {number: line for number, line in reached if number in numbers}
