"""Refuse a call that would write over its own input or output, before anything is opened."""

import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from quietburn.errors import UsageError
from quietburn.records.inputs import STDIN, find_ledgers, is_url, label_of, os_words

_STDOUT_NAMES = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
Identity = tuple[int, int, str]  # device, inode of the file or of its folder, and then its name there


def refuse_overlaps(
    outputs: Mapping[str, Path | None], ledgers: Sequence[str] = (), inputs: Mapping[str, Path | str | None] | None = None
) -> None:
    """Refuse outputs that are one file, or an input of the call, through whatever links. Raises UsageError.

    `outputs` and `inputs` are by flag; what is None is not asked for.
    """
    written = {flag: identity_of(path, flag) for flag, path in outputs.items() if path is not None and not is_stdout(path)}
    for (flag, identity), (other, same) in combinations(written.items(), 2):
        if identity is not None and identity == same:
            raise UsageError(f"{flag} and {other}: are the same file, {label_of(str(outputs[flag]))}. Name two files.")
    for what, known in _read(ledgers, inputs or {}) if written else ():
        for flag, identity in written.items():
            if identity is not None and identity == known:
                raise UsageError(f"{_named(flag, outputs[flag])}: is {what}, which would be overwritten. Name another file.")


def refuse_stdout_twice(output: Path | None, quarantine: Path | None) -> None:
    """Refuse refused lines on standard output where the report goes there too. Raises UsageError."""
    if quarantine is not None and is_stdout(quarantine) and (output is None or is_stdout(output)):
        raise UsageError(f"--quarantine {quarantine}: the report also goes to standard output. Name a file for one of them.")


def is_stdout(path: Path) -> bool:
    """Whether a path is a name for standard output."""
    return str(path) in _STDOUT_NAMES


def identity_of(path: Path, flag: str) -> Identity | None:
    """Return what tells a file from others, whether it exists yet or not; None for devices and pipes.

    Raises UsageError for links that lead nowhere but in a circle.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return _identity_of_new(path)
    except (OSError, ValueError) as problem:
        words = os_words(problem) if isinstance(problem, OSError) else "not a file name"
        raise UsageError(f"{_named(flag, path)}: can't be checked ({words}). Name another file.") from None
    return (found.st_dev, found.st_ino, "") if stat.S_ISREG(found.st_mode) else None


def _named(flag: str, path: Path | None) -> str:
    """Return a flag with its path, once: the flag of one file among a folder's holds the path already."""
    label = label_of(str(path))
    return flag if flag.endswith(f" {label}") else f"{flag} {label}"


def _identity_of_new(path: Path) -> Identity | None:
    """Return the identity of a file that is still to be made: its folder's, and its name there."""
    target = Path(os.path.realpath(path))  # Path.resolve raises where links lead in a circle
    try:
        folder = target.parent.stat()
    except OSError:  # said where the file is to be written
        return None
    return folder.st_dev, folder.st_ino, target.name


def _read(ledgers: Sequence[str], inputs: Mapping[str, Path | str | None]) -> Iterator[tuple[str, Identity | None]]:
    """Yield what the call reads, in words, and its identity."""
    on_disk = [name for name in ledgers if not is_url(name)]
    for ledger in find_ledgers(on_disk) if on_disk else []:
        if ledger.path is not None:
            yield f"the ledger {ledger.label}", identity_of(ledger.path, ledger.label)
    if STDIN in ledgers:
        yield "the ledger on standard input", _identity_of_stdin()
    for flag, name in inputs.items():
        if name is not None:
            yield f"the file of {flag}", identity_of(Path(name), flag)


def _identity_of_stdin() -> Identity | None:
    """Return the identity of a file that standard input was redirected from."""
    try:
        found = os.fstat(sys.stdin.fileno())
    except (OSError, ValueError, AttributeError):
        return None
    return (found.st_dev, found.st_ino, "") if stat.S_ISREG(found.st_mode) else None
