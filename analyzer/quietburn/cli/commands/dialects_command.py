"""`quietburn dialects`: which logs are read without options, and what each gives."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from quietburn.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quietburn.dialects.mapping import Alternative, Mapping

dialects_app = typer.Typer(help="Log formats that are read without options.", no_args_is_help=True, rich_markup_mode=None)


@dialects_app.command("list")
def dialects_list(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List every dialect: name and what writes it."""
    from quietburn.dialects.mapping import shipped_mappings

    mappings = shipped_mappings()
    if as_json:
        listed = [{"name": m.dialect.name, "title": m.dialect.title, "columns": sorted(m.columns)} for m in mappings]
        typer.echo(json.dumps(listed, indent=2))
        return
    wide = max(len(mapping.dialect.name) for mapping in mappings)
    for mapping in mappings:
        typer.echo(f"{mapping.dialect.name:<{wide}}  {mapping.dialect.title}")


@dialects_app.command("show")
def dialects_show(name: Annotated[str, typer.Argument(metavar="ID", help="A dialect's name.")]) -> None:
    """Show one dialect: how it is recognised, where each column comes from, what it can't tell."""
    from quietburn.common.messages import nearest
    from quietburn.dialects.mapping import shipped_mappings

    by_name = {mapping.dialect.name: mapping for mapping in shipped_mappings()}
    if name not in by_name:
        raise UsageError(f"no dialect {name!r}{nearest(name, by_name)}; use one of: {', '.join(sorted(by_name))}.")
    typer.echo("\n".join(_shown(by_name[name])))


def _shown(mapping: "Mapping") -> "Iterator[str]":
    about, asked = mapping.dialect, mapping.recognise
    yield f"{about.name}: {about.title}"
    yield "recognized by:"
    yield from (f"  {key}" for key in asked.all)
    if asked.any:
        yield f"  any of {', '.join(asked.any)}"
    yield from (f"  {key} being one of {', '.join(values)}" for key, values in asked.values.items())
    if asked.none:
        yield f"  none of {', '.join(asked.none)}"
    if mapping.events:
        yield f"events: each item of {mapping.events.path}"
    yield "columns:"
    wide = max(len(column) for column in mapping.columns)
    for column, ways in mapping.columns.items():
        for place, way in enumerate(ways):
            yield f"  {column if place == 0 else '':<{wide}}  {'' if place == 0 else 'else '}{_way(way)}"
    yield from (f"assumed: {column} = {number:g}" for column, number in mapping.assumed.items())
    if mapping.cannot_tell:
        yield "can't tell:"
        yield from (f"  {rule}: {reason}" for rule, reason in mapping.cannot_tell.items())
    if about.notes:
        yield "notes:"
        yield from (f"  {note}" for note in about.notes)


def _way(way: "Alternative") -> str:
    from quietburn.dialects.transforms import TRANSFORMS

    text = str(way.value).lower() if isinstance(way.value, bool) else f"{way.value}" if way.value is not None else ""
    text = text or (", ".join(way.sources) if way.transform else " or ".join(way.sources))
    if way.transform:
        text += f" ({TRANSFORMS[way.transform].meaning})"
    text += f" in {way.unit}" if way.unit else ""
    text += "".join(f", where {key} is {' or '.join(values)}" for key, values in way.when.items())
    text += f", {' and '.join(repr(value) for value in way.absent)} being none" if way.absent else ""
    return text + (f", {' and '.join(repr(value) for value in way.weak)} proving nothing" if way.weak else "")
