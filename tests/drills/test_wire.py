"""Loopback servers: whole and cut answers, broken requests, faults that come to light, ports given back."""

import socket
import threading

import pytest
from fixtures.drills.wire import LOOPBACK, Answer, Ask, request, serving


def test_an_answer_comes_with_its_status_headers_and_body() -> None:
    def app(ask: Ask) -> Answer:
        return Answer(429, {"saw": [ask.method, ask.path, ask.headers["x-mark"], ask.body]}, {"Retry-After": "3"})

    with serving(app) as port:
        reply = request(port, "/path?secret=1", {"a": 1}, {"X-Mark": "m"})
    assert (reply.status, reply.headers["retry-after"], reply.whole) == (429, "3", True)
    assert reply.body == {"saw": ["POST", "/path", "m", {"a": 1}]}


@pytest.mark.parametrize("cut", [False, True])
def test_a_stream_that_was_cut_is_not_whole(cut: bool) -> None:  # noqa: FBT001
    lines = [{"token": number} for number in range(6)]
    with serving(lambda _: Answer(200, stream=lines, cut=cut)) as port:
        reply = request(port, "/", {})
    assert list(reply.lines) == lines
    assert reply.whole is not cut


def test_what_a_handler_raised_is_answered_500_and_raised_when_the_server_closes() -> None:
    def app(_: Ask) -> Answer:
        raise LookupError("in a handler")

    with pytest.raises(LookupError, match="in a handler"), serving(app) as port:
        assert request(port, "/").status == 500


@pytest.mark.parametrize("body", [b"{broken", b"[1]", b"\xff"])
def test_a_body_that_is_no_json_object_is_answered_400(body: bytes) -> None:
    with serving(lambda _: Answer(200)) as port, socket.create_connection((LOOPBACK, port), timeout=30) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        assert client.recv(64).startswith(b"HTTP/1.1 400 ")


def test_a_closed_server_gives_its_port_and_its_threads_back() -> None:
    before = threading.active_count()
    with serving(lambda _: Answer(200)) as port:
        request(port, "/")
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        request(port, "/")
