"""From rules to alert rules: groups of alerts as plain data, and their YAML."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from quietburn.alerts import objective
from quietburn.alerts.promql import bound_expression, described
from quietburn.alerts.templates import prometheus_literal, rendered
from quietburn.metrics.contract import LEDGER_LINES
from quietburn.metrics.samples import escape_label
from quietburn.ruleset.alert import AlertGrade
from quietburn.ruleset.files import Values
from quietburn.ruleset.rule import Rule
from quietburn.ruleset.severity import Severity

DEFAULT_LABELS = {Severity.PAGE: "critical", Severity.TICKET: "warning"}


@dataclass(frozen=True)
class Options:
    """How the alerts are labelled and linked; `objective` is the usable-answer objective, 0 to 1."""

    target: str = "prometheus"
    runbook_url: str | None = None
    dashboard_url: str | None = None
    team: str | None = None
    objective: float = 0.99
    severity_labels: Mapping[Severity, str] = field(default_factory=lambda: DEFAULT_LABELS)


@dataclass(frozen=True)
class AlertRule:
    """One alerting rule as Prometheus takes it."""

    name: str
    expr: str
    hold: str
    keep_firing_for: str
    labels: dict[str, str]
    annotations: dict[str, str]


@dataclass(frozen=True)
class Record:
    """One recording rule."""

    record: str
    expr: str


@dataclass(frozen=True)
class Group:
    """A group: recording rules first, then alerts."""

    name: str
    alerts: tuple[AlertRule, ...]
    records: tuple[Record, ...] = ()


def runbook_file(alert_name: str) -> str:
    """Return the name of an alert's runbook page: its own, so that a page in the night can be found by hand."""
    return f"{alert_name}.md"


def build_groups(rules: Iterable[tuple[Rule, Values]], options: Options) -> list[Group]:
    """Return the groups of all rules with an alert, one a theme, and those that stand beside them."""
    by_theme: dict[str, list[AlertRule]] = {}
    for rule, values in rules:
        if rule.alert.group is not None:
            by_theme.setdefault(rule.alert.group, []).extend(alerts_of(rule, values, options))
    groups = [Group(f"quietburn-{name}", tuple(alerts)) for name, alerts in sorted(by_theme.items())]
    return [*groups, objective_group(options), ledger_group(options)]


def alerts_of(rule: Rule, values: Values, options: Options) -> list[AlertRule]:
    """Return a rule's alerts, one a grade."""
    return [
        AlertRule(
            name=rule.alert.name or "",
            expr=bound_expression(grade.expr, values),
            hold=grade.hold,
            keep_firing_for=grade.keep_firing_for,
            labels=labels(grade.severity, rule.id, options),
            annotations=_annotations(rule, values, grade, options),
        )
        for grade in rule.alert.grades
    ]


def labels(severity: Severity, rule_id: str, options: Options) -> dict[str, str]:
    """Return an alert's own labels; none of them holds a changing value."""
    made = {"severity": options.severity_labels[severity], "rule_id": rule_id}
    return made | ({"team": prometheus_literal(options.team)} if options.team else {})


def _annotations(rule: Rule, values: Values, grade: AlertGrade, options: Options) -> dict[str, str]:
    command = f"quietburn analyze LEDGER --only {rule.id} --since 15m"
    description = f"{described(grade.description, values)} Inference: {rule.alert.inference} Run: {command}"
    return annotations(rule.alert.summary or "", description, runbook_file(rule.alert.name or ""), options)


def annotations(summary: str, description: str, runbook: str, options: Options) -> dict[str, str]:
    """Return an alert's annotations; links only where they are known, never empty."""
    made = {"summary": summary, "description": description}
    if options.runbook_url:
        made["runbook_url"] = prometheus_literal(f"{options.runbook_url.rstrip('/')}/{runbook}")
    else:
        made["runbook"] = f"runbook/{runbook}"
    if options.dashboard_url:
        made["dashboard_url"] = prometheus_literal(options.dashboard_url)
    return made


def objective_group(options: Options) -> Group:
    """Return the two rates as records, and the alerts on the objective: the page, then the ticket."""
    made = [
        AlertRule(
            burn.name, burn.expr, burn.hold, burn.keep_firing_for,
            labels(burn.severity, objective.RULE_ID, options) | {"window": burn.window},
            annotations(burn.summary, burn.description, runbook_file(burn.name), options),
        )
        for burn in objective.burn_alerts(options.objective)
    ]
    records = tuple(Record(name, expr) for name, expr in objective.records())
    return Group("quietburn-objective", tuple(made), records)


def ledger_group(options: Options) -> Group:
    """Return the companion: without lines read, every other alert here is blind."""
    alert = AlertRule(
        objective.SILENT_NAME,
        # What was not scraped ten minutes ago has not been silent for ten minutes.
        f"absent({LEDGER_LINES})\nor\n(\n  (sum(increase({LEDGER_LINES}[10m])) < 0.5)\n"
        f"  and on () (sum({LEDGER_LINES} offset 10m) >= 0)\n)",
        "2m", "5m", labels(Severity.TICKET, objective.SILENT_ID, options),
        annotations(
            "No line of the gateway's ledger was read for ten minutes.",
            "Nothing was read from the ledger for ten minutes, so all other quietburn alerts are blind. Inference: the "
            "exporter stopped, or the gateway stopped logging. Run: systemctl status quietburn-export",
            runbook_file(objective.SILENT_NAME), options,
        ),
    )
    return Group("quietburn-ledger", (alert,))


def firing_labels(alert: AlertRule, subject: Mapping[str, str]) -> str:
    """Return the series that stands while an alert fires for a subject, in exposition form."""
    labels = {"alertname": alert.name, "alertstate": "firing", **alert.labels, **subject}
    listed = ",".join(f'{name}="{escape_label(value)}"' for name, value in sorted(labels.items()))
    return f"ALERTS{{{listed}}}"


def alerts_yaml(groups: list[Group], options: Options, header: list[str]) -> str:
    """Return the rule file for the asked target."""
    return rendered("alerts.yaml.j2", groups=groups, target=options.target, header=header)
