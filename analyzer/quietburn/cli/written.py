"""Write results: to standard output, or to a file that is complete or absent."""

import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from quietburn.common import temporary
from quietburn.errors import UsageError
from quietburn.records.inputs import os_words


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
            f"{flag} {path}: can't be written ({os_words(problem)}). Name a file in a writable folder."
        ) from None
    except RuntimeError:  # Path.resolve's word for it
        raise UsageError(f"{flag} {path}: is a circular link. Name another file.") from None


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


def replace_file(path: Path, text: str | Iterable[str]) -> None:
    """Write a file, from one text or from its lines, so that others see the old one or the whole new one."""
    beside, target = _beside(path, text)
    try:
        beside.replace(target)
    finally:
        temporary.remove(beside)


def replace_set(folder: Path, files: Mapping[str, str], bound: Sequence[str]) -> None:
    """Write files that only make sense together, so that none sees the old of one and the new of another.

    `bound` are those that others read. Where several files of a folder change, these are away from
    the moment the first changes to the moment the last has, and the first of them comes back last;
    a kill in between leaves it away.
    Everything is on the disk before that. A folder that isn't there yet appears whole.
    """
    if not folder.exists():
        _make_whole(folder, files)
        return
    changed = {name: text for name, text in files.items() if _content(folder / name) != text}
    if len(changed) > 1:
        changed |= {name: files[name] for name in bound if name in files}
    ready: list[tuple[Path, Path]] = []
    try:
        for name in [*sorted(changed.keys() - set(bound)), *(name for name in reversed(bound) if name in changed)]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            ready.append(_beside(folder / name, changed[name]))
        for name in bound if len(changed) > 1 else ():
            (folder / name).resolve().unlink(missing_ok=True)
        for beside, target in ready:
            beside.replace(target)
    finally:
        for beside, _ in ready:
            temporary.remove(beside)


def _make_whole(folder: Path, files: Mapping[str, str]) -> None:
    """Make a folder with its files under another name, and give it its own when it is whole."""
    target = folder.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with temporary.folder(target.parent, f".{target.name}.") as beside:
        for name, text in files.items():
            (beside / name).parent.mkdir(parents=True, exist_ok=True)
            replace_file(beside / name, text)
        beside.chmod(0o777 & ~_umask())
        beside.rename(target)


def _content(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _beside(path: Path, text: str | Iterable[str]) -> tuple[Path, Path]:
    """Write a file's new content beside it, all on the disk; return where that is, and where it is to go."""
    target = path.resolve()
    handle, beside = temporary.make_file(target.parent, f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines([text] if isinstance(text, str) else text)
            stream.flush()
            os.fsync(stream.fileno())
        beside.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
    except BaseException:
        temporary.remove(beside)
        raise
    return beside, target


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
