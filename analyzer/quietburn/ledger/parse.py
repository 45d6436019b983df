"""Records into tokens: the JSON text of each value that a file's dialects read, made by one SELECT a block.

A line that the strict parser does not vouch for, or that holds what the engine would rewrite, is
read by `exact`, which gives the same tokens or the reason why the line is refused.
"""

import threading
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quietburn.common.columns import Kind
from quietburn.common.sql import literal
from quietburn.dialects.packed import records_of
from quietburn.dialects.sources import Source
from quietburn.dialects.unknown import UnknownKeys
from quietburn.records.exact import Members, Refused, keys_with_values, parse_line, resolve, token
from quietburn.records.reasons import Fault, LineFault
from quietburn.records.records import Integers, Records
from quietburn.records.wellformed import Look, look, pair_counts

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

NOTHING, STRING, NUMBER, FLAG, OTHER, NULL = range(6)  # what a token is, told by its first byte
_FIRST_BYTES = np.zeros(256, np.uint8)
for _kind, _bytes in ((STRING, b'"'), (NUMBER, b"-0123456789NI"), (FLAG, b"tf"), (OTHER, b"{["), (NULL, b"n")):
    _FIRST_BYTES[list(_bytes)] = _kind


class Extraction:
    """Which keys of one file are read, and the engine that reads them; shared by the threads that parse its blocks.

    Keys are only ever added: a place in `keys` stays that key's.
    """

    def __init__(self, source: Source, seen: Iterable[str]) -> None:
        self.source = source
        self.keys: list[str] = []
        self._roots: set[str] = set()
        self._lock = threading.Lock()
        self._engine = duckdb.connect(config={"threads": 1, "temp_directory": ""})
        self._cursors = threading.local()
        self.learn(seen)

    def learn(self, keys: Iterable[str]) -> None:
        """Read from now on what is wanted of these top-level keys."""
        with self._lock:
            new = [key for key in keys if key in self.source.by_root and key not in self._roots]
            self._roots.update(new)
            self.keys += [key for root in dict.fromkeys(new) for key in self.source.by_root[root]]

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return this thread's own connection."""
        if not hasattr(self._cursors, "cursor"):
            with self._lock:
                self._cursors.cursor = self._engine.cursor()
        found: duckdb.DuckDBPyConnection = self._cursors.cursor
        return found

    def refused(self, texts: list[bytes]) -> list[int]:
        """Return the places of texts that the engine doesn't take for JSON."""
        cursor = self.cursor()
        cursor.register("texts", pa.table({"text": pa.array(texts, pa.string())}))
        try:
            valid = cursor.execute("SELECT json_valid(text) FROM texts").fetchall()
        finally:
            cursor.unregister("texts")
        return [place for place, (is_valid,) in enumerate(valid) if not is_valid]

    def tokens(self, texts: list[bytes], keys: list[str]) -> pa.StringArray:
        """Return the tokens of the keys, text after text."""
        if not texts or not keys:
            return pa.array([], pa.string())
        cursor = self.cursor()
        cursor.register("texts", pa.table({"text": pa.array(texts, pa.string())}))
        pointers = ", ".join(literal(_pointer(key)) for key in keys)
        try:
            found = cursor.sql(f"SELECT CAST(json_extract(text, [{pointers}]) AS VARCHAR[]) FROM texts").to_arrow_table()
        finally:
            cursor.unregister("texts")
        return pa.concat_arrays([chunk.flatten() for chunk in found.column(0).chunks])


def _pointer(key: str) -> str:
    return key if key.startswith("/") else "/" + key.replace("~", "~0").replace("/", "~1")


def kinds_of(tokens: pa.StringArray, width: int) -> Bytes:
    """Return what each token is, a row for each record."""
    if not len(tokens):
        return np.zeros((0, width), np.uint8)
    starts = np.frombuffer(tokens.buffers()[1], np.int32)[tokens.offset : tokens.offset + len(tokens)]
    data = np.frombuffer(tokens.buffers()[2] or b"\0", np.uint8)
    kinds = _FIRST_BYTES[data[np.minimum(starts, len(data) - 1)]]
    kinds[~tokens.is_valid().to_numpy(zero_copy_only=False)] = NOTHING
    return kinds.reshape(-1, width)


