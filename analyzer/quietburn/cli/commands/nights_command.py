"""`quietburn nights`: what a store holds."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quietburn.common.trust import is_file
from quietburn.errors import InputError
from quietburn.records.inputs import label_of

if TYPE_CHECKING:
    from quietburn.engine.store_nights import StoredFile


class NightsFormat(StrEnum):
    """Formats of `nights`."""

    TEXT = "text"
    JSON = "json"


def nights(
    db: Annotated[Path, typer.Option("--db", help="DuckDB file written by `analyze --db`.")],
    output_format: Annotated[NightsFormat, typer.Option("--format", help="Format of the list.")] = NightsFormat.TEXT,
) -> None:
    """List what a store holds: each ledger with its span and what became of its lines."""
    if not is_file(db):
        shown = label_of(str(db))
        raise InputError(f"--db {shown}: no such file. `quietburn analyze LEDGER --db {shown}` creates one.")
    from quietburn.engine.store_nights import stored_files

    files = stored_files(db)
    if output_format is NightsFormat.JSON:
        from quietburn.report.printable import inert_json

        typer.echo(inert_json(json.dumps([file.as_dict() for file in files], indent=2)))
        return
    for line in _table(files):
        typer.echo(line)


def _table(files: list["StoredFile"]) -> list[str]:
    from quietburn.report.printable import printable

    if not files:
        return ["The store contains no ledger."]
    rows = [("ledger", "dialect", "from", "to", "lines", "events", "refused")]
    rows += [
        (printable(f.path), f.dialect, f.first_ts or "-", f.last_ts or "-", f"{f.lines:,}", f"{f.events:,}", f"{f.quarantined:,}")
        for f in files
    ]
    wide = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["  ".join(_aligned(cell, wide[place], place) for place, cell in enumerate(row)).rstrip() for row in rows]


_TEXTS = 4  # columns before the numbers


def _aligned(cell: str, width: int, place: int) -> str:
    return cell.ljust(width) if place < _TEXTS else cell.rjust(width)
