"""The command line: flags in, one call each, rendering and exit status out."""

import io
import json
import os
import signal
import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quietburn.commands.alerts import alerts as alerts_command
from quietburn.commands.backtest import backtest as backtest_command
from quietburn.commands.compare import compare as compare_command
from quietburn.commands.gate import gate as gate_command
from quietburn.errors import ExitStatus, InputError, QuietburnError, UsageError

if TYPE_CHECKING:
    from quietburn.report.model import Report
    from quietburn.ruleset.model import Rule

app = typer.Typer(
    name="quietburn",
    help="Read an LLM gateway's ledger offline and find where healthy signals contradict what callers got.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
rules_app = typer.Typer(help="The rule catalogue.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(rules_app, name="rules")


class ReportFormat(StrEnum):
    """Formats of `analyze`."""

    TEXT = "text"
    JSON = "json"


class FailOn(StrEnum):
    """From which severity on findings end in exit status 1."""

    PAGE = "page"
    TICKET = "ticket"
    INFO = "info"
    NEVER = "never"


@app.command()
def analyze(
    ledgers: Annotated[list[str] | None, typer.Argument(help="JSONL files, folders of them, or - for standard input.")] = None,
    output_format: Annotated[ReportFormat, typer.Option("--format", help="How to print the report.")] = ReportFormat.TEXT,
    output: Annotated[Path | None, typer.Option(help="Write the report to this file instead of standard output.")] = None,
    since: Annotated[str | None, typer.Option(help="Only from this time on: ISO, or back from now (24h, 15m).")] = None,
    until: Annotated[str | None, typer.Option(help="Only before this time: ISO, or back from now.")] = None,
    last_night: Annotated[bool, typer.Option("--last-night", help="From 18:00 yesterday to 09:00 today, local.")] = False,
    tz: Annotated[str | None, typer.Option(help="Zone of times that name none, such as Europe/Berlin (else UTC).")] = None,
    dialect: Annotated[str | None, typer.Option(help="Read every line as this dialect instead of detecting it.")] = None,
    map_file: Annotated[Path | None, typer.Option("--map", help="A mapping file for a dialect of your own.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Set a rule's parameter: RULE.PARAMETER=NUMBER.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Evaluate only this rule (may be repeated).")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="Leave this rule out (may be repeated).")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file (else quietburn.toml, found upward).")] = None,
    fail_on: Annotated[FailOn, typer.Option(help="Exit 1 on findings of this severity or worse.")] = FailOn.NEVER,
    max_quarantined: Annotated[str, typer.Option(help="Exit 3 when more of the lines were refused.")] = "5%",
    json_schema: Annotated[bool, typer.Option("--json-schema", help="Print the JSON Schema of the report and stop.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Nothing on standard error but errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say why a dialect was chosen; name every refused line.")] = False,
) -> None:
    """Analyze ledgers: the two rates, the contradictions, and what could not be told."""
    if json_schema:
        _print_schema(output)
        return
    from quietburn.config import load_config
    from quietburn.ledger.mapping import load_mapping
    from quietburn.numbers import parse_share
    from quietburn.timerange import span, zone_of

    limit = parse_share(max_quarantined, "--max-quarantined")
    configuration = load_config(config)
    zone_name = tz or configuration.tz
    asked = span(since, until, last_night=last_night, zone=zone_of(zone_name))
    mapping = load_mapping(map_file) if map_file else None
    # Only now what takes long to import: a wrong call is answered at once.
    from quietburn.analysis import Request
    from quietburn.analysis import analyze as run
    from quietburn.output import write_result

    request = Request(
        config=configuration,
        span=asked,
        zone="UTC" if zone_name and zone_name.upper() == "UTC" else zone_name,
        dialect=dialect,
        mapping=mapping,
        settings=tuple(set_ or ()),
        only=tuple(only or ()),
        skip=tuple(skip or ()),
    )
    from quietburn.progress import progress_bar

    with progress_bar(ledgers or [], enabled=not quiet) as advance:
        report = run(ledgers or [], request, advance)
    if verbose and not quiet:
        for file in report.ledger.files:
            _say(f"{file.path}: dialect {file.dialect}; {file.detected_because}")
    write_result(_rendered(report, output_format, output, verbose=verbose), output)
    _exit_for(report, fail_on, limit, quiet=quiet)


def _rendered(report: "Report", output_format: ReportFormat, output: Path | None, *, verbose: bool) -> str:
    if output_format is ReportFormat.JSON:
        from quietburn.report.printable import inert_json

        return inert_json(json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=True, allow_nan=False)) + "\n"
    from rich.console import Console

    from quietburn.report.text import render_text

    to_terminal = output is None and sys.stdout is not None and sys.stdout.isatty()
    buffer = io.StringIO()
    width = Console().width if to_terminal else 100
    styled = to_terminal and not os.environ.get("NO_COLOR")  # without colour, bold and dim are escapes all the same
    render_text(report, Console(file=buffer, width=width, force_terminal=styled, legacy_windows=False), verbose=verbose)
    return buffer.getvalue()


def _exit_for(report: "Report", fail_on: FailOn, max_quarantined: float, *, quiet: bool) -> None:
    """End in the status that the report and the flags ask for."""
    counted = sum(line.code != "incomplete_last_line" for line in report.quarantine)
    if report.errored:
        if not quiet:
            _say(f"could not be judged: {len(report.errored)} rules failed ({', '.join(e.rule for e in report.errored)}).")
        raise typer.Exit(ExitStatus.UNDECIDED)
    if report.ledger.lines and counted > max_quarantined * report.ledger.lines:
        if not quiet:
            _say(
                f"could not be judged: {counted:,} of {report.ledger.lines:,} lines were refused, more than "
                f"--max-quarantined allows ({max_quarantined * 100:g}%). See the report's quarantine for the reasons."
            )
        raise typer.Exit(ExitStatus.UNDECIDED)
    if fail_on is FailOn.NEVER:
        return
    from quietburn.ruleset.severity import Severity

    asked = Severity(fail_on.value).rank
    if any(Severity(finding.severity).rank >= asked for finding in report.findings):
        raise typer.Exit(ExitStatus.FINDINGS)


def _print_schema(output: Path | None) -> None:
    from quietburn.output import write_result
    from quietburn.report.model import Report

    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Report.model_json_schema(mode="serialization")}
    write_result(json.dumps(schema, indent=2) + "\n", output)


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
    lines += [f"  {grade.severity}: {' '.join(grade.flag.split())}" for grade in rule.window.grades]
    lines.append("wrong when:")
    lines += [f"  {text}" for text in about.false_positives]
    lines += ["known gaps:", *(f"  {text}" for text in about.known_gaps)] if about.known_gaps else []
    return "\n".join(lines)


