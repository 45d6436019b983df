"""A progress bar on standard error, for long files on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_WORTH_SHOWING = 50 << 20


@contextmanager
def progress_bar(paths: list[str], *, enabled: bool) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that is told bytes as they are read, or None where no bar is wanted."""
    on_terminal = enabled and sys.stderr is not None and sys.stderr.isatty()
    total = sum(_size(Path(path)) for path in paths) if on_terminal else 0
    if total < _WORTH_SHOWING:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=total)
        yield lambda count: progress.advance(task, count)


def _size(path: Path) -> int:
    """Return a file's size; 0 for what is none, which is refused where it is read."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0
