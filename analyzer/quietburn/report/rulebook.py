"""The decision table and a page a rule, as Markdown, from the rule files."""

from collections.abc import Iterable

from quietburn.ruleset.rule import Parameter, Rule

TABLE = "decision-table.md"
_ESCAPED = str.maketrans({char: f"\\{char}" for char in "\\`*_{}[]<>#|~"})


def rulebook(rules: Iterable[Rule]) -> dict[str, str]:
    """Return the table and each rule's page, by path below docs/."""
    listed = sorted(rules, key=lambda rule: rule.id)
    return {TABLE: table_markdown(listed)} | {f"rules/{rule.id}.md": page_markdown(rule, listed) for rule in listed}


def table_markdown(rules: Iterable[Rule]) -> str:
    """Return the decision table: a row a rule."""
    lines = [
        "# Decision table", "",
        "Made by `quietburn rules table --out docs`. Each rule is one file under `rules/`; its page has the numbers, when it is",
        "wrong and what it can't see.", "",
        "| rule | what contradicts the healthy signal | severity | needs | alert |", "| --- | --- | --- | --- | --- |",
    ]
    for rule in rules:
        severities = ", ".join(dict.fromkeys(grade.severity.value for grade in rule.grades))
        alert = f"`{rule.alert.name}`" if rule.alert.name else "none"
        title = escaped(rule.rule.title)
        lines.append(f"| [{rule.id}](rules/{rule.id}.md) | {title} | {severities} | {_needs(rule)} | {alert} |")
    return "\n".join(lines) + "\n"


def page_markdown(rule: Rule, rules: Iterable[Rule]) -> str:
    """Return a rule's page; `rules` are all of them, since some may explain it."""
    about = rule.rule
    lines = [f"# {rule.id}", "", f"{escaped(about.title)}. Origin: {escaped(about.origin)}. Revision {about.revision}.", ""]
    lines += ["## When it is flagged", ""]
    lines += [f"- {grade.severity.value}, over {grade.window}: `{' '.join(grade.flag.split())}`" for grade in rule.grades]
    lines += ["", f"Subject: {', '.join(about.subject)}. Needs: {_needs(rule)}.", ""]
    if rule.parameters:
        lines += ["| parameter | default | unit | meaning |", "| --- | --- | --- | --- |"]
        lines += [
            f"| `{name}` | {_default(one)} | {escaped(one.unit)} | {escaped(one.meaning)} |"
            for name, one in rule.parameters.items()
        ]
        lines.append("")
    lines += _section("What to do first", [rule.runbook.first]) + _section("What not to do", [rule.runbook.never])
    lines += _section("When it is wrong", [f"- {escaped(text)}" for text in about.false_positives])
    if about.known_gaps:
        lines += _section("What it can't see", [f"- {escaped(text)}" for text in about.known_gaps])
    alert = f"`{rule.alert.name}`: {rule.alert.summary}" if rule.alert.name else f"None: {escaped(rule.alert.none or '')}"
    lines += _section("Alert", [alert])
    lines += _incidents(rule, [other.id for other in rules if rule.id in other.rule.explains])
    return "\n".join(lines).rstrip() + "\n"


def _incidents(rule: Rule, causes: list[str]) -> list[str]:
    """Return what a page says about a rule's part in incidents: likely or possible, what it explains, what explains it."""
    asked = rule.finding.corroborated
    told = [f"Likely if `{asked}`, otherwise possible."] if asked else []
    for words, names in (("Explains", rule.rule.explains), ("Explained by", causes)):
        told += [f"{words} {', '.join(f'[{name}]({name}.md)' for name in names)}."] if names else []
    return _section("In an incident", [f"- {line}" for line in told]) if told else []


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""]


def _needs(rule: Rule) -> str:
    groups = [" or ".join(group) for group in rule.rule.any_of]
    return ", ".join(f"`{name}`" for name in rule.rule.needs) + "".join(f"; {escaped(group)}" for group in groups)


def _default(parameter: Parameter) -> str:
    default = "configured" if parameter.default is None else f"{parameter.default:g}"
    return default + "".join(f" ({number:g} in the {lab} lab)" for lab, number in parameter.lab.items())


def escaped(text: str) -> str:
    """Return a text in which no Markdown acts, on one line."""
    return " ".join(text.split()).translate(_ESCAPED)
