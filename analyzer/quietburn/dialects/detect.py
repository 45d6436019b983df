"""Detect the dialects of a file from lines sampled across it."""

import io
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, cast

from quietburn.dialects.mapping import Mapping
from quietburn.dialects.packed import read_embedded
from quietburn.dialects.recognise import missing
from quietburn.dialects.sources import Source, source_of
from quietburn.errors import InputError
from quietburn.records.exact import Members, Refused, parse_line, resolve
from quietburn.records.framing.documents import sample_records
from quietburn.records.framing.formats import Wrapper, wrapper_of
from quietburn.records.framing.framed import sample_payloads
from quietburn.records.inputs import LedgerFile, opened
from quietburn.records.lines import MAX_LINE_BYTES, Line

_HEAD_BYTES = 1 << 20
_SPOTS = 8
_SPOT_BYTES = 64 << 10
_LINES_A_SPOT = 50
_MOST_SAMPLED = 600  # records of a document
_MINORITY = 0.1  # a second dialect counts from this share of the sample on



class EmptyLedgerError(InputError):
    """A ledger without a byte."""


class NoLedgerError(InputError):
    """A file that holds no ledger."""


@dataclass
class Detection:
    """The dialects of one file, in the order in which a line is offered to them."""

    mappings: tuple[Mapping, ...]
    source: Source
    main: str
    why: str
    sample: list[Members] = field(default_factory=list, repr=False)
    wrapper: Wrapper | None = None
    is_document: bool = False  # its records are not lines

    def logged_keys(self) -> set[str]:
        """Return the keys of the sampled lines, empty ones too, that a dialect reads or can have pasted."""
        wanted = frozenset[str]().union(*(mapping.source_keys for mapping in self.mappings))
        return {key for members in self.sample for key in members if key in wanted}


class Rejoined(io.RawIOBase):
    """A stream whose head was read already."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def read(self, size: int = -1) -> bytes:
        """Return at most so many bytes: of the head first."""
        if self._head:
            cut = len(self._head) if size < 0 else size
            head, self._head = self._head[:cut], self._head[cut:]
            return head
        return self._rest.read(size)


@dataclass(frozen=True)
class Sampled:
    """An opened ledger: its stream, lines from across it, the head that was read, and the NULs before that."""

    stream: BinaryIO
    lines: list[bytes]
    head: bytes
    passed: int


@contextmanager
def sampled(ledger: LedgerFile) -> Iterator[Sampled]:
    """Open a ledger, read its head, and take lines from across the file.

    Of standard input and compressed files only the head is looked at. Raises InputError for an
    empty one.
    """
    with opened(ledger) as stream:
        passed, head = _read_head(stream)
        if not head:
            raise EmptyLedgerError(f"{ledger.label}: is empty. There is nothing to analyze.")
        lines = head.split(b"\n")
        if len(head) >= _HEAD_BYTES:
            lines.pop()
        chosen = lines[:200] + lines[200 :: max(1, len(lines) // _LINES_A_SPOT)]
        yield Sampled(cast(BinaryIO, Rejoined(head, stream)), chosen + _spots(ledger), head, passed)


def _read_head(stream: BinaryIO) -> tuple[int, bytes]:
    """Read the first MiB, and on to the end of the first line where that is longer.

    Of NULs that a ledger begins with, however many, one is kept: returns how many were passed.
    """
    passed, head = 0, b""
    while len(head) < _HEAD_BYTES or (b"\n" not in head and len(head) <= MAX_LINE_BYTES):
        part = stream.read(_HEAD_BYTES)
        if not part:
            break
        head += part
        if head.startswith(b"\0"):
            kept = b"\0" + head.lstrip(b"\0")
            passed, head = passed + len(head) - len(kept), kept
    return passed, head


def _spots(ledger: LedgerFile) -> list[bytes]:
    """Return lines from places beyond the head of an uncompressed file."""
    size = ledger.size
    if ledger.path is None or ledger.is_compressed or not size or size <= 2 * _HEAD_BYTES:
        return []
    found: list[bytes] = []
    with ledger.path.open("rb") as stream:
        for spot in range(1, _SPOTS + 1):
            stream.seek(size * spot // (_SPOTS + 1))
            pieces = stream.read(_SPOT_BYTES).split(b"\n")
            found += pieces[1:-1][:_LINES_A_SPOT]
    return found


def detect(
    ledger: LedgerFile, found: "Sampled", known: tuple[Mapping, ...], *, forced: Mapping | None
) -> Detection:
    """Return the dialects of a file from what was sampled of it.

    Raises NoLedgerError when it holds no JSON object, or when no dialect fits: then with the
    nearest dialect and what it missed.
    """
    lines = found.lines
    wrapper = wrapper_of(lines)
    sample = parsed_sample(lines if wrapper is None else sample_payloads(lines, wrapper))
    records = [] if wrapper else _records_of_document(lines, sample, found.head)
    sample, is_document = records or sample, bool(records)
    told = f"its lines are framed {wrapper.words}; " if wrapper else "it is a JSON document; " if is_document else ""
    if not sample:
        carried = f", nor is the wrapped content ({told.removesuffix('; ')})" if told else ""
        raise NoLedgerError(
            f"{ledger.label}: none of the sampled lines is a JSON object{carried}. A ledger has one JSON object per line."
            + (" It looks like CSV: write each row as a JSON object, and map its fields with --map." if _is_csv(lines) else "")
        )
    if forced is not None:
        why = f"{told}it was requested"
        return Detection((forced,), source_of((forced,)), forced.dialect.name, why, sample, wrapper, is_document)
    fits = Counter(name for members in sample if (name := first_fit(members, known)))
    if not fits:
        raise NoLedgerError(f"{ledger.label}: {_nearest(sample, known)}")
    signed = {mapping.dialect.name for mapping in known if mapping.recognise.is_signature}
    chosen = {name for name, count in fits.items() if name in signed or count >= _MINORITY * fits.total()}
    mappings = tuple(m for m in known if m.dialect.name in chosen)
    main = fits.most_common(1)[0][0]
    why = ", ".join(f"{count} of {len(sample)} sampled lines fit {name}" for name, count in fits.most_common())
    return Detection(mappings, source_of(mappings), main, told + why, sample, wrapper, is_document)


def _records_of_document(lines: list[bytes], sample: list[Members], head: bytes) -> list[Members]:
    """Return the records at a file's beginning where it is a document; none where most of its lines are records themselves."""
    told = sum(1 for line in lines if line.strip())
    if 2 * len(sample) >= told > 0:
        return []
    records = parsed_sample(sample_records(head)[:_MOST_SAMPLED])
    return records if len(records) > len(sample) else []


