"""Calls of the command in processes that are forked from one that has imported it.

Most of a short call's time goes into imports. A forked call is a process of its own as any other: with its
own streams, folder and exit. What is decided as an interpreter starts can't be chosen for it.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

_ROOT = Path(__file__).parents[2]
_SERVER = "import sys; from tests.cli.warm import serve; serve(int(sys.argv.pop(1)))"
_LOADED = (
    "quietburn.cli.main", "quietburn.analysis.run", "quietburn.engine.duckdb_engine", "quietburn.judge.compare",
    "quietburn.judge.gate", "quietburn.alerts.bundle", "quietburn.alerts.prove",
)


@dataclass(frozen=True)
class Left:
    """What a call left behind: its exit status (negative: a signal) and its streams' bytes."""

    status: int
    out: bytes
    err: bytes


class WarmServer:
    """The process that forks, and the line to it; its environment is that of the calls, but for PATH."""

    def __init__(self, env: dict[str, str]) -> None:
        self._env = env
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-c", _SERVER, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=_ROOT, env=env, stdin=subprocess.DEVNULL)
        atexit.register(self._close)

    def fits(self, env: dict[str, str]) -> bool:
        """Whether a call with this environment can be forked: nothing but PATH may differ."""
        return self._env | {"PATH": ""} == env | {"PATH": ""}

    def call(self, cwd: Path, arguments: Sequence[str], stdin: bytes, path: str, timeout_s: float) -> Left:
        """Run the command in a folder; `path` is where it finds programs. Kills it and raises TimeoutError when late."""
        (in_read, in_write), (out_read, out_write), (err_read, err_write), (told_read, told_write) = (os.pipe() for _ in range(4))
        order = {"arguments": list(arguments), "cwd": str(cwd), "path": path}
        self._send(order, [in_read, out_write, err_write, told_write])
        with ThreadPoolExecutor(4) as pool, os.fdopen(told_read) as told:
            pool.submit(_feed, in_write, stdin)
            out, err = pool.submit(_drain, out_read), pool.submit(_drain, err_read)
            pid = int(told.readline())
            status = pool.submit(told.readline)
            with _killed_if_late(pid):
                return Left(int(status.result(timeout_s)), out.result(timeout_s), err.result(timeout_s))

    def _send(self, order: Mapping[str, object], streams: list[int]) -> None:
        with self._lock:
            socket.send_fds(self._control, [json.dumps(order).encode()], streams)
        for stream in streams:
            os.close(stream)

    def _close(self) -> None:
        self._control.close()
        self._process.wait()


_servers: list[WarmServer] = []


def warm_server(env: dict[str, str]) -> WarmServer | None:
    """Return the server for calls with this environment; None where one has to be started by itself.

    The first environment asked for is the server's.
    """
    if sys.platform != "linux":
        return None
    if not _servers:
        _servers.append(WarmServer(env))
    return _servers[0] if _servers[0].fits(env) else None


@contextmanager
def _killed_if_late(pid: int) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        raise


def _feed(target: int, content: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(target, "wb") as file:  # the program need not read all of it
        file.write(content)


def _drain(source: int) -> bytes:
    with os.fdopen(source, "rb") as file:
        return file.read()


# In the server's process


def serve(control: int) -> None:
    """Fork for every call that comes, until the other end closes."""
    for name in _LOADED:
        __import__(name)
    gc.freeze()  # what was imported is no garbage: a call need neither look through it nor copy its pages
    with socket.socket(fileno=control) as line:
        while True:
            message, streams, _, _ = socket.recv_fds(line, 1 << 20, 4)
            if not message:
                break
            if os.fork() == 0:
                line.close()
                _attend(json.loads(message), streams)
            for stream in streams:
                os.close(stream)
            _reap(os.WNOHANG)
    _reap(0)


def _reap(options: int) -> None:
    """Take leave of what attended a call, so that its time is counted as ours."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _attend(call: dict[str, Any], streams: list[int]) -> None:
    """Fork the program, and tell its process id and, once it has ended, its status."""
    *standard, told = streams
    pid = os.fork()
    if pid == 0:
        os.close(told)
        _become(call, standard)
    for stream in standard:
        os.close(stream)
    os.write(told, f"{pid}\n".encode())
    os.write(told, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())
    os._exit(0)


def _become(call: dict[str, Any], standard: list[int]) -> NoReturn:
    """Be the program from here on; what it raises to leave ends this process as it would end its own."""
    for number, stream in enumerate(standard):
        os.dup2(stream, number)
        os.close(stream)
    # Made anew, since a text stream keeps what it found at first: whether it can be rewound, for one.
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115 - a descriptor, to the end
        for number, (mode, old) in enumerate((("r", sys.stdin), ("w", sys.stdout), ("w", sys.stderr)))
    )
    os.chdir(call["cwd"])
    os.environ["PATH"] = call["path"]
    sys.argv[1:] = call["arguments"]
    sys.path[0] = call["cwd"]
    runpy.run_module("quietburn", run_name="__main__", alter_sys=True)
    sys.exit()
