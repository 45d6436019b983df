"""Find the files that a call names, and open them."""

import atexit
import glob
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from quietburn.common import temporary
from quietburn.errors import InputError

if TYPE_CHECKING:
    import duckdb

_LEDGER_SUFFIXES = (".jsonl", ".ndjson", ".log")
_COMPRESSED = (".gz", ".zst")
STDIN = "-"


@dataclass(frozen=True)
class LedgerFile:
    """One ledger to read; `label` is what reports call it."""

    label: str
    path: Path | None  # None: standard input
    found: bool = False  # in a folder or by a pattern, not named itself: an empty one is no fault of the call

    @property
    def size(self) -> int | None:
        """Return the size in bytes as it lies on disk, None where unknown."""
        return self.path.stat().st_size if self.path else None

    @property
    def is_compressed(self) -> bool:
        """Whether the bytes on disk are not the ledger's own."""
        return self.path is not None and self.path.suffix in _COMPRESSED


def find_ledgers(arguments: list[str]) -> list[LedgerFile]:
    """Return the files that the arguments name, folders looked into, each file once.

    Raises InputError for what is missing, empty of ledgers, or not a regular file.
    """
    if not arguments:
        raise InputError("no ledger given. Name at least one JSONL file, a folder of them, or - for standard input.")
    found: dict[str, LedgerFile] = {}
    for argument in arguments:
        for ledger in _expand(argument):
            key = str(ledger.path.resolve()) if ledger.path else STDIN
            found.setdefault(key, ledger)
    return list(found.values())


def _expand(argument: str) -> list[LedgerFile]:
    if argument == STDIN:
        return [LedgerFile("-", None)]
    if not argument:
        raise InputError("a ledger name is empty (an unset variable?). Name a JSONL file, a folder of them, or -.")
    if is_url(argument):
        return [_remote(argument)]
    return _on_disk(argument)


def _on_disk(argument: str) -> list[LedgerFile]:
    path = Path(argument)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if set("*?[") & set(argument):
            return _by_pattern(argument)
        raise InputError(f"{label_of(argument)}: no such file. Check the name, or name a folder that contains ledgers.") from None
    except OSError as problem:
        raise InputError(f"{label_of(argument)}: can't be opened ({os_words(problem)}). Name a readable file.") from None
    if stat.S_ISDIR(mode):
        return _in_folder(path, argument)
    if not stat.S_ISREG(mode):
        raise InputError(f"{label_of(argument)}: not a regular file. Copy its content into a file, or pipe it in and name '-'.")
    return [LedgerFile(label_of(argument), path)]


def label_of(name: str) -> str:
    r"""Return a file's name as text: bytes that are not UTF-8 are shown as their escape (`\xff`)."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _in_folder(folder: Path, argument: str) -> list[LedgerFile]:
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError as problem:
        raise InputError(f"{label_of(argument)}: can't be listed ({os_words(problem)}). Name the files themselves.") from None
    ledgers = [folder / name for name in sorted(names, key=_age) if _LEDGER_NAME.fullmatch(name) and (folder / name).is_file()]
    if not ledgers:
        wanted = ", ".join(f"*{suffix}" for suffix in _LEDGER_SUFFIXES)
        raise InputError(f"{label_of(argument)}: contains no ledger ({wanted}, also .gz and .zst). Name the files themselves.")
    return [LedgerFile(label_of(str(path)), path, found=True) for path in ledgers]


def _by_pattern(pattern: str) -> list[LedgerFile]:
    """Return the files that a pattern names which no shell has expanded (`logs/*.jsonl`)."""
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - unlike Path.glob it takes absolute patterns
    paths = [Path(name) for name in sorted(found, key=_age)]
    files = [path for path in paths if path.is_file()]
    if not files:
        raise InputError(f"{label_of(pattern)}: no file matches this pattern. Check it, or name a folder that contains ledgers.")
    return [LedgerFile(label_of(str(path)), path, found=True) for path in files]


_URL = re.compile(r"(s3|gs|gcs|r2|https?|hf|azure|az)://", re.IGNORECASE)


def is_url(argument: str) -> bool:
    """Whether an argument is an address, and no file's name."""
    return _URL.match(argument) is not None


_LEDGER_NAME = re.compile(
    r"(?P<ledger>.+\.(?:jsonl|ndjson|log))"
    r"(?:[.-](?P<turn>[0-9]{1,3}|[0-9]{4}-?[0-9]{2}-?[0-9]{2}(?:[T_.-]?[0-9]{2,6})?))?(?:\.gz|\.zst)?"
)
_LONGEST_COUNT = 3


def _age(name: str) -> tuple[str, int, int | str]:
    """Return what sorts a rotated set in time order: dates up, counts down, and the file being written last."""
    match = _LEDGER_NAME.fullmatch(name)
    if match is None:
        return name, 2, 0
    turn = match["turn"]
    if turn is None:
        return match["ledger"], 2, name
    return (match["ledger"], 1, -int(turn)) if len(turn) <= _LONGEST_COUNT else (match["ledger"], 0, turn)


