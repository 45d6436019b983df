"""A transform's function, guarded: whatever a foreign value does to it costs the field, never the run."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from quietburn.records.exact import NumberText

_MAGNITUDE_LIMIT = Decimal("1e300")  # beyond every column's range, and finite in any unit
_OUT_OF_RANGE = NumberText(_MAGNITUDE_LIMIT)
UNREADABLE: dict[str, Any] = {}  # an object, which no column takes
_CONTROLS = "".join(map(chr, (*range(32), 127)))  # of these alone no text is made


@dataclass(frozen=True)
class Transform:
    """A named function over as many values as it takes; what it does in words, for `dialects show`."""

    function: Callable[..., Any]
    takes: int
    meaning: str
    tells_of_nothing: bool = False  # of values that are all missing too: what says nothing of a failure did not fail

    def of(self, *values: Any) -> Any:
        """Return what the values mean; of nothing most make nothing."""
        told = self.tells_of_nothing or any(value is not None for value in values)
        return self(*values) if told else None

    def __call__(self, *values: Any) -> Any:
        """Return what the values mean.

        The values are foreign text: whatever they do to the function costs the field, never the run. A
        result too large to compute is a number out of every column's range; any other failure yields
        an object, which no column takes.
        """
        if any(isinstance(value, str) and value and not value.strip(_CONTROLS) for value in values):
            return UNREADABLE
        try:
            return self.function(*values)
        except ArithmeticError:
            return _OUT_OF_RANGE
        except Exception:  # noqa: BLE001 - whatever it is, the value stays unknown and is counted
            return UNREADABLE


def number_of(value: float | Decimal) -> NumberText:
    """Return a number as JSON would have given it; what is too large, out of every column's range."""
    return NumberText(value) if -_MAGNITUDE_LIMIT < value < _MAGNITUDE_LIMIT else _OUT_OF_RANGE
