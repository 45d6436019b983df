"""A real nginx, run from a folder of its own beside whatever the system runs, or a clear word about its absence."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.missing import unavailable

_BOUND_S = 20.0  # a safety net: nginx starts and writes in milliseconds
_SYSTEM_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/sbin")  # where Debian has it; not in every user's PATH
# Everything that nginx writes lies under its prefix. One worker, so that its memory of a dead server is one.
_CONFIG = """
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log notice;
{user}
events {{ worker_connections 128; }}
http {{
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  {http}
}}
"""


def require_nginx() -> str:
    """Return nginx's path. Where it is missing the test is skipped, but under CI=true it fails."""
    found = shutil.which("nginx", path=os.pathsep.join((os.environ.get("PATH", ""), *_SYSTEM_FOLDERS)))
    if found is None:
        unavailable("nginx is not installed, so its logs can't be tried here: apt-get install --no-install-recommends nginx")
    return found


def free_port() -> int:
    """Return a port of the loopback that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def serving_nginx(folder: Path, http: str, port: int) -> Iterator[None]:
    """Run nginx with these directives of its http block, of which one listens on `port`, until the block ends."""
    folder.mkdir()
    # Root would hand its workers to a user who can't enter the test's folder.
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(_CONFIG.format(user=user, http=http), encoding="utf-8")
    command = [require_nginx(), "-p", f"{folder}/", "-e", "error.log", "-c", "nginx.conf"]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        _wait_until_listening(process, port, folder)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_BOUND_S)


def _wait_until_listening(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    until = time.monotonic() + _BOUND_S
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    words = "".join(path.read_text(errors="replace") for path in (folder / "said", folder / "error.log") if path.exists())
    pytest.fail(f"nginx does not serve: {words}")


def wait_for_lines(path: Path, count: int) -> None:
    """Wait until a log holds so many lines: nginx writes one after the caller has its answer."""
    until = time.monotonic() + _BOUND_S
    while (found := path.read_bytes().count(b"\n") if path.exists() else 0) < count:
        if time.monotonic() > until:
            pytest.fail(f"{path.name} holds {found} of {count} lines")
        time.sleep(0.01)
