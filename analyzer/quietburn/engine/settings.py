"""What shapes the events of a run besides its ledgers: the asked span, deadlines, and what absence tells."""

from collections.abc import Collection
from dataclasses import dataclass, field

from quietburn.common.sql import any_of, literal
from quietburn.dialects.routes import RouteTable, shipped_routes


@dataclass(frozen=True)
class DeadlineDefault:
    """A deadline that the ledger doesn't carry: assumed for a dialect, or configured."""

    deadline_ms: float
    origin: str  # for the report: where the number comes from
    dialect: str | None = None  # only for lines of this dialect
    column: str | None = None  # only where this column ...
    value: str | None = None  # ... holds this value

    def condition(self, columns: Collection[str]) -> str | None:
        """Return the predicate over lines that carry no deadline: this one is for them; None where it is for none.

        A route is meant by the name that reports give it, or by the path that the log writes.
        """
        if self.dialect:
            return f"dialect = {literal(self.dialect)}"
        if not self.column:
            return "TRUE"
        asked = [name for name in _MEANT_BY.get(self.column, (self.column,)) if name in columns]
        return any_of(f"{name} = {literal(self.value or '')}" for name in asked) if asked else None


_MEANT_BY = {"route": ("route", "path")}


@dataclass(frozen=True)
class Settings:
    """What shapes the view besides the ledger: times in UTC microseconds, half open."""

    since_us: int | None = None
    until_us: int | None = None
    deadlines: tuple[DeadlineDefault, ...] = ()
    length_is_complete: bool = True
    routes: RouteTable = field(default_factory=shipped_routes)
    file_labels: tuple[str, ...] = ()  # by file id
    carriers: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by column, dialects in which its absence tells
    weak: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by column, dialects in which its absence proves nothing

    def carrying(self, *columns: str) -> tuple[str, ...]:
        """Return the dialects in which the absence of any of these columns tells something."""
        return tuple(sorted({dialect for column in columns for dialect in self.carriers.get(column, ())}))


def within(settings: Settings, column: str) -> str:
    """Return the WHERE clause (or nothing): this column of times lies within the asked span."""
    limits = []
    if settings.since_us is not None:
        limits.append(f"{column} >= {settings.since_us}")
    if settings.until_us is not None:
        limits.append(f"{column} < {settings.until_us}")
    return " WHERE " + " AND ".join(limits) if limits else ""


def request_within(settings: Settings) -> str:
    """Return the predicate: the event's request started within the asked span."""
    return within(settings, "request_started_us").removeprefix(" WHERE ") or "TRUE"
