"""The model of a rule file: metadata, parameters, what a minute counts, when a window is flagged."""

import re
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from quietburn.ledger.events import BY_NAME, STORED_AS
from quietburn.ruleset.alert import Alert, Runbook
from quietburn.ruleset.severity import Severity

_WINDOW = re.compile(r"^([1-9][0-9]*)(m|h)$")
_NAME = r"^[a-z][a-z0-9_]*$"
Tag = Literal["prefix", "queue", "capacity", "probes", "tokens", "deadline", "answers", "retries", "failover", "readiness"]


def window_minutes(length: str) -> int:
    """Return a window's length (`5m`, `1h`) in minutes."""
    match = _WINDOW.match(length)
    if not match:
        raise ValueError(f"{length!r} is not a window; write whole minutes or hours, such as 5m or 1h")
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
    are there.
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
    subject: tuple[Literal["route", "backend"], ...]
    aliases: tuple[str, ...] = ()
    known_gaps: tuple[str, ...] = ()
    false_positives: tuple[str, ...]

    @model_validator(mode="after")
    def _known_fields(self) -> "About":
        for field in self.fields:
            if STORED_AS.get(field, field) not in BY_NAME:
                raise ValueError(f"needs names {field!r}, which is no column of the ledger")
        return self

    @property
    def fields(self) -> tuple[str, ...]:
        """Return every field that the rule may read, alternatives and optional ones among them."""
        alternatives = (name for group in self.any_of for entry in group for name in entry.split("+"))
        return tuple(dict.fromkeys((*self.needs, *alternatives, *self.optional)))


class Parameter(_Frozen):
    """A number that the user may set; without a default it must be configured or stays NULL.

    `lab` holds defaults that are true only in the ledgers of a seed's lab, by dialect.
    """

    default: float | None = None
    lab: dict[str, float] = Field(default_factory=dict)
    required: bool = False
    minimum: float | None = None
    config_key: str | None = None
    unit: str
    meaning: str


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


class FindingText(_Frozen):
    """What counts against the subject, and the sentences of a finding (Jinja over observed values)."""

    evidence: str
    inference: str = Field(max_length=600)
    action: str = Field(max_length=600)
    worst_by: str
    measure: str | None = None  # an expression over the evidence, reported as its median
    measure_name: str | None = None


class Rule(_Frozen):
    """A rule file."""

    rule: About
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    minutes: dict[str, str]
    window: WindowRule
    finding: FindingText
    alert: Alert
    runbook: Runbook

    @model_validator(mode="after")
    def _consistent(self) -> "Rule":
        for name in [*self.minutes, *self.window.observed, *self.parameters]:
            if not re.match(_NAME, name):
                raise ValueError(f"{name!r} is not a name; write lower-case letters, digits and _")
        for name, expression in self.minutes.items():
            if not re.match(r"^(sum|count|avg)\(.*\)$", expression.strip(), re.DOTALL):
                raise ValueError(f"minutes.{name} must be one sum(...), count(...) or, for a gauge, avg(...)")
        if self.finding.worst_by not in self.window.observed:
            raise ValueError(f"finding.worst_by names {self.finding.worst_by!r}, which is not observed")
        unknown = self.parameter_names - set(self.parameters)
        if unknown:
            raise ValueError(f"uses ${sorted(unknown)[0]}, which is not among its parameters")
        for grade in self.alert.grades:
            if grade.severity not in {own.severity for own in self.window.grades}:
                raise ValueError(f"alert has a grade {grade.severity.value!r} that the window doesn't flag")
        return self

    @property
    def id(self) -> str:
        """Return the rule's id."""
        return self.rule.id

    @cached_property
    def expressions(self) -> tuple[str, ...]:
        """Return every SQL expression of the rule."""
        measure = [self.finding.measure] if self.finding.measure else []
        flags = [grade.flag for grade in self.window.grades]
        alerts = [grade.expr for grade in self.alert.grades]
        return (*self.minutes.values(), *flags, *self.window.observed.values(), self.finding.evidence, *measure, *alerts)

    @cached_property
    def parameter_names(self) -> frozenset[str]:
        """Return the parameters that its expressions use."""
        return frozenset(name for text in self.expressions for name in re.findall(r"\$([a-z][a-z0-9_]*)", text))

    @cached_property
    def rolled(self) -> dict[str, tuple[str, str]]:
        """Return the window columns that flags and observed values use: name to (minute column, window)."""
        text = " ".join([*(g.flag for g in self.window.grades), *self.window.observed.values()])
        found: dict[str, tuple[str, str]] = {}
        for name in self.minutes:
            for length in re.findall(rf"\b{name}_([1-9][0-9]*[mh])\b", text):
                found[f"{name}_{length}"] = (name, length)
        return found

    @property
    def longest_window(self) -> int:
        """Return the longest window in minutes."""
        lengths = [length for _, length in self.rolled.values()] + [grade.window for grade in self.window.grades]
        return max(window_minutes(length) for length in lengths)

    def is_gauge(self, name: str) -> bool:
        """Whether a minute column is a mean, not a sum."""
        return self.minutes[name].strip().startswith("avg(")
