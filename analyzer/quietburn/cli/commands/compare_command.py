"""`quietburn compare`: two ledgers side by side, and no difference that is noise."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from quietburn.analysis.request import request_from
from quietburn.cli import exit_verdicts as verdicts
from quietburn.cli import options
from quietburn.cli.outputs import refuse_overlaps
from quietburn.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from quietburn.analysis.run import Request
    from quietburn.report.verdict import ComparisonReport, SideReport


def compare(
    before: Annotated[str, typer.Argument(metavar="A", help="A ledger: a file, a folder, or - for standard input.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The ledger to compare with it.")],
    paired: Annotated[bool, typer.Option("--paired", help="Both got the same requests: match them by request_id.")] = False,
    output_format: verdicts.Format = verdicts.VerdictFormat.TEXT,
    output: verdicts.Output = None,
    since: options.Since = None,
    until: options.Until = None,
    last_night: options.LastNight = False,
    tz: options.Zone = None,
    dialect: options.Dialect = None,
    map_file: options.MapFile = None,
    join: options.Join = None,
    config: options.ConfigFile = None,
    max_quarantined: options.MaxQuarantined = "5%",
    quiet: options.Quiet = False,
) -> None:
    """Compare two ledgers: each difference (B - A) with its interval, or refused as noise, in words."""
    from quietburn.cli.percentages import parse_share

    limit = parse_share(max_quarantined, "--max-quarantined")
    request = request_from(
        since=since, until=until, last_night=last_night, tz=tz, dialect=dialect, map_file=map_file,
        config=options.configured(config, quiet=quiet), join=join,
    )
    if before == after == "-":
        raise UsageError("-: only one of the two ledgers can be standard input. Write the other to a file.")
    refuse_overlaps({"--output": output}, [before, after], {"--map": map_file, "--config": request.config.origin})
    report = _run(before, after, request, paired=paired, quiet=quiet)
    verdicts.deliver(report, output_format, output)
    for side in (report.before, report.after):
        _exit_for(side, limit, quiet=quiet)


def _run(before: str, after: str, request: "Request", *, paired: bool, quiet: bool) -> "ComparisonReport":
    from dataclasses import replace

    from quietburn.analysis.run import analyzing
    from quietburn.cli.progress import progress_bar
    from quietburn.judge.compare import common_criteria, take_side
    from quietburn.judge.compare import compare as run

    # No rule plays a part in a comparison.
    request = replace(request, rules=(), config=request.config.model_copy(update={"rules": {}}))
    with (
        progress_bar([before, after], enabled=not quiet) as advance,
        analyzing([before], request, advance) as first,
        analyzing([after], request, advance) as second,
    ):
        common = common_criteria(first.report, second.report)
        sides = [
            take_side(found.report, found.engine, found.settings, common.asked, with_rows=True, with_ids=paired)
            for found in (first, second)
        ]
        return run(sides[0], sides[1], common, paired=paired, command=verdicts.command_line(sys.argv[1:]))


def _exit_for(side: "SideReport", limit: float, *, quiet: bool) -> None:
    if side.counted_refused > limit * side.lines:
        if not quiet:
            options.say(
                f"undecided: {side.counted_refused:,} of {side.lines:,} lines of {', '.join(side.files)} were refused, "
                f"more than --max-quarantined allows ({limit:.0%})."
            )
        raise typer.Exit(ExitStatus.UNDECIDED)
