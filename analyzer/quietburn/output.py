"""Where results go: standard output, or a file that is complete or absent."""

import os
import stat
import sys
from pathlib import Path

from quietburn import temporary
from quietburn.errors import UsageError
from quietburn.ledger.inputs import os_words


def write_result(text: str, path: Path | None, flag: str = "--output") -> None:
    """Write a result to a file, beside and renamed, or to standard output.

    `flag` is what named the file. Raises UsageError when it can't be written; then nothing of a
    file is left.
    """
    if path is None or str(path) == "-":
        _write_stdout(text)
        return
    try:
        if _is_stream(path):
            path.write_text(text, encoding="utf-8", newline="\n")
        else:
            replace_file(path, text)
    except BrokenPipeError:
        return
    except OSError as problem:
        raise UsageError(
            f"{flag} {path}: can't be written ({os_words(problem)}). Name a file in a folder that you may write to."
        ) from None


def _write_stdout(text: str) -> None:
    """Write to standard output; a reader that has seen enough and closed it is no error."""
    if sys.stdout is None:
        raise UsageError("standard output: is closed; name a file with --output.")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what Python flushes at exit goes nowhere
    except OSError as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise UsageError(f"standard output: can't be written ({os_words(problem)}).") from None


def _is_stream(path: Path) -> bool:
    """Whether the path is a device or a pipe (/dev/stdout, /dev/null), which must never be replaced by a file."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def replace_file(path: Path, text: str) -> None:
    """Write a file so that others see the old one or the whole new one."""
    target = path.resolve()
    handle, beside = temporary.make_file(target.parent, f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        beside.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        beside.replace(target)
    finally:
        temporary.remove(beside)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
