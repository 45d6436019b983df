"""Options that several commands share, once."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quietburn.errors import ConfigError

if TYPE_CHECKING:
    from quietburn.common.config import Config

Ledgers = Annotated[list[str] | None, typer.Argument(help="JSONL files, folders of them, or - for standard input.")]
Since = Annotated[str | None, typer.Option(help="Read events from this time on: ISO, or back from now (24h, 15m).")]
Until = Annotated[str | None, typer.Option(help="Read events before this time: ISO, or back from now.")]
LastNight = Annotated[bool, typer.Option("--last-night", help="Read from 18:00 yesterday to 09:00 today, local time.")]
Zone = Annotated[str | None, typer.Option(help="Time zone for times without one, such as Europe/Berlin (default: UTC).")]
Dialect = Annotated[str | None, typer.Option(help="Read every line as this dialect instead of detecting it.")]
MapFile = Annotated[Path | None, typer.Option("--map", help="Mapping file for a custom log format.")]
Set = Annotated[list[str] | None, typer.Option("--set", help="Set a rule parameter: RULE.PARAMETER=NUMBER.")]
Only = Annotated[list[str] | None, typer.Option(help="Evaluate only this rule (repeatable).")]
Skip = Annotated[list[str] | None, typer.Option(help="Skip this rule (repeatable).")]
Join = Annotated[str | None, typer.Option(help="Fill in fields from a second log of the same traffic: request_id.")]
ConfigFile = Annotated[Path | None, typer.Option(help="Configuration file (default: nearest quietburn.toml).")]
MaxQuarantined = Annotated[str, typer.Option(help="Exit 3 if more lines than this were refused.")]
Store = Annotated[Path | None, typer.Option("--db", help="DuckDB file that keeps events; analyzed if no ledger is given.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only errors to standard error.")]


def configured(path: Path | None, *, quiet: bool = False, whole: bool = False) -> "Config":
    """Return the configuration that is named, or found upward. Raises ConfigError.

    One found that is not to be trusted is said, and passed over. With `whole` the call is refused:
    what a job is judged by must not be left out.
    """
    from quietburn.common.config import load_config

    found = load_config(path)
    for problem in found.not_taken:
        if whole:
            raise ConfigError(problem)
        if not quiet:
            say(problem)
    return found


def say(text: str) -> None:
    """Write one line to standard error, inert whatever it holds."""
    from quietburn.report.printable import printable

    with suppress(OSError, AttributeError):  # a standard error that is full, closed or not there changes no exit status
        sys.stderr.write(f"quietburn: {printable(text)}\n")
