"""Proofs that nothing in a raw table can be refused or coerced, by a few looks over whole columns.

A table that is proven clean is converted without a check for each value. What can't be proven
is not wrong; it is converted with checks.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quietburn.ledger.rawcolumns import PLACEHOLDERS, RawKind, raw_name


class Proof(Protocol):
    """One thing that must hold of a whole table."""

    def holds(self, table: pa.Table) -> bool:
        """Whether it does."""
        ...


@dataclass(frozen=True)
class Scaled:
    """The numbers of one key, in the canonical unit: as written, times a factor."""

    key: str
    factor: float = 1.0

    def numbers(self, table: pa.Table) -> Any:
        """Return them as doubles; NaN where there is none."""
        written = table[raw_name(RawKind.NUMBER, self.key)].to_numpy()
        return written if self.factor == 1.0 else written * self.factor


@dataclass(frozen=True)
class Within:
    """Each number that is there lies in a closed span (`above`: over its lower end), and is integral if asked."""

    scaled: Scaled
    low: float
    high: float
    above: bool = False
    integral: bool = False

    def holds(self, table: pa.Table) -> bool:
        """Whether they do; a NaN among them lies in no span."""
        column = table[raw_name(RawKind.NUMBER, self.scaled.key)]
        written = (column.drop_null() if column.null_count else column).to_numpy()
        if not len(written):
            return True
        numbers = written if self.scaled.factor == 1.0 else written * self.scaled.factor
        lowest = numbers.min()
        if not (lowest >= self.low and numbers.max() <= self.high and not (self.above and lowest == self.low)):
            return False
        return not self.integral or bool((numbers == np.floor(numbers)).all())


@dataclass(frozen=True)
class TimesWithin:
    """Each time that is there is a number between two whole seconds."""

    key: str
    first_s: int
    last_s: int

    def holds(self, table: pa.Table) -> bool:
        """Whether they are."""
        limits = pc.min_max(table[raw_name(RawKind.DECIMAL, self.key)]).as_py()
        return limits["min"] is None or bool(limits["min"] >= self.first_s and limits["max"] <= self.last_s)


@dataclass(frozen=True)
class OneIsWhole:
    """One of several keys has a value in each line (no empty text among them)."""

    columns: tuple[str, ...]  # raw column names

    def holds(self, table: pa.Table) -> bool:
        """Whether one does."""
        return any(table[name].null_count == 0 and _has_no_empty_text(table[name]) for name in self.columns)


def _has_no_empty_text(column: pa.ChunkedArray) -> bool:
    return not pa.types.is_string(column.type) or pc.min(pc.binary_length(column)).as_py() != 0


@dataclass(frozen=True)
class NoPlaceholder:
    """None of the key's texts stands for nothing."""

    key: str

    def holds(self, table: pa.Table) -> bool:
        """Whether none does; long texts are told by their length alone."""
        texts = table[raw_name(RawKind.STRING, self.key)]
        shortest = pc.min(pc.binary_length(texts)).as_py()
        if shortest is None or shortest > _LONGEST_PLACEHOLDER:
            return True
        return pc.any(pc.is_in(texts, value_set=_PLACEHOLDERS)).as_py() is not True


_PLACEHOLDERS = pa.array(PLACEHOLDERS)
_LONGEST_PLACEHOLDER = max(len(text) for text in PLACEHOLDERS)


@dataclass(frozen=True)
class NotGreater:
    """Where both are there, the one is not greater than the other."""

    part: Scaled
    whole: Scaled

    def holds(self, table: pa.Table) -> bool:
        """Whether it is not."""
        return not bool((self.part.numbers(table) > self.whole.numbers(table)).any())


@dataclass(frozen=True)
class TimesInOrder:
    """Where both are there, the first time is not after the second."""

    first: str
    second: str

    def holds(self, table: pa.Table) -> bool:
        """Whether it is not."""
        first, second = (table[raw_name(RawKind.DECIMAL, key)] for key in (self.first, self.second))
        return pc.any(pc.greater(first, second)).as_py() is not True


@dataclass(frozen=True)
class NoneInvented:
    """No attempt that was not answered 2xx measured 0: what else it says of its work would be invented."""

    status: Scaled | None
    measured: tuple[Scaled, ...]

    def holds(self, table: pa.Table) -> bool:
        """Whether none did."""
        zero = np.logical_or.reduce([scaled.numbers(table) == 0 for scaled in self.measured])
        if self.status is None:
            return not bool(zero.any())
        status = self.status.numbers(table)
        return not bool((zero & ~((status >= _OK) & (status < _OK + 100))).any())


_OK = 200


@dataclass(frozen=True)
class AddsUp:
    """Where all are there, the total is the sum of its parts."""

    total: Scaled
    prompt: Scaled
    completion: Scaled

    def holds(self, table: pa.Table) -> bool:
        """Whether it is."""
        difference = self.total.numbers(table) - (self.prompt.numbers(table) + self.completion.numbers(table))
        return not bool((np.nan_to_num(difference) != 0).any())


def microseconds(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return proven seconds (nine decimals) as whole microseconds, rounded half up.

    Such a decimal is a count of nanoseconds that fits the lower 64 of its 128 bits.
    """
    return pa.chunked_array([_microseconds(chunk) for chunk in times.chunks], pa.int64())


def _microseconds(times: pa.Array) -> pa.Array:
    words = np.frombuffer(times.buffers()[1], np.int64)[2 * times.offset : 2 * (times.offset + len(times))]
    rounded = (words[::2] + 500) // 1000
    return pa.array(rounded, mask=times.is_null().to_numpy(zero_copy_only=False) if times.null_count else None)
