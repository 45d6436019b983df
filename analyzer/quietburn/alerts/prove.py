"""The proof: an alert fires in the minutes in which the classifier says so, and only then.

The ledger becomes promtool input; expected are the classifier's flagged minutes put through
`for` and `keep_firing_for`; the real promtool judges every minute. Where an alert has minutes of
its own, they stand in the place of the flagged ones.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from quietburn.alerts.firing import firing_minutes, runs
from quietburn.alerts.groups import AlertRule, Group, Options, alerts_of, alerts_yaml, firing_labels
from quietburn.alerts.input_series import held_values
from quietburn.alerts.promql import bounds_in, longest_range_s, metrics_in
from quietburn.alerts.promtool import LabelSet, run_tests
from quietburn.alerts.templates import rendered
from quietburn.engine.base import Engine
from quietburn.engine.minutes import Reduction
from quietburn.evaluate.episodes import flagged_rows
from quietburn.metrics.rule_events import events_of
from quietburn.metrics.samples import EventRows, Frame, Series, ledger_series
from quietburn.ruleset.alert import AlertGrade, seconds
from quietburn.ruleset.files import Values, bind
from quietburn.ruleset.rule import Grade, Rule

_SETTLES = 20  # minutes within which `for` and `keep_firing_for` have forgotten what was before
_MAX_JUDGED = 24 * 60

Subject = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Expected:
    """What one alert should do over a frame: flagged and firing minutes by subject."""

    alert: AlertRule
    flagged: dict[Subject, list[int]]
    firing: dict[Subject, list[int]]

    @property
    def selector(self) -> str:
        """Return the selector of this alert's firing series."""
        severity = self.alert.labels["severity"]
        return f'ALERTS{{alertname="{self.alert.name}",alertstate="firing",severity="{severity}"}}'

    def labels_at(self, minute: int) -> list[str]:
        """Return the series that should stand at an evaluation."""
        return [firing_labels(self.alert, dict(s)) for s, minutes in sorted(self.firing.items()) if minute in set(minutes)]


@dataclass(frozen=True)
class Verdict:
    """What promtool said about one alert: evaluations by subject that agreed or did not."""

    rule: str
    severity: str
    flagged: int
    expected: frozenset[tuple[Subject, int]]
    actual: frozenset[tuple[Subject, int]]

    @property
    def missed(self) -> frozenset[tuple[Subject, int]]:
        """Evaluations at which the alert should have fired and didn't."""
        return self.expected - self.actual

    @property
    def false(self) -> frozenset[tuple[Subject, int]]:
        """Evaluations at which the alert fired and should not have."""
        return self.actual - self.expected

    @property
    def pages(self) -> int:
        """How often the alert started to fire."""
        by_subject: dict[Subject, list[int]] = {}
        for subject, minute in self.actual:
            by_subject.setdefault(subject, []).append(minute)
        return sum(len(runs(minutes)) for minutes in by_subject.values())


def frames(engine: Engine, longest: int) -> list[Frame]:
    """Return the spans to judge: stretches of activity, cut into days, each with its lead-in."""
    minutes = [row["minute"] for row in engine.select(
        "SELECT DISTINCT minute FROM events WHERE minute IS NOT NULL ORDER BY minute"
    ).to_pylist()]
    lead = tail = longest + _SETTLES
    stretches: list[tuple[int, int]] = []
    for minute in minutes:
        if stretches and minute - stretches[-1][1] <= lead + tail:
            stretches[-1] = (stretches[-1][0], minute)
        else:
            stretches.append((minute, minute))
    return [
        Frame(start - lead, start, min(start + _MAX_JUDGED - 1, last + tail))
        for first, last in stretches
        for start in range(first, last + tail + 1, _MAX_JUDGED)
    ]


def flagged_by_subject(
    engine: Engine, rule: Rule, grade: Grade, values: Values, reduction: Reduction
) -> dict[Subject, list[int]]:
    """Return the minutes in which one grade of a rule is flagged, whatever other grades say."""
    alone = rule.with_grades((grade,))
    return _by_subject(rule, flagged_rows(engine, alone, values, reduction))


def alert_minutes(
    engine: Engine, rule: Rule, alert: AlertGrade, values: Values, reduction: Reduction
) -> dict[Subject, list[int]]:
    """Return the minutes in which an alert's expression should hold: its own, else those flagged by its grade."""
    if alert.minutes is None:
        return flagged_by_subject(engine, rule, window_grade(rule, alert), values, reduction)
    ordered = ", ".join([*rule.rule.subject, "minute"])
    sql = f"SELECT {ordered} FROM ({bind(alert.minutes, values)}) ORDER BY {ordered}"
    return _by_subject(rule, engine.select(sql).to_pylist())


def _by_subject(rule: Rule, rows: Iterable[dict[str, Any]]) -> dict[Subject, list[int]]:
    found: dict[Subject, list[int]] = {}
    for row in rows:
        subject = tuple((key, row[key]) for key in rule.rule.subject if row[key] != "")
        found.setdefault(subject, []).append(row["minute"])
    return found


