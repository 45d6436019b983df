"""`quietburn backtest`: when each alert would have fired on these nights."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quietburn.analysis.request import request_from
from quietburn.cli import options
from quietburn.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from quietburn.alerts.replay import Backtest


class BacktestFormat(StrEnum):
    """Formats of `backtest`."""

    TEXT = "text"
    JSON = "json"


def backtest(
    ledgers: options.Ledgers = None,
    output_format: Annotated[BacktestFormat, typer.Option("--format", help="How to print.")] = BacktestFormat.TEXT,
    keep: Annotated[Path | None, typer.Option(help="Keep the generated promtool files in this folder.")] = None,
    since: options.Since = None,
    until: options.Until = None,
    last_night: options.LastNight = False,
    tz: options.Zone = None,
    dialect: options.Dialect = None,
    map_file: options.MapFile = None,
    set_: options.Set = None,
    only: options.Only = None,
    skip: options.Skip = None,
    config: options.ConfigFile = None,
) -> None:
    """Replay ledgers through the alerts with promtool: pages a night, and whether the classifier agrees."""
    from quietburn.alerts.promtool import find_promtool
    from quietburn.alerts.replay import backtest as run
    from quietburn.analysis.run import analyzing

    find_promtool()
    request = request_from(
        since=since, until=until, last_night=last_night, tz=tz, dialect=dialect, map_file=map_file,
        settings=set_, only=only, skip=skip, config=options.configured(config),
    )
    kept: dict[str, str] = {}
    with analyzing(ledgers or [], request) as analysis:
        result = run(analysis.engine, analysis.rules, kept)
    if keep is not None:
        _keep(kept, keep)
    sys.stdout.write(result.model_dump_json(indent=2) + "\n" if output_format is BacktestFormat.JSON else _table(result))
    if result.errored:
        failed = ", ".join(result.errored)
        sys.stderr.write(f"quietburn: {len(result.errored)} rules failed ({failed}); their alerts were not evaluated.\n")
    if not result.agrees:
        sys.stderr.write("quietburn: an alert and its rule disagree; see the columns missed and false.\n")
    if result.errored or not result.agrees:
        raise typer.Exit(ExitStatus.UNDECIDED)


def _keep(files: dict[str, str], folder: Path) -> None:
    from quietburn.cli.written import replace_file
    from quietburn.records.inputs import os_words

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            replace_file(folder / name, text)
    except OSError as problem:
        raise UsageError(f"--keep {folder}: can't be written ({os_words(problem)}).") from None


def _table(result: "Backtest") -> str:
    head = ("rule", "severity", "pages", "a night", "flagged min", "firing min", "matched", "missed", "false")
    rows = [
        (a.rule, a.severity, str(a.pages), f"{a.pages_a_night:.2g}", str(a.minutes_flagged), str(a.minutes_firing),
         str(a.matched), str(a.missed), str(a.false))
        for a in sorted(result.alerts, key=lambda a: (-a.pages, a.rule, a.severity))
    ]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [_row(row, widths) for row in (head, *rows)]
    nights = "1 night" if result.nights == 1 else f"{result.nights} nights"
    lines += ["", f"over {nights}, by promtool; minutes are summed over subjects"]
    lines += [f"not evaluated: {rule} (missing {', '.join(missing)})" for rule, missing in result.not_evaluated.items()]
    lines += [f"failed: {rule} ({problem})" for rule, problem in result.errored.items()]
    lines += [f"no alert: {rule} ({reason})" for rule, reason in result.without_alert.items()]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...], widths: list[int]) -> str:
    texts = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(cells, widths, strict=True))]
    return "  ".join(texts).rstrip()