def followers(ledgers: list[LedgerFile]) -> dict[Path, LedgerFile]:
    """Return of each file of a rotated set the one that was written after it, where both are read."""
    pairs = pairwise(ledgers)
    return {one.path: other for one, other in pairs if one.path and other.path and _set_of(one.path) == _set_of(other.path)}


def _set_of(path: Path) -> tuple[Path, str]:
    return path.parent, _age(path.name)[0]


def log_of(label: str) -> str:
    """Return the log that a file belongs to: its name without what rotation and compression add to it."""
    folder, slash, name = label.rpartition("/")
    match = _LEDGER_NAME.fullmatch(name)
    return folder + slash + (match["ledger"] if match else name)


MOST_FETCHED = 1 << 30  # it is held in memory, as httpfs gives it


def _remote(address: str) -> LedgerFile:
    """Return a copy of what lies behind an address, where DuckDB's httpfs is installed."""
    import duckdb

    label = label_of(address.split("?", 1)[0])  # a query may hold a key
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    try:
        connection.execute("LOAD httpfs")
        content = fetched(connection, address, label)
    except duckdb.Error as problem:
        words = "needs DuckDB's httpfs, which is not installed" if "httpfs" in str(problem) else "can't be fetched"
        raise InputError(
            f"{label}: {words}. Download the ledger and name the file, or install the extension once: "
            "python -c \"import duckdb; duckdb.connect().install_extension('httpfs')\""
        ) from None
    finally:
        connection.close()
    folder = temporary.make_folder()
    atexit.register(temporary.remove, folder)
    path = folder / Path(label).name
    path.write_bytes(content)
    return LedgerFile(label, path)


def fetched(connection: "duckdb.DuckDBPyConnection", address: str, label: str) -> bytes:
    """Return what lies behind an address. Raises InputError before more is fetched than memory should hold."""
    ((size,),) = connection.execute("SELECT sum(size) FROM read_blob(?)", [address]).fetchall()  # asks for no content
    if size is not None and size > MOST_FETCHED:
        raise InputError(
            f"{label}: is {size >> 20:,} MiB; at most {MOST_FETCHED >> 20:,} MiB are fetched. "
            "Download the ledger and name the file."
        )
    found = connection.execute("SELECT content FROM read_blob(?)", [address]).fetchall()
    return b"".join(content for (content,) in found)


def os_words(problem: OSError) -> str:
    """Return an operating system error in lower-case words."""
    words = os.strerror(problem.errno) if problem.errno else str(problem)
    return words[:1].lower() + words[1:]


@contextmanager
def opened(ledger: LedgerFile) -> Iterator[BinaryIO]:
    """Open a ledger's bytes, decompressed. Raises InputError naming the file."""
    if ledger.path is None:
        if sys.stdin is None:
            raise InputError("-: standard input is closed. Pipe a ledger in, or name a file.")
        # Unbuffered: one read a call, so that Ctrl-C is answered between two reads of a slow pipe.
        yield getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        return
    try:
        with _open(ledger.path) as stream:
            yield stream
    except (gzip.BadGzipFile, zlib.error):
        raise InputError(_not_compressed(ledger)) from None
    except EOFError:
        raise InputError(f"{ledger.label}: the compressed data ends early; the file is truncated. Copy it again.") from None
    except OSError as problem:
        if problem.errno is None and ledger.is_compressed:  # the decompressor's own words, which may quote the data
            raise InputError(_not_compressed(ledger)) from None
        raise InputError(f"{ledger.label}: can't be read ({os_words(problem)}). Name a readable file.") from None


def _not_compressed(ledger: LedgerFile) -> str:
    suffix = ledger.path.suffix if ledger.path else ""
    return (
        f"{ledger.label}: can't be decompressed; it is not a {suffix} file, or it is truncated or damaged. "
        f"Copy it again, or rename it without {suffix} if it is plain text."
    )


MAX_EXPANSION = 200  # logs compress ten- to fiftyfold; a bomb of gzip a thousandfold
_UNCHECKED = 64 << 20


class _Bounded(io.RawIOBase):
    """A decompressed stream that refuses to grow out of all proportion to its file."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream, self._path = stream, path
        self._limit = max(_UNCHECKED, MAX_EXPANSION * path.stat().st_size)
        self._given = 0

    def read(self, size: int = -1) -> bytes:
        """Return decompressed bytes. Raises InputError past the limit."""
        data = self._stream.read(size)
        self._given += len(data)
        if self._given > self._limit:
            raise InputError(
                f"{label_of(str(self._path))}: expands to more than {MAX_EXPANSION} times its size; it looks like a "
                "decompression bomb. Decompress it yourself if you trust it, and name the result."
            )
        return data

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the base takes any buffer; only memoryviews come
        """Fill a buffer, as a buffered reader of lines asks; return how much was there."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the stream below."""
        self._stream.close()
        super().close()


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, _Bounded(cast(BinaryIO, gzip.open(path, "rb")), path))
    if path.suffix == ".zst":
        import pyarrow as pa

        return cast(BinaryIO, _Bounded(cast(BinaryIO, pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")), path))
    return path.open("rb")
