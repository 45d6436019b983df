"""The real command in a process of its own, and small ledgers to give it."""

import ctypes
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.warm import Left, warm_server
from tests.missing import unavailable

QUIETBURN = [sys.executable, "-m", "quietburn"]
T0 = 1_788_833_640  # 2026-09-08T02:14:00Z
_TIMEOUT_S = 120
_UNSET = ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "PYTHONIOENCODING", "TZ", "PYTHONWARNINGS", "PYTEST_CURRENT_TEST")
_PR_CAPBSET_DROP = 24
_FILE_RIGHTS = (1, 2)  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: what lets root pass over permissions


@dataclass(frozen=True)
class Done:
    """What a call left behind."""

    status: int
    out: str
    err: str

    @property
    def report(self) -> Any:
        """The JSON report on standard output."""
        return json.loads(self.out)


def environment(**extra: str) -> dict[str, str]:
    """Return this process's environment without what changes the looks of output."""
    kept = {name: value for name, value in os.environ.items() if name not in _UNSET}
    return kept | {"LC_ALL": "C.UTF-8"} | extra


def run(cwd: Path, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Done:
    """Run the command in a folder; what it prints must be UTF-8.

    Forked where it can be: most of a short call's time is imports.
    """
    asked = env or environment()
    server = warm_server(asked)
    if server is not None:
        return _done(server.call(cwd, arguments, stdin, asked.get("PATH", ""), _TIMEOUT_S))
    return run_started(cwd, *arguments, stdin=stdin, env=asked)


def run_started(cwd: Path, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Done:
    """Run the command as `run` does, by an interpreter that is started for this call."""
    done = subprocess.run(
        [*QUIETBURN, *arguments], cwd=cwd, input=stdin, capture_output=True, timeout=_TIMEOUT_S, check=False,
        env=env or environment(),
    )
    return _done(Left(done.returncode, done.stdout, done.stderr))


def run_all(cwd: Path, calls: Sequence[Sequence[str]]) -> list[Done]:
    """Run several calls side by side and return what each left behind, in their order."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda arguments: run(cwd, *arguments), calls))


def run_without_rights(cwd: Path, *arguments: str) -> Done:
    """Run the command so that permissions bind it, also where the tests run as root."""
    if os.geteuid() == 0 and not _can_give_up_rights():
        unavailable("these tests run as root and may not give up its right to pass over permissions")
    done = subprocess.run(
        [*QUIETBURN, *arguments], cwd=cwd, input=b"", capture_output=True, timeout=_TIMEOUT_S, check=False,
        env=environment(), preexec_fn=_give_up_rights if os.geteuid() == 0 else None,
    )
    return _done(Left(done.returncode, done.stdout, done.stderr))


def _done(left: Left) -> Done:
    return Done(left.status, left.out.decode("utf-8"), left.err.decode("utf-8"))


def _can_give_up_rights() -> bool:
    child = os.fork()
    if child == 0:
        try:
            _give_up_rights()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _give_up_rights() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    for right in _FILE_RIGHTS:
        if library.prctl(_PR_CAPBSET_DROP, right, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def interruptible() -> None:
    """Let Ctrl-C reach a child, whatever this process inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def jsonl(events: Iterable[dict[str, Any]]) -> bytes:
    """Return events as a ledger, one a line."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def write(path: Path, events: Iterable[dict[str, Any]]) -> Path:
    """Write a ledger; one whose name ends in .gz is compressed."""
    text = jsonl(events)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def call(second: float, **fields: Any) -> dict[str, Any]:
    """Return one call to the generate route that ended so many seconds into the night: in time, not empty."""
    usual = {"ts": T0 + second, "route": "complete", "status": 200, "latency_ms": 300, "deadline_ms": 1000, "answer_chars": 80}
    return usual | fields


def late(second: float, **fields: Any) -> dict[str, Any]:
    """Return a call that was answered 200 two seconds after its deadline of one."""
    return call(second, latency_ms=3000, **fields)


def is_one_line(text: str) -> bool:
    """Whether text is exactly one line of the command's own."""
    return text.startswith("quietburn: ") and text.endswith("\n") and text.count("\n") == 1
