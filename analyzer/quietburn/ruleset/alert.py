"""The alert and the runbook of a rule file."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from quietburn.ruleset.severity import Severity

_UNITS = {"s": 1, "m": 60, "h": 3600}


PREFIX = "LLMGateway"  # of every alert's name


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _in_prometheus_units(value: object) -> object:
    text = str(value)
    if not text[:-1].isdecimal() or text[-1:] not in _UNITS or int(text[:-1]) == 0:
        raise ValueError(f"{text!r} is not a duration; use whole seconds, minutes or hours, such as 90s or 5m")
    return value


Duration = Annotated[str, BeforeValidator(_in_prometheus_units)]


def seconds(duration: str) -> int:
    """Return a duration (`90s`, `5m`, `1h`) in seconds."""
    return int(duration[:-1]) * _UNITS[duration[-1]]


class AlertGrade(_Frozen):
    """The alert for one grade of a rule.

    `expr` is PromQL over the metrics contract; `$name` stands for a parameter as a number,
    `$name:le` for a bucket bound of that many milliseconds in seconds, `[$name:h]` for a range of
    that many hours. `description` is Prometheus's template; `<<name>>` stands for a parameter.

    `minutes` is one SELECT over `events` that returns the subject's columns and the minutes in
    which `expr` should hold, where these are fewer than the rule's flagged ones: a rule that reads
    the whole ledger may flag a minute for what came after it, and an alert can't.
    """

    severity: Severity
    expr: str
    minutes: str | None = None
    hold: Duration = Field(alias="for")
    keep_firing_for: Duration
    description: str = Field(max_length=500)


class Alert(_Frozen):
    """How live metrics tell a rule: one alert for each grade that pages or opens a ticket, or why none."""

    name: str | None = Field(default=None, pattern=rf"^{PREFIX}[A-Z][A-Za-z0-9]+$")
    group: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9-]*$")
    summary: str | None = Field(default=None, max_length=200, pattern=r"^[A-Z].*\.$")
    inference: str | None = Field(default=None, max_length=300)
    grades: tuple[AlertGrade, ...] = ()
    none: str | None = None

    @model_validator(mode="after")
    def _either(self) -> "Alert":
        whole = bool(self.name and self.group and self.summary and self.inference and self.grades)
        if whole == bool(self.none):
            raise ValueError("needs either name, group, summary, inference and grades, or `none` with the reason")
        if any(grade.severity is Severity.INFO for grade in self.grades):
            raise ValueError("an info finding can't have an alert")
        return self


class Runbook(_Frozen):
    """What the reader of an alert needs, in the order in which it is needed; Markdown.

    `graph_that_looks_fine` is the PromQL of the healthy-looking signal that the alert contradicts.
    """

    see: str
    means: str
    first: str
    never: str
    verify: str
    rollback: str
    graph_that_looks_fine: str
