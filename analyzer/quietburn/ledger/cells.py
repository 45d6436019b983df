"""Tokens into raw tables: one typed column for each key and each kind in which its values were written."""

import json
import math
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quietburn.common.columns import ANSWER_TEXT, PREFIX_TEXT, Kind
from quietburn.dialects.rawcolumns import ITEM, LENGTH, LINE_CHECK, OFFSET, RawKind, raw_name
from quietburn.dialects.sources import Source
from quietburn.dialects.transforms import TRANSFORMS
from quietburn.ledger.fingerprint import analyze_prefix
from quietburn.ledger.parse import FLAG, NULL, NUMBER, OTHER, STRING, Bytes, Flags, Tokens, kinds_of
from quietburn.records.exact import NumberText, decode, token
from quietburn.records.records import Integers, Records

_CONTROLS = r'^"(\\u00[01][0-9a-fA-F]|\\u007[fF]|\\[bfnrt])+"$'
_NUMERIC = frozenset({Kind.COUNT, Kind.DURATION, Kind.NUMBER, Kind.PERCENT, Kind.FLAG})


def raw_table(records: Records, tokens: Tokens, source: Source) -> pa.Table | None:
    """Return a block's events as a raw table; None where it holds none."""
    return _Cells(records, tokens, source).table() if len(tokens.rows) else None


class _Cells:
    """One block's tokens on their way into a raw table."""

    def __init__(self, records: Records, tokens: Tokens, source: Source) -> None:
        self._records, self._tokens, self._source = records, tokens, source
        self._places = {key: place for place, key in enumerate(tokens.keys)}
        self._kinds = dict(zip(tokens.keys, np.ascontiguousarray(tokens.kinds.T), strict=True))
        self._derived: dict[str, pa.StringArray] = {}

    def table(self) -> pa.Table:
        for key, (name, keys) in self._source.derived.items():
            made = applied(name, [self._column(source) for source in keys], len(self._tokens.rows))
            if made is not None:
                self._derived[key], self._kinds[key] = made, kinds_of(made, 1)[:, 0]
        columns = {"line": self._of_rows(self._records.numbers), **self._placed()}
        for key, roles in self._source.roles.items():
            if self._source.is_column(key):
                columns |= {raw_name(kind, key): cells for kind, cells in self._cells(key, roles)}
        for name, keys in self._source.private.items():
            columns |= self._private(name, keys)
        return pa.table(columns)

    def _column(self, key: str, wanted: Flags | None = None) -> pa.StringArray | None:
        """Return a key's tokens, one for each event, null where it is not wanted; None where no event has any."""
        if key in self._derived:
            rows = np.arange(len(self._tokens.rows))
            return self._derived[key] if wanted is None else self._derived[key].take(pa.array(rows, mask=~wanted))
        place = self._places.get(key)
        if place is None or not self._kinds[key].any():
            return None
        places = np.arange(place, len(self._tokens.values), len(self._places))
        return self._tokens.values.take(pa.array(places, mask=None if wanted is None else ~wanted))

    def _of_rows(self, values: Integers) -> pa.Array:
        return pa.array(values[self._tokens.rows])

    def _placed(self) -> dict[str, pa.Array]:
        """Return where each event stands in the file, its place in its line, and a sum of all its keys."""
        records, tokens = self._records, self._tokens
        placed = {OFFSET: self._of_rows(records.offsets), LENGTH: self._of_rows(records.sizes())}
        if tokens.items.any():
            placed[ITEM] = pa.array(tokens.items, mask=tokens.items == 0)
        if tokens.checks:
            events = zip(tokens.rows.tolist(), tokens.items.tolist(), strict=True)
            placed[LINE_CHECK] = pa.array([tokens.checks.get(event) for event in events], pa.int64())
        return placed

    def _cells(self, key: str, roles: frozenset[Kind]) -> Iterator[tuple[RawKind, pa.Array]]:
        """Yield the typed cells of a key, by the kind in which its values were written."""
        kinds = self._kinds.get(key)
        if kinds is None:
            return
        kinds = self._without_controls(key, kinds)
        written = {kind for kind in (STRING, NUMBER, FLAG, OTHER, NULL) if (kinds == kind).any()}
        for kind in written & {STRING, NUMBER, FLAG}:
            column = self._column(key, None if len(written) == 1 else kinds == kind)
            if column is not None:
                yield from _TYPED[kind](column, roles)
        if not written & {NUMBER, OTHER}:
            return
        others = kinds == OTHER
        if NUMBER in written and Kind.TIME in roles:
            others |= pc.is_in(self._column(key), _NOT_FINITE).to_numpy(zero_copy_only=False)
        if others.any():
            yield RawKind.OTHER, pa.array(others, mask=~others)

    def _without_controls(self, key: str, kinds: Bytes) -> Bytes:
        """Return kinds in which a text of nothing but control characters is no text."""
        texts = kinds == STRING
        tokens = self._column(key) if texts.any() else None
        if tokens is None or not pc.starts_with(tokens, '"\\').true_count:  # it spares nearly every block the expression
            return kinds
        controls = pc.match_substring_regex(tokens, _CONTROLS).fill_null(False)  # noqa: FBT003 - a value
        return np.where(texts & controls.to_numpy(zero_copy_only=False), np.uint8(OTHER), kinds)

    def _private(self, name: str, keys: tuple[str, ...]) -> dict[str, pa.Array]:
        """Return the columns made from the first of some texts that is not null; each distinct one is looked at once."""
        held = [column for key in keys if (column := self._column(key)) is not None]
        if not held:
            return {}
        told = [pc.replace_with_mask(column, pc.equal(column, "null"), _NO_TEXT) for column in held]
        first = pc.coalesce(*told).dictionary_encode()
        made = _made_of_texts(name, [_text(token) for token in first.dictionary.to_pylist()])
        return {raw_name(RawKind.PRIVATE, column): array.take(first.indices) for column, array in made}


