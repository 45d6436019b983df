"""A progress bar on standard error, for long files on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_WORTH_SHOWING = 50 << 20


@contextmanager
def progress_bar(paths: list[str], *, enabled: bool) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that is told bytes as they are read, or None where no bar is wanted."""
    total = sum(Path(path).stat().st_size for path in paths if Path(path).is_file())
    if not enabled or total < _WORTH_SHOWING or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=total)
        yield lambda count: progress.advance(task, count)
