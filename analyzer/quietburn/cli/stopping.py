"""SIGTERM ends the command in 143 with one line, within two seconds, whatever runs.

A signal handler of Python runs between two steps of the main thread, which may be far apart: in a
statement of DuckDB, or while a pool waits for its threads. So a thread of its own is woken by the
signal too, and ends the process when the main thread has not unwound in time.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from quietburn.common import temporary
from quietburn.errors import ExitStatus

_GRACE_S = 1.0
_ending = threading.Lock()
_asked = threading.Event()


class Terminated(BaseException):
    """SIGTERM has come. No `Exception`: nothing that guards a part of the run may take it for a fault of that part."""


@contextmanager
def answering_sigterm() -> Iterator[None]:
    """Run what is within; once SIGTERM has come, end the process in 143, however that ended.

    For the main thread. Afterwards the signal does what it does by itself.
    """
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    threading.Thread(target=_watch, args=(woken,), daemon=True).start()
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, _stop)
    sys.unraisablehook = _silent_when_stopped
    try:
        yield
    except Terminated:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        if _asked.is_set():
            _end()
        os.close(wake)


def _stop(_number: int, _frame: FrameType | None) -> None:
    if not _asked.is_set():  # a second one must not disturb the cleaning up after the first
        _asked.set()
        raise Terminated


def _watch(woken: int) -> None:
    """Wait for SIGTERM (the system writes each signal's number) and give the main thread a moment to unwind."""
    while numbers := os.read(woken, 64):
        if signal.SIGTERM in numbers:
            _asked.set()
            time.sleep(_GRACE_S)
            _end()
    os.close(woken)


def _end() -> NoReturn:
    """End the process at once: no thread is waited for, and what was not yet written out is dropped."""
    _ending.acquire()  # for good: the main thread and the one that watches may both come here
    temporary.remove_all()
    try:
        os.write(2, b"quietburn: terminated.\n")  # sys.stderr's buffer may be held by what was stopped
    finally:
        os._exit(ExitStatus.TERMINATED)


def _silent_when_stopped(problem: "sys.UnraisableHookArgs") -> None:
    """Say nothing of a Terminated that could not be raised where it came (in a destructor, say)."""
    if problem.exc_type is not Terminated:
        sys.__unraisablehook__(problem)
