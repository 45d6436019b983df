"""Check the constants of a mapping file against the limits of the columns that they fill.

A value from a ledger is checked when it is read; a constant fills the column of every line unchecked,
so it is checked when its mapping file is read.
"""

import math

from quietburn.common.columns import BY_NAME, PRIVATE_TEXTS, STORED_AS, Column, Kind, ceiling
from quietburn.common.sql import Scalar

_LONGEST_SHOWN = 40


def problem_of(column_name: str, value: Scalar) -> str | None:
    """Return what keeps a constant out of a column, with what the column takes; None where it fits.

    The column is named as users log it; the value is in the column's own unit.
    """
    column = None if column_name in PRIVATE_TEXTS else BY_NAME[STORED_AS.get(column_name, column_name)]
    if column is None or column.kind is Kind.TEXT:
        fits, takes = isinstance(value, str) and "\0" not in value, "a quoted string"
    elif column.kind is Kind.TIME:
        fits, takes = False, "times from the ledger only"
    elif column.kind is Kind.FLAG:
        fits, takes = isinstance(value, bool), "true or false"
    else:
        fits, takes = _is_number_for(column, value), _numbers_for(column)
    return None if fits else f"{_shown(value)} is not valid for column {column_name!r}, which takes {takes}"


def _is_number_for(column: Column, value: Scalar) -> bool:
    if isinstance(value, str | bool) or (isinstance(value, float) and not math.isfinite(value)):
        return False
    low, high = _bounds(column)
    is_whole = isinstance(value, int) or value.is_integer()
    is_zero_deadline = column.name == "deadline_ms" and value == 0
    return low <= value <= high and (is_whole or column.kind is not Kind.COUNT) and not is_zero_deadline


def _numbers_for(column: Column) -> str:
    low, high = _bounds(column)
    kind = "an integer" if column.kind is Kind.COUNT else "a number"
    above = "above 0 and up to" if column.name == "deadline_ms" else f"from {low:,.0f} to"
    return f"{kind} {above} {high:,.0f}"


def _bounds(column: Column) -> tuple[float, float]:
    high = ceiling(column.kind, column.unit)
    return (-high if column.kind is Kind.NUMBER else 0.0), high


def _shown(value: Scalar) -> str:
    if isinstance(value, int) and abs(value) >= 10**_LONGEST_SHOWN:  # Python refuses to write thousands of digits
        return f"a number of more than {_LONGEST_SHOWN} digits"
    written = str(value).lower() if isinstance(value, bool) else repr(value)
    return written if len(written) <= _LONGEST_SHOWN else f"{written[:_LONGEST_SHOWN]}…"
