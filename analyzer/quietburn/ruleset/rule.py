"""The model of a rule file: metadata, parameters, what a minute counts, when a window is flagged."""

import re
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from quietburn.common.columns import BY_NAME, STORED_AS
from quietburn.ruleset.alert import Alert, Runbook
from quietburn.ruleset.severity import Severity

_WINDOW = re.compile(r"^([1-9][0-9]*)(m|h)$")
_NAME = r"^[a-z][a-z0-9_]*$"
_OF_WINDOW = re.compile(r"\bwindow\.([a-z][a-z0-9_]*)\b")
_STRETCH_MINUTES = 60  # a longer gap between two events starts a new finding
EVENT_COUNT = "count(*)"  # the one minute column of an event rule
Tag = Literal["prefix", "queue", "capacity", "probes", "tokens", "deadline", "answers", "retries", "failover", "readiness"]


def window_minutes(length: str) -> int:
    """Return a window's length (`5m`, `1h`) in minutes."""
    match = _WINDOW.match(length)
    if not match:
        raise ValueError(f"{length!r} is not a window; use whole minutes or hours, such as 5m or 1h")
    return int(match[1]) * (60 if match[2] == "h" else 1)


def _check_window(value: object) -> object:
    window_minutes(str(value))
    return value


Window = Annotated[str, BeforeValidator(_check_window)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class About(_Frozen):
    """What a rule is, where it comes from, and what the ledger must carry for it.

    `needs` are columns as users log them. Each group of `any_of` is met by one of its
    entries; an entry may join columns with `+`. `optional` are columns that it reads where they
    are there. `explains` names the rules whose findings may be a consequence of this one's.
    """

    id: str = Field(pattern=r"^[a-z][a-z0-9-]{2,60}$")
    revision: int = Field(ge=1)
    title: str
    severity: Severity
    status: Literal["stable", "experimental"] = "stable"
    origin: str
    tags: tuple[Tag, ...]
    needs: tuple[str, ...]
    any_of: tuple[tuple[str, ...], ...] = ()
    optional: tuple[str, ...] = ()
    subject: tuple[Literal["route", "backend", "client"], ...]
    aliases: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    known_gaps: tuple[str, ...] = ()
    false_positives: tuple[str, ...]

    @model_validator(mode="after")
    def _known_fields(self) -> "About":
        for field in self.fields:
            if STORED_AS.get(field, field) not in BY_NAME:
                raise ValueError(f"needs names {field!r}, which is not a ledger column")
        return self

    @property
    def fields(self) -> tuple[str, ...]:
        """Return every field that the rule may read, alternatives and optional ones among them."""
        alternatives = (name for group in self.any_of for entry in group for name in entry.split("+"))
        return tuple(dict.fromkeys((*self.needs, *alternatives, *self.optional)))


# What no unit goes beyond; a number above the last is a slip, and overflows where it is computed with.
_MOST = {"share": 1.0, "%": 100.0}
_MOST_OF_ANY = 1e12


class Parameter(_Frozen):
    """A number that the user may set; without a default it must be configured or stays NULL.

    It lies between `minimum`, 0 where there is none, and `maximum`, by its unit where there is none.
    `lab` holds defaults that are true only in the ledgers of a seed's lab, by dialect.
    """

    default: float | None = None
    lab: dict[str, float] = Field(default_factory=dict)
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    config_key: str | None = None
    unit: str
    meaning: str

    @property
    def range(self) -> tuple[float, float]:
        """Return the least and the most that the number may be."""
        most = _MOST.get(self.unit, _MOST_OF_ANY) if self.maximum is None else self.maximum
        return self.minimum or 0.0, most


class Grade(_Frozen):
    """One level of a rule: its severity, when it holds, and the window whose events are its evidence."""

    severity: Severity
    window: Window
    flag: str


class WindowRule(_Frozen):
    """Which windows a rule looks at, when it flags, and what it then reports.

    Observed expressions may read `grade`, the place of the grade that holds, from 0.
    """

    grades: tuple[Grade, ...] = Field(min_length=1)
    observed: dict[str, str]


class EventRule(_Frozen):
    """Which single attempts (or pairs) a rule flags: one SELECT over `events`, and `minutes` where the rule has them.

    `minutes` has a row by route, backend ('' where there is none) and minute, with the rule's own
    columns: what only counts by minute is computed in the one reduction and needs no scan of its
    own. `suspects` is a SELECT that runs before, whose rows `sql` reads as `suspects`: where it finds
    nothing (no minute, no group is suspect) the events need not be looked at. `sql` returns
    `event_id` and the observed columns, an event at most once: two events of one line, or of two files
    of one name, have two ids. `subject` names the columns that `sql` returns in place of the event's
    own route or backend: a failover counts against the backend that it left. `event` is the name
    under which `quietburn_events_total` counts what it returns. A grade's `flag` reads `events_5m`,
    the number of flagged events in the last five minutes; `summed` names observed columns whose
    sums it may read in the same way.
    """

    sql: str
    suspects: str | None = None
    event: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    observed: tuple[str, ...]
    subject: tuple[Literal["route", "backend", "client"], ...] = ()
    summed: tuple[str, ...] = ()
    grades: tuple[Grade, ...] = Field(min_length=1)

    @property
    def selects(self) -> list[str]:
        """Return its SELECTs in the order in which they run."""
        return [self.suspects, self.sql] if self.suspects else [self.sql]


class FindingText(_Frozen):
    """What counts against the subject, and the sentences of a finding (Jinja over observed values).

    `evidence` is a predicate over `events` or the name of one of the rule's own events; an event
    rule has none, its SELECT says it. The predicate may read `window.NAME`, what the finding
    observes under that name, so that it names the events that differ from the rest of their window.
    `corroborated` is a Jinja expression over observed values: where it is false the finding is
    possible, not likely. `who` is the column that names who stands behind it, where the ledger
    carries it, in place of the caller.
    """

    evidence: str | None = None
    who: Literal["client", "tenant", "model", "backend", "writer"] | None = None
    inference: str = Field(max_length=600)
    action: str = Field(max_length=600)
    corroborated: str | None = None
    worst_by: str
    measure: str | None = None  # an expression over the evidence, reported as its median
    measure_name: str | None = None


class Rule(_Frozen):
    """A rule file: windowed (`minutes`, `events`, `window`), or an event rule (`classify`, which may read `minutes`)."""

    rule: About
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    events: dict[str, str] = Field(default_factory=dict)
    minutes: dict[str, str] = Field(default_factory=dict)
    window: WindowRule | None = None
    classify: EventRule | None = None
    finding: FindingText
    alert: Alert
    runbook: Runbook

    @model_validator(mode="after")
    def _consistent(self) -> "Rule":
        self._check_kind()
        self._check_evidence()
        for name in [*self.minutes, *self.events, *self.observed_names, *self.parameters]:
            if not re.match(_NAME, name):
                raise ValueError(f"{name!r} is not a name; use lower-case letters, digits and _")
        for name, expression in self.minutes.items():
            allowed = "sum|count|avg|max" if self.classify else "sum|count|avg"  # a maximum has no sum over a window
            if not re.match(rf"^({allowed})\(.*\)$", expression.strip(), re.DOTALL):
                hint = "; medians of minutes don't add up to a window's (CONTRIBUTING.md, Medians)"
                hint = hint if re.match(r"\s*(median|quantile|percentile|approx_quantile)", expression) else ""
                raise ValueError(f"minutes.{name} must be one sum(...), count(...) or, for a gauge, avg(...){hint}")
        if self.finding.worst_by not in self.observed_names:
            raise ValueError(f"finding.worst_by names {self.finding.worst_by!r}, which is not observed")
        unknown = self.parameter_names - set(self.parameters)
        if unknown:
            raise ValueError(f"uses ${sorted(unknown)[0]}, which is not among its parameters")
        for grade in self.alert.grades:
            if grade.severity not in {own.severity for own in self.grades}:
                raise ValueError(f"alert has a grade {grade.severity.value!r} that the rule doesn't flag")
        return self

    def _check_evidence(self) -> None:
        for name in self.evidence_reads:
            if name not in self.window_observed:
                raise ValueError(f"finding.evidence reads window.{name}, which is not in window.observed")
        if any(_OF_WINDOW.search(text) for text in (*self.minutes.values(), *self.events.values())):
            raise ValueError("reads window.NAME outside finding.evidence; no window exists yet when minutes are counted")

    def _check_kind(self) -> None:
        if (self.window is None) == (self.classify is None):
            raise ValueError("needs either `window` with `minutes`, or `classify`")
        if self.classify and (self.events or self.finding.evidence or self.finding.measure):
            raise ValueError("has `classify`, so its SELECT says what counts: leave out events, evidence, measure")
        if self.window and not (self.finding.evidence and self.minute_columns):
            raise ValueError("has `window`, so it needs minutes (or events) and finding.evidence")
        if "client" in self.rule.subject and not (self.classify and "client" in self.classify.subject):
            raise ValueError("has the client as subject, which needs `classify`: name it in classify.subject")
        if set(self.minutes) & set(self.events):
            raise ValueError("gives the same name to a minute column and an event")
        if self.classify and not set(self.classify.summed) <= set(self.classify.observed):
            raise ValueError("sums a column that it doesn't observe")
        if self.classify and any(window_minutes(grade.window) > _STRETCH_MINUTES for grade in self.classify.grades):
            raise ValueError("has a grade over more than an hour, but a quiet hour ends a finding of an event rule")

    @property
    def id(self) -> str:
        """Return the rule's id."""
        return self.rule.id

    @property
    def grades(self) -> tuple[Grade, ...]:
        """Return the grades, the most severe that may hold first."""
        chosen = self.window or self.classify
        return chosen.grades if chosen else ()

    def with_grades(self, grades: tuple[Grade, ...]) -> "Rule":
        """Return the same rule with other grades."""
        kind = "window" if self.window else "classify"
        chosen = self.window or self.classify
        return self.model_copy(update={kind: chosen.model_copy(update={"grades": grades}) if chosen else None})

    @property
    def observed_names(self) -> tuple[str, ...]:
        """Return the names of what a finding reports."""
        if self.classify:
            return self.classify.observed
        return tuple(self.window.observed) if self.window else ()

    @property
    def window_observed(self) -> dict[str, str]:
        """Return what is computed over a flagged window, by name; nothing for an event rule."""
        return self.window.observed if self.window else {}

    @cached_property
    def reduced_columns(self) -> dict[str, str]:
        """Return what the reduction of all events computes for the rule, by name."""
        return self.minutes if self.classify else self.minute_columns

    @cached_property
    def minute_columns(self) -> dict[str, str]:
        """Return the aggregate expressions whose windows grades read: of events, or of an event rule's hits."""
        if self.classify:
            return {"events": EVENT_COUNT} | {name: f"sum({name})" for name in self.classify.summed}
        counted = {name: f"sum(CASE WHEN {predicate} THEN 1 ELSE 0 END)" for name, predicate in self.events.items()}
        return counted | self.minutes

    @property
    def evidence(self) -> str:
        """Return the predicate over `events` that names what counts against a windowed rule's subject."""
        named = self.finding.evidence or "FALSE"
        return self.events.get(named, named)

    @property
    def evidence_reads(self) -> tuple[str, ...]:
        """Return the observed values that the evidence is compared with (`window.NAME`), each once."""
        return tuple(dict.fromkeys(_OF_WINDOW.findall(self.evidence)))

    @property
    def evidence_sql(self) -> str:
        """Return the evidence's predicate over `events` beside one column `observed_NAME` for each `window.NAME`."""
        return _OF_WINDOW.sub(r"observed_\1", self.evidence)

    @cached_property
    def expressions(self) -> tuple[str, ...]:
        """Return every SQL expression of the rule, and its alerts' PromQL and minutes."""
        measure = [self.finding.measure] if self.finding.measure else []
        select = self.classify.selects if self.classify else [self.evidence]
        flags = [grade.flag for grade in self.grades]
        alerts = [text for grade in self.alert.grades for text in (grade.expr, grade.minutes) if text]
        counted = (*self.reduced_columns.values(), *self.minute_columns.values())
        return (*counted, *flags, *self.window_observed.values(), *select, *measure, *alerts)

    @cached_property
    def parameter_names(self) -> frozenset[str]:
        """Return the parameters that its expressions use."""
        return frozenset(name for text in self.expressions for name in re.findall(r"\$([a-z][a-z0-9_]*)", text))

    @cached_property
    def rolled(self) -> dict[str, tuple[str, str]]:
        """Return the window columns that flags and observed values use: name to (minute column, window)."""
        text = " ".join([*(g.flag for g in self.grades), *self.window_observed.values()])
        found: dict[str, tuple[str, str]] = {}
        for name in self.minute_columns:
            for length in re.findall(rf"\b{name}_([1-9][0-9]*[mh])\b", text):
                found[f"{name}_{length}"] = (name, length)
        return found

    @property
    def longest_window(self) -> int:
        """Return the longest window in minutes."""
        lengths = [length for _, length in self.rolled.values()] + [grade.window for grade in self.grades]
        return max(window_minutes(length) for length in lengths)

    def is_gauge(self, name: str) -> bool:
        """Whether a minute column is a mean, not a sum."""
        return (self.minute_columns | self.reduced_columns)[name].strip().startswith("avg(")