@app.command()
def fingerprint(
    scrubber: Annotated[int, typer.Option(help="1: the seed's two patterns; 2: also UUIDs, epochs, other dates, hex ids.")] = 1,
) -> None:
    """Fingerprint a prefix: {"prefix": "..."} on standard input, fp, stable_len and stripped_clock out."""
    from quietburn.fingerprint import SCRUBBERS
    from quietburn.fingerprint import fingerprint as run

    if scrubber not in SCRUBBERS:
        raise UsageError(f"--scrubber {scrubber}: there are {', '.join(str(n) for n in SCRUBBERS)}.")
    if sys.stdin is None:
        raise InputError("standard input: is closed; write {\"prefix\": \"...\"} to it.")
    try:
        payload = json.loads(sys.stdin.buffer.read())
    except (ValueError, RecursionError):
        raise InputError("standard input: not valid JSON; write {\"prefix\": \"...\"}.") from None
    prefix = payload.get("prefix") if isinstance(payload, dict) else None
    if not isinstance(prefix, str):
        raise InputError("standard input: needs an object with a text under \"prefix\".")
    result = run(prefix, scrubber)
    typer.echo(json.dumps({"fp": result.fp, "stable_len": result.stable_len, "stripped_clock": result.stripped_clock}))


app.command("alerts")(alerts_command)
app.command("backtest")(backtest_command)
app.command("gate")(gate_command)
app.command("compare")(compare_command)


def _say(text: str) -> None:
    """Write one line to standard error, inert whatever a file's name holds."""
    from quietburn.report.printable import printable

    with suppress(OSError, AttributeError):  # a standard error that is full, closed or not there changes no exit status
        sys.stderr.write(f"quietburn: {printable(text)}\n")


def main() -> None:
    """Run the command; every way out is an exit status and at most one line of error."""
    # What a service manager stops cleans up after itself as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(128 + signal.SIGTERM))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what this locale can't write is shown as its escape
    try:
        status = app(standalone_mode=False, prog_name="quietburn")
        if status == ExitStatus.INTERRUPTED:  # Typer turns Ctrl-C into this status, without a word
            _say("interrupted.")
    except QuietburnError as problem:
        _say(str(problem))
        status = problem.status
    except (typer.Abort, KeyboardInterrupt):
        _say("interrupted.")
        status = ExitStatus.INTERRUPTED
    except SystemExit:
        # Whoever read our output has seen enough (Typer's way of saying so): that is no finding.
        status = ExitStatus.DONE
    except Exception as problem:  # noqa: BLE001 - the last resort: a user never sees a traceback
        status = _unexpected(problem)
    sys.exit(int(status or 0))


def _unexpected(problem: Exception) -> int:
    shown = getattr(problem, "format_message", None)
    if type(problem).__name__ == "NoArgsIsHelpError" and callable(shown):
        typer.echo(shown())
        _say("no command was given; name one of those above.")
        return ExitStatus.UNUSABLE
    if callable(shown):  # a call that click could not read
        words = " ".join(shown().replace("Value error, ", "").split())
        _say(f"{words}{'' if words.endswith(('.', '?')) else '.'} See --help.")
        return ExitStatus.UNUSABLE
    if isinstance(problem, RuntimeError) and str(problem) == "Query interrupted":  # DuckDB's word for Ctrl-C
        _say("interrupted.")
        return ExitStatus.INTERRUPTED
    if isinstance(problem, MemoryError) or type(problem).__name__ == "OutOfMemoryException":
        _say("ran out of memory. Read fewer files at once, or a shorter span.")
        return ExitStatus.UNUSABLE
    if isinstance(problem, OSError):
        _say(f"{problem.filename or 'the system'}: {problem.strerror or problem}.")
        return ExitStatus.UNUSABLE
    _say(f"a fault of quietburn itself ({type(problem).__name__}). Please report it with the command that you ran.")
    return ExitStatus.UNUSABLE
