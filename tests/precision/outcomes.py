"""What an analysis says about a night, in seconds from the night's start."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from quietburn.report.model import Report, WindowReport
from tests.precision.nights import Night


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Span(_Frozen):
    """A span of the night, in seconds from its start."""

    start: float
    end: float

    @property
    def length(self) -> float:
        """Return how long it is."""
        return self.end - self.start


class Found(_Frozen):
    """One finding: what it is about, and when its alert holds."""

    rule: str
    severity: str
    subject: dict[str, str]
    window: Span
    alert: Span


class Told(_Frozen):
    """One incident: its title and its cause's rule."""

    rule: str
    title: str
    severity: str
    window: Span


class Outcome(_Frozen):
    """What was true of a night (`fault` is None where it was healthy), and what was said about it."""

    night: Night
    length: float
    fault: Span | None
    findings: tuple[Found, ...]
    incidents: tuple[Told, ...]
    not_evaluated: tuple[str, ...]
    notices: tuple[str, ...]
    duplicates: int
    reshipped: int

    @property
    def raised(self) -> list[Found]:
        """Return the findings that wake somebody or lie on their desk."""
        return [finding for finding in self.findings if finding.severity != "info"]


def outcome_of(night: Night, report: Report, fault: Span | None, t0: float) -> Outcome:
    """Return the outcome of a night that began at t0 (Unix seconds)."""

    def span(window: WindowReport) -> Span:
        return Span(start=_seconds(window.start) - t0, end=_seconds(window.end) - t0)

    last = report.ledger.last_ts
    return Outcome(
        night=night,
        length=_seconds(last) - t0 if last else 0.0,
        fault=fault,
        findings=tuple(
            Found(rule=f.rule, severity=f.severity, subject=f.subject, window=span(f.window), alert=span(f.alert_window))
            for f in report.findings
        ),
        incidents=tuple(Told(rule=i.rule, title=i.title, severity=i.severity, window=span(i.window)) for i in report.incidents),
        not_evaluated=tuple(each.rule for each in report.not_evaluated),
        notices=tuple(report.notices),
        duplicates=report.ledger.duplicates,
        reshipped=report.ledger.reshipped,
    )


def _seconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()