@dataclass
class Tokens:
    """The tokens of a block's events: `values` holds one for each of `keys`, event after event, and `kinds` what each is.

    `rows` are the records that the events are of, `items` their places in these (0 where a record
    is one event). `checks` are sums of the events that hold more than what becomes columns, by record and item.
    """

    keys: list[str]
    rows: Integers
    values: pa.StringArray
    kinds: Bytes
    items: Integers
    checks: dict[tuple[int, int], int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    unknown: UnknownKeys = field(default_factory=UnknownKeys)


def parse(records: Records, extraction: Extraction) -> Tokens:
    """Return the tokens of a block's records, and what was refused."""
    return _Parsing(records, extraction).tokens()


@dataclass
class _Event:
    """An event that the exact parser read."""

    row: int
    item: int
    members: Members


class _Parsing:
    """One block on its way into tokens."""

    def __init__(self, records: Records, extraction: Extraction) -> None:
        self._records, self._extraction, self._source = records, extraction, extraction.source
        none = np.zeros(0, np.int64)
        self._found = Tokens([], none, pa.array([], pa.string()), np.zeros((0, 0), np.uint8), none)
        self._events: list[_Event] = []

    def tokens(self) -> Tokens:
        """Return the tokens of all records."""
        counts = np.array(pair_counts(self._records.texts), np.int64)
        if self._source.events:
            counts[:] = -1
        for row in np.flatnonzero(counts < 0).tolist():
            self._read_exactly(row)
        self._extraction.learn(key for event in self._events for key in event.members)
        self._read_vouched(np.flatnonzero(counts >= 0), counts)
        self._add_exact()
        return self._found

    def _read_vouched(self, rows: Integers, counts: Integers) -> None:
        try:
            self._read_at_once(rows, counts)
        except duckdb.InvalidInputException:  # the two parsers should agree; where they don't, the exact one decides
            refused = rows[self._extraction.refused([self._records.texts[row] for row in rows.tolist()])]
            for row in refused.tolist():
                self._read_exactly(row)
            self._read_at_once(np.setdiff1d(rows, refused), counts)

    def _read_at_once(self, rows: Integers, counts: Integers) -> None:
        """Read lines that are vouched for; again where a closer look shows keys that were not read yet."""
        texts = [self._records.texts[row] for row in rows.tolist()]
        looks: dict[int, Look] = {}
        keys: list[str] = []
        values, kinds = self._found.values, self._found.kinds
        while len(keys) < len(self._extraction.keys) or not keys:
            keys = list(self._extraction.keys)
            values = self._extraction.tokens(texts, keys)
            kinds = kinds_of(values, len(keys))
            plain = [place for place, key in enumerate(keys) if key in self._source.read_whole and not key.startswith("/")]
            held = (kinds if len(plain) == len(keys) else kinds[:, plain]) != NOTHING
            odd = rows[held.sum(axis=1) != counts[rows]]
            new = [row for row in odd.tolist() if row not in looks]
            looks |= {row: look(self._records.texts[row], self._source) for row in new}
            self._extraction.learn(key for row in new for key in looks[row].keys)
            if not self._extraction.keys:
                break
        suspects = {row for row, seen in looks.items() if not seen.is_plain}
        suspects.update(rows[_rewritten(values, kinds, keys, self._source)].tolist())
        for row, seen in looks.items():
            if row in suspects:
                self._read_exactly(row)
            else:
                self._note_unread(row, seen.unread)
        for row in suspects - looks.keys():
            self._read_exactly(row)
        found_rows = Tokens(keys, rows, values, kinds, np.zeros(len(rows), np.int64))
        self._found = _without(found_rows, suspects, self._found)

    def _read_exactly(self, row: int) -> None:
        """Let the exact parser decide on a record."""
        line = self._records.line(row)
        if not line.data:
            return
        parsed = parse_line(line, self._source.watched)
        if isinstance(parsed, Refused):
            self._refuse(row, parsed.code)
            return
        for place, members in records_of(parsed, self._source):
            if isinstance(members, LineFault):
                self._refuse(row, members, place)
                continue
            event = _Event(row, place or 0, members)
            self._events.append(event)
            unread = [key for key in keys_with_values(members) if key not in self._source.read_whole]
            self._note_unread(row, unread, event if place else None)

    def _refuse(self, row: int, code: LineFault, item: int | None = None) -> None:
        line = self._records.line(row)
        self._found.faults.append(Fault(line.number, line.offset, line.size, code, item))

    def _note_unread(self, row: int, keys: list[str], packed: _Event | None = None) -> None:
        """Note that a record, or an event packed in one, holds more than what becomes columns; count the unknown keys."""
        if keys and packed:  # what stands around it in its line is no part of it: a document may come again under another id
            self._found.checks[row, packed.item] = zlib.crc32((token(packed.members) or "").encode("utf-8", "surrogatepass"))
        elif keys:
            self._found.checks[row, 0] = zlib.crc32(self._records.texts[row].rstrip(b"\r"))
        for key in keys:
            if self._source.knows(key):
                continue
            self._found.unknown.add(key, 1, int(self._records.numbers[row]))

    def _add_exact(self) -> None:
        """Add the tokens of what the exact parser read."""
        if not self._events:
            return
        found = self._found
        exact = pa.array([token(resolve(event.members, key)) for event in self._events for key in found.keys], pa.string())
        found.values = pa.concat_arrays([found.values, exact])
        found.kinds = np.concatenate([found.kinds, kinds_of(exact, len(found.keys))])
        found.rows = np.concatenate([found.rows, np.array([event.row for event in self._events], np.int64)])
        found.items = np.concatenate([found.items, np.array([event.item for event in self._events], np.int64)])


def _rewritten(values: pa.StringArray, kinds: Bytes, keys: list[str], source: Source) -> Flags:
    """Return which rows hold a number for a text that is not written in digits alone: the engine may have respelt it."""
    found = np.zeros(len(kinds), np.bool_)
    for place, key in enumerate(keys):
        if Kind.TEXT not in source.roles.get(key, ()):
            continue
        numbers = np.flatnonzero(kinds[:, place] == NUMBER)
        if len(numbers):
            texts = values.take(pa.array(numbers * len(keys) + place))
            spelt = pc.or_(pc.match_substring(texts, "."), pc.match_substring(texts, "e"))
            found[numbers[spelt.to_numpy(zero_copy_only=False)]] = True
    return found


def _without(tokens: Tokens, rows: set[int], noted: Tokens) -> Tokens:
    """Return tokens without those of some records, with what was noted so far."""
    if rows:
        kept = np.flatnonzero(~np.isin(tokens.rows, list(rows)))
        width = len(tokens.keys)
        places = (kept[:, None] * width + np.arange(width)).ravel()
        values = tokens.values.take(pa.array(places))
        tokens = Tokens(tokens.keys, tokens.rows[kept], values, tokens.kinds[kept], tokens.items[kept])
    tokens.checks, tokens.faults, tokens.unknown = noted.checks, noted.faults, noted.unknown
    return tokens