def _strings(tokens: pa.StringArray, roles: frozenset[Kind]) -> Iterator[tuple[RawKind, pa.Array]]:  # noqa: ARG001 - numbers need them
    bare = pc.utf8_trim(tokens, '"')  # without a backslash nothing in a JSON string is a quote but its ends
    escaped = pc.match_substring(tokens, "\\").fill_null(False)  # noqa: FBT003 - a value
    if escaped.true_count:
        texts = pa.array([json.loads(token) for token in tokens.filter(escaped).to_pylist()], pa.string())
        bare = pc.replace_with_mask(bare, escaped, texts)
    yield RawKind.STRING, bare


def _flags(tokens: pa.StringArray, roles: frozenset[Kind]) -> Iterator[tuple[RawKind, pa.Array]]:  # noqa: ARG001 - numbers need them
    yield RawKind.FLAG, pc.equal(tokens, "true")


def _numbers(tokens: pa.StringArray, roles: frozenset[Kind]) -> Iterator[tuple[RawKind, pa.Array]]:
    """Yield a number in one column for each role of its key."""
    if Kind.TIME in roles:
        yield RawKind.DECIMAL, _decimals(tokens)
    if Kind.TEXT in roles:
        yield RawKind.NUMBER_TEXT, tokens
    if roles & _NUMERIC or not roles:
        yield RawKind.NUMBER, _doubles(tokens)


def _doubles(tokens: pa.StringArray) -> pa.Array:
    try:
        return pc.cast(tokens, pa.float64())
    except pa.ArrowInvalid:  # what overflows, which Python takes for infinite
        return pa.array([None if token is None else float(token) for token in tokens.to_pylist()], pa.float64())


_TIME_LIMIT = Decimal(10) ** 28  # within the 38 digits of a time column, and beyond every time
_TIME_CONTEXT = Context(prec=60)
_TIME_TYPE = pa.decimal128(38, 9)


def _decimals(tokens: pa.StringArray) -> pa.Array:
    try:
        return pc.cast(tokens, _TIME_TYPE)
    except pa.ArrowInvalid:  # more than nine decimals, or more than the column can hold
        return pa.array([None if token is None else _decimal(token) for token in tokens.to_pylist()], _TIME_TYPE)


def _decimal(token: str) -> Decimal | None:
    """Return a number with at most nine decimals, or None if it is not finite.

    What the column can't hold is out of every range: it becomes the limit, and stays refused.
    """
    number = float(token)
    if not math.isfinite(number):
        return None
    if abs(number) >= _TIME_LIMIT:
        return _TIME_LIMIT
    return Decimal(token).quantize(Decimal("1e-9"), rounding="ROUND_FLOOR", context=_TIME_CONTEXT)


_TYPED = {STRING: _strings, NUMBER: _numbers, FLAG: _flags}
_NOT_FINITE = pa.array(["NaN", "Infinity", "-Infinity"])
_NO_TEXT = pa.scalar(None, pa.string())


def _text(token: str) -> str | None:
    """Return the text that a token is; None for any other value."""
    value = decode(token)
    return value if isinstance(value, str) and not isinstance(value, NumberText) else None


def _made_of_texts(name: str, texts: list[str | None]) -> Iterator[tuple[str, pa.Array]]:
    """Yield what is made of raw texts, which are dropped here."""
    if name == PREFIX_TEXT:
        seen = [(None, None) if text is None else analyze_prefix(text) for text in texts]
        yield "prefix_fp", pa.array([fingerprint for fingerprint, _ in seen], pa.string())
        yield "prefix_noisy", pa.array([noisy for _, noisy in seen], pa.bool_())
    elif name == ANSWER_TEXT:
        yield "answer_unreadable", pa.array([text is None or None for text in texts], pa.bool_())
        yield "answer_chars", pa.array([None if text is None else float(len(text)) for text in texts], pa.float64())


def applied(name: str, columns: list[pa.StringArray | None], rows: int) -> pa.StringArray | None:
    """Return the tokens that a transform makes of others, worked out once for each distinct set; None where it makes nothing."""
    transform = TRANSFORMS[name]
    held = [column for column in columns if column is not None]
    if not held and not transform.tells_of_nothing:
        return None
    codes = np.zeros(rows, np.int64)
    for column in held:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        _, codes = np.unique(codes, return_inverse=True)
    _, first, places = np.unique(codes, return_index=True, return_inverse=True)
    given = [[None] * len(first) if column is None else column.take(pa.array(first)).to_pylist() for column in columns]
    made = [token(transform.of(*map(_value, values))) for values in zip(*given, strict=True)]
    return pa.array(made, pa.string()).take(pa.array(places))


def _value(text: str | None) -> Any:
    return None if text is None or text == "null" else decode(text)
