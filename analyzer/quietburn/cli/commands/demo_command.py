"""`quietburn demo`: a night with many contradictions, and the three jobs run on it."""

import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from quietburn.cli.options import say
from quietburn.errors import UsageError

NIGHT = "night.jsonl"


def demo(
    out: Annotated[Path, typer.Option(help="New folder to unpack the demo night into.")] = Path("quietburn-demo"),
) -> None:
    """Unpack a night and run the three jobs on it: analyze, alerts, gate."""
    night = _unpack(out)
    from quietburn.cli.commands.alerts_command import alerts
    from quietburn.cli.commands.analyze_command import analyze
    from quietburn.cli.commands.gate_command import gate

    folder = out / "alerts"
    proven = shutil.which("promtool") is not None
    unproven = [] if proven else ["--unproven"]
    _show(["analyze", str(night)], lambda: analyze([str(night)], quiet=True))
    _show(
        ["alerts", str(night), "--out", str(folder), *unproven],
        lambda: alerts([str(night)], out=folder, unproven=not proven),
    )
    if not proven:
        say("promtool is not installed, so the alerts are written without proof.")
    _show(["gate", str(night), "--min-usable", "95%"], lambda: gate([str(night)], min_usable="95%"))


def _unpack(out: Path) -> Path:
    """Write the shipped night into a new folder. Raises UsageError when that is in the way of something."""
    from quietburn.common.resources import demo_night
    from quietburn.records.inputs import os_words

    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise UsageError(f"--out {out}: is not empty. Name a new folder.")
        night = out / NIGHT
        night.write_bytes(demo_night().read_bytes())
    except OSError as problem:
        raise UsageError(f"--out {out}: can't be written ({os_words(problem)}). Name a writable folder.") from None
    return night


def _show(command: list[str], run: Callable[[], None]) -> None:
    """Print a command as one would type it, run it, and say how it ended."""
    sys.stdout.write(f"$ {shlex.join(['quietburn', *command])}\n")
    sys.stdout.flush()
    status = 0
    sys.argv[1:] = command  # a report repeats the command that gives it
    try:
        run()
    except typer.Exit as ended:
        status = ended.exit_code
    sys.stdout.write(f"(exit status {int(status)})\n\n")
    sys.stdout.flush()
