"""`quietburn nights`: what a store holds."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from quietburn.commands import options


def nights(
    db: Annotated[Path, typer.Option(help="The store.")],
    tz: options.Zone = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the nights of a store: noon to noon, with events, span and files."""
    from quietburn.nights import nights as run
    from quietburn.report.printable import printable
    from quietburn.timerange import zone_of

    found = run(db, zone_of(tz))
    if as_json:
        sys.stdout.write(json.dumps([night.model_dump(mode="json") for night in found], indent=2) + "\n")
        return
    for night in found:
        span = f"{night.first_ts} to {night.last_ts}"
        line = f"{night.night}  {night.events:>12,} events  {span}  {', '.join(night.files)}"
        sys.stdout.write(printable(line) + "\n")
    if not found:
        sys.stdout.write("The store holds no events with a time.\n")
