"""A short night through a real nginx: the gateway lab in real time, and every fate that a call can have."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from http.client import IncompleteRead
from pathlib import Path

import pytest
from fixtures.drills.gateway.backends import SlowBackend
from fixtures.drills.gateway.callers import KEY
from fixtures.drills.gateway.metering import Meter, Spans
from fixtures.drills.gateway.protocols import generate_backend
from fixtures.drills.gateway.server import Gateway, by_attempts
from fixtures.drills.ledger import ledger
from fixtures.drills.realclock import RealClock
from fixtures.drills.wire import Answer, App, Ask, Reply, request, serving
from fixtures.gateways.nginx import free_port, serving_nginx, wait_for_lines

_BOUND_S = 20.0
BACKEND_S = 0.05  # what each answer takes at least
SDK = {"User-Agent": "OpenAI/Python 3.57.0", "x-stainless-retry-count": "0", "x-stainless-read-timeout": "60"}
# Who called for what, in order; every one is a line of the log.
CALLS = (
    "usable", "late", "refused", "retried", "failed over", "no backend", "left", "streamed", "cut stream", "cut short",
    "broke off", "probe", "listed",
)

# `dead` refuses connections; a server with max_fails=0 is asked each time anew, and its backup only after it.
_SERVERS = """
upstream gateway {{ server 127.0.0.1:{gateway}; }}
upstream failover {{ server 127.0.0.1:{dead} max_fails=0; server 127.0.0.1:{gateway} backup; }}
upstream dead {{ server 127.0.0.1:{dead}; }}
upstream streams {{ server 127.0.0.1:{streams}; }}
{formats}
server {{
  listen 127.0.0.1:{port};
  proxy_http_version 1.1;
  proxy_buffering off;
  {logs}
  location /v1/ {{ proxy_pass http://gateway; }}
  location /failover/ {{ proxy_pass http://failover; }}
  location /dead/ {{ proxy_pass http://dead; }}
  location /streams/ {{ proxy_pass http://streams; }}
  location = /healthz {{ return 200; }}
}}
"""


@dataclass
class Held:
    """An app that can be made to wait before it answers."""

    app: App
    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    free: threading.Event = field(default_factory=threading.Event)

    def __call__(self, ask: Ask) -> Answer:
        """Answer once that is allowed."""
        self.asked.release()
        self.free.wait(_BOUND_S)
        return self.app(ask)


@dataclass(frozen=True)
class Format:
    """An nginx configuration that defines a log format and, in a server, writes a log in it."""

    definition: str
    access_log: str


@dataclass
class Streams:
    """Answers with a stream of events: a whole one, a cut one, one that waits; or with fewer bytes than it says."""

    free: threading.Event = field(default_factory=threading.Event)

    def __call__(self, ask: Ask) -> Answer:
        """Answer as the path says."""
        kind = ask.path.split("/")[2]
        if kind == "short":
            return Answer(200, {"text": "Par"}, {"Content-Length": "1000"})
        words = self._waiting() if kind == "waiting" else iter([{"delta": "Paris"}, {"delta": "."}])
        return Answer(200, headers={"Content-Type": "text/event-stream"}, stream=words, cut=kind == "cut")

    def _waiting(self) -> Iterator[dict[str, str]]:
        yield {"delta": "Paris"}
        self.free.wait(_BOUND_S)


@contextmanager
def _refusing_port() -> Iterator[int]:
    """Give a port that is taken, so that nobody else gets it, and on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


def play(folder: Path, formats: Mapping[Path, Format]) -> None:
    """Make every call of CALLS through nginx, which writes a log in each format; returns when all lines are written."""
    with ExitStack() as stack:
        folder.mkdir()
        backend = Held(SlowBackend(RealClock(), BACKEND_S))
        backend.free.set()
        worker = stack.enter_context(serving(backend))
        meter = stack.enter_context(closing(Meter(folder / "meter.sqlite", Spans(), flush=False)))
        book = stack.enter_context(ledger(folder / "gateway.jsonl"))
        gateway = Gateway(RealClock(), book, meter, [generate_backend("worker", worker)], by_attempts)
        streams = Streams()
        port = free_port()
        servers = _SERVERS.format(
            gateway=stack.enter_context(serving(gateway)), streams=stack.enter_context(serving(streams)),
            dead=stack.enter_context(_refusing_port()), port=port,
            formats="\n".join(one.definition for one in formats.values()),
            logs="\n".join(one.access_log for one in formats.values()),
        )
        stack.enter_context(serving_nginx(folder / "nginx", servers, port))
        log = next(iter(formats))
        _call_all(port, gateway, backend, log)
        _call_for_streams(port, streams, log)
        assert _answer_of(port, "/healthz", "User-Agent: kube-probe/1.29\r\n").startswith(b"HTTP/1.1 200")
        assert _answer_of(port, "/v2/models").startswith(b"HTTP/1.1 404")
        for path in formats:
            wait_for_lines(path, len(CALLS))


def _call_all(port: int, gateway: Gateway, backend: Held, log: Path) -> None:
    """Make the calls one after the other, so that the log's order is theirs."""
    assert _call(port, "usable").status == 200
    assert _call(port, "late", {"x-stainless-read-timeout": "0.01"}).status == 200
    gateway.bound = 0  # no more is let in
    assert _call(port, "refused", name="again").status == 429
    assert _call(port, "retried", {"x-stainless-retry-count": "1"}, name="again").status == 429
    gateway.bound = None
    assert _call(port, "failed over", path="/failover/v1/complete").status == 200
    assert _answer_of(port, "/dead/v1/complete", "Content-Length: 0\r\n", method="POST").startswith(b"HTTP/1.1 502")
    _leave(port, backend)
    wait_for_lines(log, CALLS.index("left") + 1)
    backend.free.set()


def _call_for_streams(port: int, streams: Streams, log: Path) -> None:
    assert _call(port, "streamed", path="/streams/whole/v1/complete").whole
    assert not _call(port, "cut stream", path="/streams/cut/v1/complete").whole
    with pytest.raises(IncompleteRead):
        _call(port, "cut short", path="/streams/short/v1/complete")
    with _calling(port, "broke off", "/streams/waiting/v1/complete") as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
    wait_for_lines(log, CALLS.index("broke off") + 1)
    streams.free.set()


def _body(name: str) -> dict[str, object]:
    return {"id": name, "prompt": "Which page covers the refund rule?", "tokens": 8, "deadline_ms": 60_000}


def _call(
    port: int, call: str, headers: Mapping[str, str] | None = None, *, path: str = "/v1/complete", name: str | None = None
) -> Reply:
    sent = KEY | SDK | {"X-Request-ID": name or call.replace(" ", "-"), "Idempotency-Key": f"key-{name or call}"}
    return request(port, path, _body(call), sent | dict(headers or {}))


def _answer_of(port: int, path: str, headers: str = "", *, method: str = "GET") -> bytes:
    """Return what nginx itself says, which is no JSON."""
    with socket.create_connection(("127.0.0.1", port), timeout=_BOUND_S) as connection:
        connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n{headers}\r\n".encode())
        return b"".join(iter(lambda: connection.recv(4096), b""))


def _leave(port: int, backend: Held) -> None:
    """Call, and go as soon as a backend works on it."""
    while backend.asked.acquire(blocking=False):
        pass  # those of earlier calls
    backend.free.clear()
    with _calling(port, "left", "/v1/complete"):
        assert backend.asked.acquire(timeout=_BOUND_S)


@contextmanager
def _calling(port: int, call: str, path: str) -> Iterator[socket.socket]:
    """Make a call whose caller is gone at the block's end, whatever came."""
    raw = json.dumps(_body(call)).encode()
    lines = {**KEY, **SDK, "Host": "lab", "X-Request-ID": call, "Content-Length": str(len(raw))}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    with socket.create_connection(("127.0.0.1", port), timeout=_BOUND_S) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + raw)
        yield connection
