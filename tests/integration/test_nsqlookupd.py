"""nsqlookupd as its users meet it: a process, sockets, signals."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.daemon import Nsqlookupd
from tests.integration.http_client import Answer, Http
from tests.unit.protocol.test_v1 import identify


@pytest.fixture
def lookupd() -> Iterator[Nsqlookupd]:
    daemon = Nsqlookupd()
    yield daemon
    if daemon.process.poll() is None:
        assert daemon.stop() == 0
    daemon.assert_calm()


class Peer:
    """An nsqd, as far as nsqlookupd sees it."""

    def __init__(self, port: int, magic: bytes = b"  V1") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._file = self._socket.makefile("rb")
        self._socket.sendall(magic)

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def ask(self, data: bytes, answers: int = 1) -> list[bytes]:
        self._socket.sendall(data)
        return [self.answer() for _ in range(answers)]

    def answer(self) -> bytes:
        head = self._file.read(4)
        return self._file.read(struct.unpack(">i", head)[0]) if head else b"the end"

    def end(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)


def revision(answer: Answer) -> str:
    return answer.headers["x-penstock-revision"]


def test_an_nsqd_is_told_of_until_its_connection_ends(lookupd: Nsqlookupd) -> None:
    # given an nsqd that says who it is and what it has
    peer = Peer(lookupd.tcp)
    about, *oks = peer.ask(identify(tcp_port=7) + b"REGISTER t c\nPING\n", 3)
    assert b'"tcp_port":%d' % lookupd.tcp in about
    assert b'"http_port":%d' % lookupd.http in about
    assert oks == [b"OK", b"OK"]
    assert lookupd.producers("t") == [7]
    # and somebody who waits for a change
    with closing(Http(lookupd.http)) as http:
        first = http.get("/lookup?topic=t")
        http.send("GET", f"/lookup?topic=t&wait=10s&since={revision(first)}")
        # when its connection ends
        peer.close()
        # then that is what is told
        answer = http.answer()
        assert answer.json() == {"channels": ["c"], "producers": []}
        assert revision(answer) != revision(first)


def test_plain_clients_see_no_difference(lookupd: Nsqlookupd) -> None:
    with closing(Http(lookupd.http)) as http:
        answer = http.get("/lookup?topic=t")
        assert (answer.status, answer.message) == (404, "TOPIC_NOT_FOUND")
        assert http.post("/topic/create?topic=t").body == b""
        answer = http.get("/lookup?topic=t")
        assert answer.body == b'{"channels":[],"producers":[]}'
        assert answer.headers["content-type"] == "application/json; charset=utf-8"
        assert answer.headers["x-nsq-content-type"] == "nsq; version=1.0"


def test_who_waits_is_answered_when_it_stops(lookupd: Nsqlookupd) -> None:
    with closing(Http(lookupd.http)) as http:
        http.send("GET", f"/lookup?topic=t&wait=60s&since={revision(http.get('/lookup?topic=t'))}")
        peer = Peer(lookupd.tcp)
        assert peer.ask(b"PING\n") == [b"OK"]
        assert lookupd.stop() == 0
        assert http.answer().status == 404
        assert peer.answer() == b"the end"
        peer.close()


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"  V2", b"E_BAD_PROTOCOL"),
        (b"  V1FOO\n", b"E_INVALID invalid command FOO"),
        (b"  V1IDENTIFY\n\xff\xff\xff\xff", b"E_BAD_BODY IDENTIFY invalid body size -1"),
        (b"  V1IDENTIFY\n\0\0", b"E_BAD_BODY IDENTIFY failed to read body size"),
    ],
)
def test_an_error_is_told_and_ends_the_connection(lookupd: Nsqlookupd, sent: bytes, told: bytes) -> None:
    with closing(Peer(lookupd.tcp, sent)) as peer:
        peer.end()
        assert peer.answer() == told
        assert peer.answer() == b"the end"


def test_silence_is_told_to_those_who_wait() -> None:
    lookupd = Nsqlookupd("--inactive-producer-timeout=500ms")
    with closing(Peer(lookupd.tcp)) as peer, closing(Http(lookupd.http)) as http:
        peer.ask(identify() + b"REGISTER t\n", 2)
        since = revision(http.get("/lookup?topic=t"))
        assert http.get(f"/lookup?topic=t&wait=10s&since={since}").json()["producers"] == []
    assert lookupd.stop() == 0
    lookupd.assert_calm()


def test_it_listens_on_unix_sockets_and_says_its_broadcast_address(tmp_path: Path) -> None:
    lookupd = Nsqlookupd(f"--http-address={tmp_path}/http", "--broadcast-address=b")
    assert (tmp_path / "http").is_socket()
    with closing(Peer(lookupd.tcp)) as peer:
        (about,) = peer.ask(identify())
    assert b'"broadcast_address":"b"' in about
    assert b'"http_port":-1' in about
    assert lookupd.stop() == 0
    assert not (tmp_path / "http").exists()
