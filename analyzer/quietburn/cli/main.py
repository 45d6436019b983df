"""The command line: flags in, one call each, rendering and exit status out."""

import io
import json
import sys
from typing import Annotated

import typer

import quietburn
from quietburn.cli.commands.alerts_command import alerts as alerts_command
from quietburn.cli.commands.analyze_command import analyze as analyze_command
from quietburn.cli.commands.backtest_command import backtest as backtest_command
from quietburn.cli.commands.compare_command import compare as compare_command
from quietburn.cli.commands.demo_command import demo as demo_command
from quietburn.cli.commands.dialects_command import dialects_app
from quietburn.cli.commands.export_command import export as export_command
from quietburn.cli.commands.gate_command import gate as gate_command
from quietburn.cli.commands.map_command import map_command
from quietburn.cli.commands.nights_command import nights as nights_command
from quietburn.cli.commands.rules_command import columns, rules_app
from quietburn.cli.options import say
from quietburn.cli.stopping import answering_sigterm
from quietburn.errors import ExitStatus, InputError, QuietburnError, UsageError

app = typer.Typer(
    name="quietburn",
    help="Read an LLM gateway's ledger offline and find where healthy signals contradict what callers got.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(rules_app, name="rules")
app.add_typer(dialects_app, name="dialects")


def _print_version(asked: bool) -> None:  # noqa: FBT001 - as Typer calls it
    if asked:
        typer.echo(f"quietburn {quietburn.__version__}")
        raise typer.Exit


@app.callback()
def _quietburn(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take what every command shares."""


@app.command()
def fingerprint(
    scrubber: Annotated[int, typer.Option(help="1: the seed's two patterns; 2: also UUIDs, epochs, other dates, hex ids.")] = 1,
) -> None:
    """Fingerprint a prefix: {"prefix": "..."} on standard input, fp, stable_len and stripped_clock out."""
    from quietburn.ledger.fingerprint import SCRUBBERS
    from quietburn.ledger.fingerprint import fingerprint as run

    if scrubber not in SCRUBBERS:
        raise UsageError(f"--scrubber {scrubber}: use one of {', '.join(str(n) for n in SCRUBBERS)}.")
    if sys.stdin is None:
        raise InputError("standard input: is closed; write {\"prefix\": \"...\"} to it.")
    try:
        payload = json.loads(sys.stdin.buffer.read())
    except (ValueError, RecursionError):
        raise InputError("standard input: not valid JSON; write {\"prefix\": \"...\"}.") from None
    prefix = payload.get("prefix") if isinstance(payload, dict) else None
    if not isinstance(prefix, str):
        raise InputError("standard input: must be an object with a string under \"prefix\".")
    result = run(prefix, scrubber)
    typer.echo(json.dumps({"fp": result.fp, "stable_len": result.stable_len, "stripped_clock": result.stripped_clock}))


app.command("analyze")(analyze_command)
app.command("nights")(nights_command)
app.command("map")(map_command)
app.command("demo")(demo_command)
app.command("alerts")(alerts_command)
app.command("export")(export_command)
app.command("backtest")(backtest_command)
app.command("gate")(gate_command)
app.command("compare")(compare_command)
app.command("columns")(columns)


def main() -> None:
    """Run the command; every way out is an exit status and at most one line of error."""
    with answering_sigterm():
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # what this locale can't write is shown as its escape
        status, words = _run()
    if words:
        say(words)
    sys.exit(status)


def _run() -> tuple[int, str]:
    """Run the command; return its exit status, and the line that says why where there is one."""
    try:
        status = app(standalone_mode=False, prog_name="quietburn")
    except QuietburnError as problem:
        return problem.status, str(problem)
    except (typer.Abort, KeyboardInterrupt):
        status = ExitStatus.INTERRUPTED
    except SystemExit as ended:
        return _status_of(ended), ""
    except Exception as problem:  # noqa: BLE001 - the last resort: a user never sees a traceback
        return _unexpected(problem)
    # Typer turns Ctrl-C into this status, without a word.
    return int(status or 0), "interrupted." if status == ExitStatus.INTERRUPTED else ""


def _status_of(ended: SystemExit) -> int:
    """Return the status that an exit asks for; a reader that has seen enough of our output is no fault.

    Typer exits in 1 where standard output is cut off.
    """
    if isinstance(ended.__context__, BrokenPipeError):
        return ExitStatus.DONE
    return ended.code if isinstance(ended.code, int) else int(ended.code is not None)


def _unexpected(problem: Exception) -> tuple[int, str]:
    """Return the exit status for what went wrong, and one line about it."""
    shown = getattr(problem, "format_message", None)
    kind = type(problem).__name__
    if kind == "NoArgsIsHelpError" and callable(shown):
        typer.echo(shown())
        words = "no command given. Use one of the commands above."
    elif callable(shown):  # a call that click could not read
        text = " ".join(shown().replace("Value error, ", "").split())
        words = f"{text}{'' if text.endswith(('.', '?')) else '.'} See --help."
    elif isinstance(problem, RuntimeError) and str(problem) == "Query interrupted":  # DuckDB's word for Ctrl-C
        return ExitStatus.INTERRUPTED, "interrupted."
    elif isinstance(problem, MemoryError) or kind == "OutOfMemoryException":
        words = "out of memory. Read fewer files at once, or a shorter time range."
    elif kind == "IOException":  # DuckDB's word for what the system refused
        words = "can't write temporary data: the disk is full, or TMPDIR is not writable. Free some space, or set TMPDIR."
    elif isinstance(problem, OSError):
        words = f"{problem.filename or 'the system'}: {problem.strerror or problem}."
    else:
        words = f"internal error ({kind}). Please report it with the command that you ran."
    return ExitStatus.UNUSABLE, words
