"""`quietburn rules` and `quietburn columns`: the catalogue, its pages, and what a rule's author needs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quietburn.ruleset.model import Rule

rules_app = typer.Typer(help="The rule catalogue.", no_args_is_help=True, rich_markup_mode=None)


@rules_app.command("list")
def rules_list(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List every rule: id, severity, what it finds."""
    from quietburn.ruleset.load import shipped_rules

    rules = shipped_rules()
    if as_json:
        listed = [{"id": r.id, "severity": r.rule.severity, "title": r.rule.title, "needs": list(r.rule.needs)} for r in rules]
        typer.echo(json.dumps(listed, indent=2))
        return
    wide = max(len(rule.id) for rule in rules)
    for rule in rules:
        typer.echo(f"{rule.id:<{wide}}  {rule.rule.severity:<6}  {rule.rule.title}")


@rules_app.command("show")
def rules_show(rule_id: Annotated[str, typer.Argument(metavar="ID", help="A rule's id.")]) -> None:
    """Show one rule: what it needs, its numbers, when it is wrong."""
    from quietburn.ruleset.load import choose, shipped_rules

    typer.echo(_shown(choose(shipped_rules(), [rule_id])[0]))


@rules_app.command("table")
def rules_table(
    out: Annotated[Path | None, typer.Option(help="Folder for the table and a page a rule; else the table is printed.")] = None,
) -> None:
    """Print the decision table as Markdown, or write it with a page a rule."""
    from quietburn.report.rulebook import TABLE, rulebook
    from quietburn.ruleset.load import shipped_rules

    pages = rulebook(shipped_rules())
    if out is None:
        typer.echo(pages[TABLE], nl=False)
        return
    _write(out, pages)


def columns(
    out: Annotated[Path | None, typer.Option(help="Folder for the page, columns.md; else it is printed.")] = None,
) -> None:
    """Print what every column of events means, as Markdown, or write it as a page."""
    from quietburn.report.columnpage import COLUMNS_PAGE, columns_markdown

    if out is None:
        typer.echo(columns_markdown(), nl=False)
        return
    _write(out, {COLUMNS_PAGE: columns_markdown()})


def _write(folder: Path, pages: "Mapping[str, str]") -> None:
    from quietburn.output import replace_file

    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        replace_file(folder / name, text)


def _shown(rule: "Rule") -> str:
    about = rule.rule
    lines = [
        f"{rule.id} (revision {about.revision}, {about.severity}): {about.title}",
        f"origin: {about.origin}",
        f"needs: {', '.join(about.needs)}" + "".join(f"; one of {' / '.join(group)}" for group in about.any_of),
        f"subject: {', '.join(about.subject)}",
        "parameters:",
    ]
    for name, parameter in rule.parameters.items():
        default = "none" if parameter.default is None else f"{parameter.default:g}"
        lab = "".join(f", {number:g} in the {lab} lab" for lab, number in parameter.lab.items())
        lines.append(f"  {name} = {default}{lab} ({parameter.unit}): {parameter.meaning}")
    lines.append("flagged when:")
    lines += [f"  {grade.severity}: {' '.join(grade.flag.split())}" for grade in rule.grades]
    lines.append("wrong when:")
    lines += [f"  {text}" for text in about.false_positives]
    lines += ["known gaps:", *(f"  {text}" for text in about.known_gaps)] if about.known_gaps else []
    return "\n".join(lines)
