"""`quietburn rules` and `quietburn columns`: the catalogue, its pages, and what a rule's author needs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quietburn.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quietburn.ruleset.rule import Rule

rules_app = typer.Typer(help="The rule catalogue.", no_args_is_help=True, rich_markup_mode=None)


@rules_app.command("list")
def rules_list(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List every rule: id, severity, what it finds."""
    from quietburn.ruleset.files import shipped_rules

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
    from quietburn.ruleset.files import choose, shipped_rules

    typer.echo(_shown(choose(shipped_rules(), [rule_id])[0]))


@rules_app.command("table")
def rules_table(
    out: Annotated[Path | None, typer.Option(help="Folder for the table and rule pages (default: print the table).")] = None,
) -> None:
    """Print the decision table as Markdown, or write it with a page a rule."""
    from quietburn.report.rulebook import TABLE, rulebook
    from quietburn.ruleset.files import shipped_rules

    pages = rulebook(shipped_rules())
    if out is None:
        typer.echo(pages[TABLE], nl=False)
        return
    _write(out, pages)


def columns(
    out: Annotated[Path | None, typer.Option(help="Folder for the page, columns.md (default: print it).")] = None,
) -> None:
    """Print what every column of events means, as Markdown, or write it as a page."""
    from quietburn.report.columnpage import COLUMNS_PAGE, columns_markdown

    if out is None:
        typer.echo(columns_markdown(), nl=False)
        return
    _write(out, {COLUMNS_PAGE: columns_markdown()})


def _write(folder: Path, pages: "Mapping[str, str]") -> None:
    from quietburn.cli.written import replace_file

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


@rules_app.command("new")
def rules_new(
    rule_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the new rule, such as streams-slowed.")],
    of_events: Annotated[bool, typer.Option("--events", help="Make an event rule ([classify]), not a windowed one.")] = False,
) -> None:
    """Make the files of a new rule in a checkout: an example that works, with the places to fill in."""
    from quietburn.authoring.checkout import checkout
    from quietburn.authoring.skeleton import new_rule

    place = checkout()
    for path in new_rule(place, rule_id, of_events=of_events):
        typer.echo(f"wrote {place.name(path)}")
    typer.echo(
        f"Next: python fixtures/rules/make.py {rule_id}; quietburn rules test {rule_id}; quietburn rules check.\n"
        "CONTRIBUTING.md explains each step."
    )


@rules_app.command("check")
def rules_check(
    path: Annotated[Path | None, typer.Argument(metavar="[DIR|FILE]", help="Rule files (default: the shipped rules).")] = None,
) -> None:
    """Say what is wrong in rule files and, for those of a checkout, what is missing around them; exit 1 where anything is."""
    from quietburn.authoring.checking import check_checkout, check_files, check_whole, load_all, rule_paths
    from quietburn.authoring.checkout import checkout
    from quietburn.common.resources import rules_dir

    named = path or rules_dir()
    rules, problems = load_all(rule_paths(named))
    problems += check_files(rules)
    own = {file: rule for file, rule in rules.items() if file.resolve().parent == rules_dir().resolve()}
    if own:
        place = checkout()
        problems += check_checkout(place, own.values())
        everything, unreadable = load_all(rule_paths(rules_dir()))
        problems += [] if unreadable else check_whole(place, everything.values())
    _say_all([str(problem) for problem in problems], f"{_rules(len(rules))}: nothing to fix.")


@rules_app.command("test")
def rules_test(
    rule_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Rule id (default: every rule).")] = None,
    day: Annotated[bool, typer.Option(help="With an ID: also test the planted fault (takes a minute).")] = True,
) -> None:
    """Try rules on their fixtures in a checkout: expected findings, flips, edges, the planted fault; exit 1 where any differs."""
    from quietburn.authoring.checking import stale_fixtures
    from quietburn.authoring.checkout import checkout
    from quietburn.authoring.trying import differences, on_the_day
    from quietburn.ruleset.files import choose, shipped_rules

    place = checkout()
    chosen = choose(shipped_rules(), [rule_id] if rule_id else [])
    said = [str(problem) for problem in stale_fixtures(place, [rule.id for rule in chosen])]
    for rule in chosen if not said else ():
        said += [f"{rule.id}: {words}" for words in differences(rule, place.fixtures(rule.id))]
    if rule_id and day and not said and (words := on_the_day(place, chosen[0].id)):
        said.append(f"{rule_id}: its fault in the healthy day:\n{words}")
    _say_all(said, f"{rule_id or _rules(len(chosen))}: passed.")


@rules_app.command("lock")
def rules_lock() -> None:
    """Write rules.lock for a release: the meaning of each rule under its revision. Refused where a revision must be raised."""
    from quietburn.authoring.checkout import checkout
    from quietburn.cli.written import replace_file
    from quietburn.errors import UsageError
    from quietburn.ruleset.files import shipped_rules
    from quietburn.ruleset.lock import LOCK_FILE, lock_text, read_lock, unraised

    place, rules = checkout(), shipped_rules()
    path = place.rules / LOCK_FILE
    refused = unraised(rules, read_lock(path))
    if refused:
        raise UsageError("; ".join(f"rules/{rule_id}.toml: rule.revision {words}" for rule_id, words in refused.items()) + ".")
    replace_file(path, lock_text(rules))
    typer.echo(f"wrote {place.name(path)}: {_rules(len(rules))}.")


def _rules(number: int) -> str:
    return f"{number} rule{'s' * (number != 1)}"


def _say_all(problems: list[str], fine: str) -> None:
    """Print each problem on a line of its own and exit 1, or say that all is fine."""
    for problem in problems:
        typer.echo(problem)
    if problems:
        typer.echo(f"{len(problems)} to fix.", err=True)
        raise typer.Exit(ExitStatus.FINDINGS)
    typer.echo(fine)
