"""`quietburn export`: a ledger's metrics in files that a real Prometheus reads."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quietburn.analysis.request import request_from
from quietburn.cli import options
from quietburn.cli.outputs import refuse_overlaps
from quietburn.errors import ExitStatus, UsageError
from quietburn.records.inputs import label_of

if TYPE_CHECKING:
    from quietburn.analysis.run import Analysis

_STEPS_S = (15, 30, 60)


def export(
    ledgers: options.Ledgers = None,
    backfill: Annotated[
        Path | None, typer.Option(help="Write OpenMetrics with times, for `promtool tsdb create-blocks-from openmetrics`.")
    ] = None,
    textfile: Annotated[Path | None, typer.Option(help="Write the totals for node_exporter's textfile collector.")] = None,
    step: Annotated[int, typer.Option(help="Seconds between two samples of --backfill: 15, 30 or 60.")] = 15,
    since: options.Since = None,
    until: options.Until = None,
    last_night: options.LastNight = False,
    tz: options.Zone = None,
    dialect: options.Dialect = None,
    map_file: options.MapFile = None,
    set_: options.Set = None,
    join: options.Join = None,
    store: options.Store = None,
    config: options.ConfigFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Write a ledger's metrics for Prometheus: last night into its database, or totals for node_exporter."""
    if backfill is None and textfile is None:
        raise UsageError("nothing to write: name --backfill FILE, --textfile FILE or both.")
    if step not in _STEPS_S:
        raise UsageError(f"--step {step}: write 15, 30 or 60.")
    request = request_from(
        since=since, until=until, last_night=last_night, tz=tz, dialect=dialect, map_file=map_file, settings=set_,
        join=join, store=store, config=options.configured(config, quiet=quiet),
    )
    outputs = {"--backfill": backfill, "--textfile": textfile, "--db": store}
    refuse_overlaps(outputs, ledgers or [], {"--map": map_file, "--config": request.config.origin})
    from quietburn.analysis.run import analyzing

    with analyzing(ledgers or [], request) as analysis:
        done = list(_written(analysis, backfill, textfile, step))
        errored = {entry.rule: entry.problem for entry in analysis.report.errored}
    for words in done if not quiet else ():
        options.say(words)
    for rule, problem in errored.items():
        options.say(f"rule {rule} failed, so its events are left out: {problem}.")
    if errored:
        raise typer.Exit(ExitStatus.UNDECIDED)


def _written(analysis: "Analysis", backfill: Path | None, textfile: Path | None, step: int) -> Iterator[str]:
    """Write what was asked for; yield a sentence on each file."""
    from quietburn.export.exposition import openmetrics, text_format
    from quietburn.export.gather import event_series, frame_of, reading_series

    frame = frame_of(analysis)
    series = event_series(analysis, frame)
    if textfile is not None:
        every = [*series, *reading_series(analysis, frame)]
        _write(textfile, "--textfile", text_format(every))
        yield f"{len(every):,} series in {label_of(str(textfile))}."
    if backfill is not None:
        samples = _write(backfill, "--backfill", openmetrics(series, frame, step))
        shown = label_of(str(backfill))
        yield (
            f"{len(series):,} series and {samples:,} samples in {shown}. "
            f"Load them: promtool tsdb create-blocks-from openmetrics {shown} DATA_FOLDER."
        )


def _write(path: Path, flag: str, lines: Iterable[str]) -> int:
    """Write a file and read it back; return its number of samples. Raises UsageError when it can't be written whole."""
    from quietburn.cli.written import replace_file
    from quietburn.records.inputs import os_words

    made = _Counted(lines)
    try:
        replace_file(path, made)
        with path.open(encoding="utf-8", newline="\n") as written:
            found = sum(1 for _ in written)
    except OSError as problem:
        raise UsageError(f"{flag} {label_of(str(path))}: can't be written ({os_words(problem)}).") from None
    if found != made.lines:
        raise UsageError(f"{flag} {label_of(str(path))}: holds {found:,} of {made.lines:,} lines. Write it again.")
    return made.samples


class _Counted:
    """Lines that are counted as they are taken, and the samples among them."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = self.samples = 0
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.lines += 1
            self.samples += not line.startswith("#")
            yield line
