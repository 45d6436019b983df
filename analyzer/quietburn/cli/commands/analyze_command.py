"""`quietburn analyze`: the main job."""

import io
import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quietburn.analysis.request import request_from
from quietburn.cli import options
from quietburn.cli.options import say
from quietburn.cli.outputs import refuse_overlaps, refuse_stdout_twice
from quietburn.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from quietburn.analysis.run import Request
    from quietburn.report.model import Report


class ReportFormat(StrEnum):
    """Formats of `analyze`."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    GITHUB = "github"


class FailOn(StrEnum):
    """From which severity on findings end in exit status 1."""

    PAGE = "page"
    TICKET = "ticket"
    INFO = "info"
    NEVER = "never"


def analyze(
    ledgers: options.Ledgers = None,
    output_format: Annotated[ReportFormat, typer.Option("--format", help="Format of the report.")] = ReportFormat.TEXT,
    output: Annotated[Path | None, typer.Option(help="Write the report to this file instead of standard output.")] = None,
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
    db: options.Store = None,
    cpu: Annotated[Path | None, typer.Option(help="CPU use: CSV (ts,cpu_pct[,backend]) or a query_range response.")] = None,
    join: options.Join = None,
    fail_on: Annotated[FailOn, typer.Option(help="Exit 1 on findings of this severity or above.")] = FailOn.NEVER,
    max_quarantined: options.MaxQuarantined = "5%",
    quarantine: Annotated[Path | None, typer.Option(help="Write the place and reason of each refused line here.")] = None,
    show_raw: Annotated[bool, typer.Option("--show-raw", help="Include the text of refused lines; may contain prompts.")] = False,
    anonymize: Annotated[bool, typer.Option("--anonymize", help="Replace clients and tenants with stable pseudonyms.")] = False,
    brief: Annotated[bool, typer.Option("--brief", help="Text: only the two rates and one line per incident.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Text: every finding, not just the cause of each incident.")] = False,
    json_schema: Annotated[bool, typer.Option("--json-schema", help="Print the JSON Schema of the report and exit.")] = False,
    quiet: options.Quiet = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Explain the choice of dialect; list 200 refused lines.")] = False,
) -> None:
    """Analyze ledgers: the two rates, the contradictions, and what could not be told."""
    if json_schema:
        _print_schema(output)
        return
    from quietburn.cli.percentages import parse_share

    limit = parse_share(max_quarantined, "--max-quarantined")
    if show_raw and quarantine is None:
        raise UsageError("--show-raw: needs --quarantine FILE to write the refused lines to.")
    if brief and full:
        raise UsageError("--brief and --full: can't be combined. Use one of them.")
    request = request_from(
        since=since, until=until, last_night=last_night, tz=tz, dialect=dialect, map_file=map_file, settings=set_,
        only=only, skip=skip, config=options.configured(config, quiet=quiet), store=db, cpu=cpu, join=join,
    )
    refuse_stdout_twice(output, quarantine)
    refuse_overlaps(
        {"--output": output, "--quarantine": quarantine, "--db": db}, ledgers or [],
        {"--cpu": cpu, "--map": map_file, "--config": request.config.origin},
    )
    report = _analyzed(ledgers or [], request, quarantine, quiet=quiet, show_raw=show_raw)
    if anonymize:
        from quietburn.report.anonymous import anonymized

        report = anonymized(report, request.config.deadlines.tenant)
    if verbose and not quiet:
        for file in report.ledger.files:
            say(f"{file.path}: dialect {file.dialect}; {file.detected_because}")
    from quietburn.cli.written import write_result

    detail = "brief" if brief else "full" if full else "incidents"
    write_result(_rendered(report, output_format, output, verbose=verbose, detail=detail), output)
    _exit_for(report, fail_on, limit, quiet=quiet)


def _analyzed(
    ledgers: list[str], request: "Request", quarantine: Path | None, *, quiet: bool, show_raw: bool
) -> "Report":
    """Return the report, and write the refused lines where that is asked for."""
    from quietburn.analysis.run import analyzing
    from quietburn.cli.progress import progress_bar
    from quietburn.cli.written import write_result
    from quietburn.ledger.refused import refused_lines

    with progress_bar(ledgers, enabled=not quiet) as advance, analyzing(ledgers, request, advance) as analysis:
        if quarantine is not None:
            lines = refused_lines(analysis.engine.quarantine(), analysis.ledgers, show_raw=show_raw)
            write_result(lines, quarantine, flag="--quarantine")
        return analysis.report


def _rendered(report: "Report", output_format: ReportFormat, output: Path | None, *, verbose: bool, detail: str) -> str:
    if output_format is ReportFormat.MARKDOWN:
        from quietburn.report.incidents_markdown import report_markdown

        return report_markdown(report)
    if output_format is ReportFormat.GITHUB:
        from quietburn.report.github import report_github

        return report_github(report)
    if output_format is ReportFormat.JSON:
        from quietburn.report.printable import inert_json

        return inert_json(json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=True, allow_nan=False)) + "\n"
    return _text(report, output, verbose=verbose, detail=detail)


def _text(report: "Report", output: Path | None, *, verbose: bool, detail: str) -> str:
    from rich.console import Console

    from quietburn.report.text import Detail, render_text

    to_terminal = output is None and sys.stdout is not None and sys.stdout.isatty()
    buffer = io.StringIO()
    width = Console().width if to_terminal else 100
    styled = to_terminal and not os.environ.get("NO_COLOR")  # without colour, bold and dim are escapes all the same
    console = Console(file=buffer, width=width, force_terminal=styled, legacy_windows=False)
    render_text(report, console, verbose=verbose, detail=Detail(detail))
    return buffer.getvalue()


def _exit_for(report: "Report", fail_on: FailOn, max_quarantined: float, *, quiet: bool) -> None:
    """End in the status that the report and the flags ask for."""
    counted = report.counted_refused
    if report.errored:
        if not quiet:
            say(f"undecided: {len(report.errored)} rules failed ({', '.join(e.rule for e in report.errored)}).")
        raise typer.Exit(ExitStatus.UNDECIDED)
    if report.ledger.lines and counted > max_quarantined * report.ledger.lines:
        if not quiet:
            say(
                f"undecided: {counted:,} of {report.ledger.lines:,} lines were refused, more than "
                f"--max-quarantined allows ({max_quarantined * 100:g}%). See the quarantine in the report for the reasons."
            )
        raise typer.Exit(ExitStatus.UNDECIDED)
    if fail_on is FailOn.NEVER:
        return
    from quietburn.ruleset.severity import Severity

    asked = Severity(fail_on.value).rank
    if any(Severity(finding.severity).rank >= asked for finding in report.findings):
        raise typer.Exit(ExitStatus.FINDINGS)


def _print_schema(output: Path | None) -> None:
    from quietburn.cli.written import write_result
    from quietburn.report.model import Report

    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Report.model_json_schema(mode="serialization")}
    write_result(json.dumps(schema, indent=2) + "\n", output)
