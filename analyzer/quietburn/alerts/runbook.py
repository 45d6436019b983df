"""Runbook pages: one a rule with an alert, and an index."""

from collections.abc import Iterable

from quietburn.alerts import objective
from quietburn.alerts.groups import Options, runbook_file
from quietburn.alerts.promql import bound_expression, one_line
from quietburn.alerts.templates import rendered
from quietburn.report.printable import printable
from quietburn.ruleset.files import Values
from quietburn.ruleset.rule import Rule
from quietburn.ruleset.severity import Severity

INDEX = "README.md"


def runbook_pages(rules: Iterable[tuple[Rule, Values]], options: Options) -> dict[str, str]:
    """Return the pages by file name, the index among them."""
    rules = [(rule, values) for rule, values in rules if rule.alert.grades]
    listed = [(rule.alert.name or "", rule.rule.title, _severities(rule)) for rule, _ in rules]
    pages = {runbook_file(rule.alert.name or ""): runbook_page(rule, values) for rule, values in rules}
    for name, title, severities, template in _BESIDE:
        listed.append((name, title, list(severities)))
        pages[runbook_file(name)] = rendered(
            template, alert_name=name, objective=f"{options.objective * 100:.6g}", shares=_shares(options),
        )
    rows = [
        {"alert_name": name, "file": runbook_file(name), "title": title, "severities": severities}
        for name, title, severities in sorted(listed)
    ]
    return pages | {INDEX: rendered("runbook_index.md.j2", pages=rows)}


_BESIDE = (
    (objective.NAME, "The usable-answer rate is below its objective", ("page", "ticket"), "runbook_objective.md.j2"),
    (objective.SILENT_NAME, "No ledger lines are read", ("ticket",), "runbook_silent.md.j2"),
)


def _shares(options: Options) -> dict[str, str]:
    """Return the share without a usable answer above which each severity fires, in percent."""
    return {s.value: f"{objective.burning_share(s, options.objective) * 100:.4g}" for s in (Severity.PAGE, Severity.TICKET)}


def _severities(rule: Rule) -> list[str]:
    return [grade.severity.value for grade in rule.alert.grades]


def runbook_page(rule: Rule, values: Values) -> str:
    """Return the page of a rule with an alert."""
    return rendered(
        "runbook.md.j2",
        alert_name=rule.alert.name,
        title=rule.rule.title,
        rule_id=rule.id,
        severities=_severities(rule),
        summary=rule.alert.summary,
        runbook=rule.runbook,
        graphs=[one_line(expr) for expr in _graphs(rule, values)],
        false_positives=rule.rule.false_positives,
        known_gaps=rule.rule.known_gaps,
        parameters=[_parameter(rule, name, values) for name in rule.parameters],
    )


def _graphs(rule: Rule, values: Values) -> list[str]:
    """Return the healthy-looking graph and the one that contradicts it."""
    healthy = rule.runbook.graph_that_looks_fine
    return [healthy, bound_expression(rule.alert.grades[0].expr, values)]


def _parameter(rule: Rule, name: str, values: Values) -> dict[str, str]:
    value = values[name]
    return {
        "name": name,
        "value": "none" if value.number is None else f"{value.number:g} {rule.parameters[name].unit}",
        "meaning": rule.parameters[name].meaning,
        "origin": markdown_text(value.origin),
    }


def markdown_text(text: str) -> str:
    """Return a text in which no Markdown acts."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>()#+!|~" else char for char in printable(text))
