"""Where results go: standard output, or a file that is complete or absent."""

import os
import sys
import tempfile
from pathlib import Path

from quietburn.errors import UsageError
from quietburn.ledger.inputs import os_words


def write_result(text: str, path: Path | None) -> None:
    """Write a result to a file, beside and renamed, or to standard output.

    Raises UsageError when the file can't be written; then nothing of it is left.
    """
    if path is None or str(path) == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        replace_file(path, text)
    except OSError as problem:
        raise UsageError(f"--output {path}: can't be written ({os_words(problem)}).") from None


def replace_file(path: Path, text: str) -> None:
    """Write a file so that others see the old one or the whole new one."""
    target = path.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    beside = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        beside.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