def first_fit(members: Members, known: tuple[Mapping, ...]) -> str | None:
    """Return the first dialect that a line is of."""
    return next((m.dialect.name for m in known if not any(_missing(members, m))), None)


def parsed_sample(lines: list[bytes]) -> list[Members]:
    """Return the sampled lines that are JSON objects."""
    parsed = (parse_line(Line(0, 0, line.strip(b"\r\0\xef\xbb\xbf")), {}) for line in lines if line.strip())
    return [members for members in parsed if not isinstance(members, Refused)]


def _is_csv(lines: list[bytes]) -> bool:
    told = [line for line in lines if line.strip()][:20]
    commas = {line.count(b",") for line in told}
    return len(told) > 1 and len(commas) == 1 and commas != {0}


def _missing(members: Members, mapping: Mapping) -> Iterator[str]:
    """Yield what a line lacks to be of a dialect and to stand in time, in words."""
    members = read_embedded(members, mapping.dialect.embedded)
    yield from missing(members, mapping.recognise)
    times = mapping.time_keys
    if mapping.has_time and mapping.events is None and all(resolve(members, key) is None for key in times):
        yield "a time (" + ", ".join(times[:4]) + ")"


def _nearest(sample: list[Members], known: tuple[Mapping, ...]) -> str:
    """Return the sentence for a file that fits no dialect."""
    scored = []
    for mapping in known:
        missed = Counter(what for members in sample for what in _missing(members, mapping))
        # The share of its conditions that are missed: a dialect of one key is no near one for missing only that.
        asked = mapping.recognise
        conditions = len(asked.all) + bool(asked.any) + len(asked.values) + (mapping.has_time and mapping.events is None)
        scored.append((missed.total() / conditions if conditions else float("inf"), -mapping.dialect.priority, mapping, missed))
    _, _, mapping, missed = min(scored, key=lambda item: item[:2])
    return (
        f"no known dialect fits its lines. The closest is {mapping.dialect.name!r}, but it misses "
        f"{' and '.join(missed)}. Map its fields in a mapping file, and pass it with --map."
    )