def prove(
    engine: Engine, rule: Rule, values: Values, reduction: Reduction, *, offset: int = 0,
    alerts: list[AlertRule] | None = None, keep: dict[str, str] | None = None,
) -> list[Verdict]:
    """Judge a rule's alerts on the engine's events, minute by minute, by the real promtool.

    `offset` in seconds samples the counters off the evaluation grid. `alerts` replaces what the
    rule says (for mutations); `keep` collects the generated promtool files by name.
    """
    options = Options()
    alerts = alerts or alerts_of(rule, values, options)
    expected = [
        (alert, grade, alert_minutes(engine, rule, grade, values, reduction))
        for alert, grade in zip(alerts, rule.alert.grades, strict=True)
    ]
    ledger = EventRows(engine)
    outcomes: dict[int, list[frozenset[tuple[Subject, int]]]] = {index: [] for index in range(len(alerts))}
    wanted: dict[int, list[frozenset[tuple[Subject, int]]]] = {index: [] for index in range(len(alerts))}
    for frame in frames(engine, reach_minutes(rule, alerts)):
        judged = [expect(alert, grade, flagged, frame) for alert, grade, flagged in expected]
        for index, (want, got) in enumerate(_judge(ledger, rule, values, judged, frame, offset, keep)):
            wanted[index].append(want)
            outcomes[index].append(got)
    return [
        Verdict(
            rule.id, alert.labels["severity"], sum(len(minutes) for minutes in flagged.values()),
            frozenset().union(*wanted[index]), frozenset().union(*outcomes[index]),
        )
        for index, (alert, _, flagged) in enumerate(expected)
    ]


def reach_minutes(rule: Rule, alerts: Iterable[AlertRule]) -> int:
    """Return how far back a rule's windows and its alerts' ranges look, in whole minutes."""
    return max(rule.longest_window, -(-longest_range_s(alert.expr for alert in alerts) // 60))


def window_grade(rule: Rule, alert: AlertGrade) -> Grade:
    """Return the grade of a rule that an alert stands for."""
    return next(grade for grade in rule.grades if grade.severity is alert.severity)


def expect(alert: AlertRule, grade: AlertGrade, flagged: dict[Subject, list[int]], frame: Frame) -> Expected:
    """Return what an alert should do over a frame."""
    inside = {subject: [m for m in minutes if frame.base < m <= frame.last] for subject, minutes in flagged.items()}
    hold, keep = seconds(grade.hold), seconds(grade.keep_firing_for)
    firing = {
        subject: firing_minutes(minutes, hold_s=hold, keep_s=keep, last=frame.last) for subject, minutes in inside.items()
    }
    return Expected(alert, inside, firing)


def _judge(
    ledger: EventRows, rule: Rule, values: Values, judged: list[Expected], frame: Frame, offset: int,
    keep: dict[str, str] | None,
) -> Iterator[tuple[frozenset[tuple[Subject, int]], frozenset[tuple[Subject, int]]]]:
    """Yield for each alert the expected and the actual firing evaluations of a frame."""
    series = series_for(ledger, rule, values, [expected.alert for expected in judged], frame)
    text = [
        {"selector": one.selector, "text": held_values(one, frame.minutes * 60, offset)} for one in series
    ]
    checks = [
        {"expr": expected.selector, "minute": minute - frame.base, "labels": expected.labels_at(minute)}
        for expected in judged
        for minute in range(frame.first, frame.last + 1)
    ]
    test = {"name": rule.id, "interval": "1s", "series": text, "checks": checks}
    rules_name, tests_name = f"{rule.id}.yaml", f"{rule.id}_{frame.base}_test.yaml"
    files = {
        rules_name: alerts_yaml([Group("proof", tuple(e.alert for e in judged))], Options(), []),
        tests_name: rendered("alerts_test.yaml.j2", header=[], rule_file=rules_name, tests=[test]),
    }
    if keep is not None:
        keep |= files
    differing = {(d.expr, d.minute + frame.base): d.got for d in run_tests(files, tests_name)}
    for expected in judged:
        want = frozenset((s, m) for s, minutes in expected.firing.items() for m in minutes if m >= frame.first)
        selector = expected.selector
        kept = frozenset((s, m) for s, m in want if (selector, m) not in differing)
        got = frozenset(
            (_subject(rule, labels), minute)
            for (expr, minute), sets in differing.items() if expr == selector for labels in sets
        )
        yield want, kept | got


def series_for(ledger: EventRows, rule: Rule, values: Values, alerts: Iterable[AlertRule], frame: Frame) -> list[Series]:
    """Return the series that a rule's alerts select, from a ledger's events."""
    expressions = [alert.expr for alert in alerts]
    cap = next((values[n].number for n, p in rule.parameters.items() if p.config_key == "hourly_token_cap"), None)
    return ledger_series(
        ledger, frame, metrics_in(expressions), bounds_in(expressions), token_cap=cap, events=events_of(rule, values)
    )


def _subject(rule: Rule, labels: LabelSet) -> Subject:
    found = dict(labels)
    return tuple((key, found[key]) for key in rule.rule.subject if key in found)
