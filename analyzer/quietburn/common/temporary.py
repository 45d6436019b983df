"""Temporary files and folders, removed even when the command is stopped where it can't unwind."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "quietburn-"
_kept: set[Path] = set()


def make_folder(beside: Path | None = None, prefix: str = _PREFIX) -> Path:
    """Make a folder that only this user can read, in the system's folder for temporary files or in another."""
    folder = Path(tempfile.mkdtemp(dir=beside, prefix=prefix))  # mkdtemp makes it 0700
    _kept.add(folder)
    return folder


def make_file(beside: Path, prefix: str) -> tuple[int, Path]:
    """Make a file in a folder; return its descriptor and its path."""
    handle, name = tempfile.mkstemp(dir=beside, prefix=prefix)
    _kept.add(Path(name))
    return handle, Path(name)


def remove(path: Path) -> None:
    """Remove what one of the functions above has made; what is gone already, or renamed, is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
    _kept.discard(path)


def remove_all() -> None:
    """Remove everything that was made and not yet removed."""
    for path in list(_kept):
        remove(path)


@contextmanager
def folder(beside: Path | None = None, prefix: str = _PREFIX) -> Iterator[Path]:
    """Give a temporary folder and remove it afterwards."""
    made = make_folder(beside, prefix)
    try:
        yield made
    finally:
        remove(made)
