"""Columns made from raw texts, which are dropped in the same step: fingerprints and lengths."""

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quietburn.fingerprint import analyze_prefix
from quietburn.ledger.events import ANSWER_TEXT, PREFIX_TEXT
from quietburn.ledger.rawcolumns import RawKind, raw_name
from quietburn.ledger.schema import Source


def private_columns(texts: dict[str, Any], source: Source) -> Iterable[tuple[str, pa.Array]]:
    """Yield the raw columns made from the texts of a table, given by source key."""
    for name, keys in source.private.items():
        columns = [texts[key] for key in keys if key in texts]
        if columns:
            yield from columns_of_text(name, pc.coalesce(*columns) if len(columns) > 1 else columns[0])


def columns_of_text(name: str, texts: pa.Array) -> Iterable[tuple[str, pa.Array]]:
    """Return the columns made from raw texts: each distinct text is looked at once."""
    encoded = texts.dictionary_encode()
    values = encoded.dictionary.to_pylist()

    def column(make: Callable[[str], object], kind: pa.DataType) -> pa.Array:
        made = pa.array([None if text is None else make(text) for text in values], kind)
        return made.take(encoded.indices)

    if name == PREFIX_TEXT:
        seen = {text: analyze_prefix(text) for text in values if text is not None}
        yield raw_name(RawKind.PRIVATE, "prefix_fp"), column(lambda text: seen[text][0], pa.string())
        yield raw_name(RawKind.PRIVATE, "prefix_noisy"), column(lambda text: seen[text][1], pa.bool_())
    elif name == ANSWER_TEXT:
        yield raw_name(RawKind.PRIVATE, "answer_chars"), column(lambda text: float(len(text)), pa.float64())
