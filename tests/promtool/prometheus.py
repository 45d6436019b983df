"""A real Prometheus on loopback, asked over its HTTP API."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.missing import unavailable

_WAIT_S = 60


@contextmanager
def prometheus_over(data: Path) -> Iterator[str]:
    """Run Prometheus on a folder of blocks, scraping nothing; give its address, and end it."""
    program = shutil.which("prometheus")
    if program is None:
        unavailable("prometheus is not installed: apt-get install prometheus")
    (data / "empty.yml").write_text("scrape_configs: []\n", encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    server = subprocess.Popen(
        [program, f"--config.file={data / 'empty.yml'}", f"--storage.tsdb.path={data}", "--storage.tsdb.retention.time=100y",
         f"--web.listen-address={address}", "--log.level=error"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait_until_ready(address, server)
        yield address
    finally:
        server.terminate()
        server.wait(_WAIT_S)


def _wait_until_ready(address: str, server: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + _WAIT_S
    while time.monotonic() < end:
        assert server.poll() is None, "prometheus ended by itself"
        try:
            with urlopen(f"http://{address}/-/ready", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (URLError, OSError):
            time.sleep(0.1)
    raise AssertionError("prometheus is not ready")


def value_of(address: str, expression: str, at: float) -> float:
    """Return the only value of an expression at a time, in seconds since 1970."""
    asked = urlencode({"query": expression, "time": at})
    with urlopen(f"http://{address}/api/v1/query?{asked}", timeout=_WAIT_S) as answer:
        result = json.load(answer)["data"]["result"]
    assert len(result) == 1, (expression, result)
    return float(result[0]["value"][1])
