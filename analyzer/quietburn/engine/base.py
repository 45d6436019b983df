"""What a rule needs of an engine: run one SELECT over `events` and `minutes`, give Arrow back."""

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa


class Carries(Protocol):
    """Knows which columns have a value."""

    def carries(self, field: str) -> bool:
        """Whether any event has a value in this column (its stored name)."""
        ...


class Logs(Carries, Protocol):
    """Knows which columns have a value, and which keys a dialect's log has with nothing in them too."""

    def logged_keys(self, dialect: str) -> frozenset[str]:
        """Return the keys that every log of a dialect has, empty ones too."""
        ...


class Engine(Protocol):
    """Holds one run's events."""

    def select(self, sql: str) -> pa.Table:
        """Run one SELECT and return its rows. Raises EngineError when the engine refuses it."""
        ...

    def make_table(self, name: str, sql: str) -> None:
        """Keep the rows of a SELECT under a name."""
        ...

    def with_rows(self, name: str, rows: pa.Table) -> None:
        """Give rows to the engine under a name."""
        ...

    @property
    def side_gauges(self) -> Mapping[str, str]:
        """Return gauges that come from elsewhere: column of the ledger -> table of (backend, minute, value)."""
        ...

    def carries(self, field: str) -> bool:
        """Whether any event of the run has a value in this column (its stored name)."""
        ...


class EngineError(Exception):
    """The engine refused a statement; the message is the engine's own and is never shown as it is."""
