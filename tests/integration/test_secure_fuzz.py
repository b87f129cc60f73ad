"""Garbage, cuts and changed bytes on every port with TLS and in every compression: no exception, bounded memory."""

from __future__ import annotations

import json
import os
import random
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import BadStream
from penstock.stream import Deflate, Layers, Snappy, Tls
from tests.integration.daemon import Daemon, Nsqd, Nsqlookupd
from tests.integration.secure_client import SecureClient
from tests.kit.certificates import Authority

SECONDS = float(os.environ.get("FUZZ_SECONDS", "60"))
GROWTH = 24 << 20
WARM = 150  # conversations after which a process has what it needs
ENDINGS = (OSError, EOFError, BadStream, AssertionError, ssl.SSLError, ValueError)

V2 = [
    b"PUB fuzz\n\0\0\0\5hello", b"MPUB fuzz\n\0\0\0\x0d\0\0\0\1\0\0\0\1a", b"DPUB fuzz 5\n\0\0\0\1a", b"SUB fuzz c\n",
    b"RDY 5\n", b"NOP\n", b"CLS\n", b"FIN 0123456789abcdef\n", b"AUTH\n\0\0\0\1a", b'IDENTIFY\n\0\0\0\2{}',
    b"PUB " * 9000,
    bytes(3_000_000), b"PUB fuzz\n\x7f\xff\xff\xff",
]  # fmt: skip
V1 = [b"  V1IDENTIFY\n\0\0\0\2{}", b"  V1PING\n", b"REGISTER t c\n", b"UNREGISTER t c\n", b"  V1" + b"a" * 40_000]
HTTP = [
    b"GET /ping HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /pub?topic=fuzz HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    b"GET /stats HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /topics HTTP/1.0\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + b"a: b\r\n" * 5000,
]  # fmt: skip


def mangled(data: bytes, draw: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(draw.randrange(4)):
        if out:
            out[draw.randrange(len(out))] = draw.randrange(256)
    return bytes(out[: draw.randrange(len(out) + 1)] if draw.random() < 0.3 else out)


class Fuzzer:
    """Conversations on one port; `begin` gives the layers that a client speaks through, once they are there."""

    def __init__(self, port: int, words: list[bytes], begin: Callable[[socket.socket], Layers]) -> None:
        self._port = port
        self._words = words
        self._begin = begin
        self._draw = random.Random(port)

    def talk(self) -> None:
        draw = self._draw
        with socket.create_connection(("127.0.0.1", self._port), timeout=5) as wire, suppress(*ENDINGS):
            if draw.random() < 0.2:  # what is nothing at all
                wire.sendall(mangled(draw.choice([*self._words, b"\x16\x03\x01\x02\0\1\0", os.urandom(300)]), draw))
                return
            layers = self._begin(wire)
            for _ in range(draw.randrange(1, 6)):
                word = draw.choice(self._words)
                data = layers.encode(mangled(word, draw) if draw.random() < 0.5 else word)
                wire.sendall(mangled(data, draw) if draw.random() < 0.2 else data)
            wire.settimeout(0.02)
            for _ in layers.decode(wire.recv(65_536)):
                pass


def over_tls(context: ssl.SSLContext) -> Callable[[socket.socket], Layers]:
    def begin(wire: socket.socket) -> Layers:
        tls = Tls(context, server=False, name="localhost")
        tls.begin()
        while not tls.ready:
            wire.sendall(tls.outgoing())
            for _ in tls.decode(wire.recv(65_536)):
                pass
        wire.sendall(tls.outgoing())
        return Layers(tls)

    return begin


def negotiated(mode: str, context: ssl.SSLContext) -> Callable[[socket.socket], Layers]:
    """V2's way: IDENTIFY first; layers of a client that does not wait for what it is answered."""

    def begin(wire: socket.socket) -> Layers:
        wishes: dict[str, Any] = {word: True for word in ("snappy", "deflate") if word in mode}
        body = json.dumps({"feature_negotiation": True, "tls_v1": "tls" in mode, **wishes}).encode()
        wire.sendall(b"  V2IDENTIFY\n" + struct.pack(">I", len(body)) + body)
        file = wire.makefile("rb", buffering=0)
        size = struct.unpack(">I", exactly(file, 4))[0]
        exactly(file, size)
        layers = over_tls(context)(wire) if "tls" in mode else Layers()
        if wishes:
            layers.add(Snappy() if "snappy" in mode else Deflate(6))
        return layers

    return begin


def exactly(file: Any, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = file.read(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def daemons(tmp_path: Path, authority: Authority) -> Iterator[dict[str, Daemon]]:
    pair = authority.pair("localhost")
    flags = (f"--tls-cert={pair.cert}", f"--tls-key={pair.key}", "--max-client-memory=33554432")
    found: dict[str, Daemon] = {"nsqd": Nsqd(tmp_path, *flags), "nsqlookupd": Nsqlookupd(*flags)}
    yield found
    for daemon in found.values():
        assert daemon.stop() == 0
        daemon.assert_calm()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "port", "mode"),
    [
        ("nsqd", "tcp", "tls"), ("nsqd", "tcp", "snappy"), ("nsqd", "tcp", "deflate"), ("nsqd", "tcp", "tls snappy"),
        ("nsqd", "tcp", "tls deflate"), ("nsqd", "https", ""), ("nsqlookupd", "https", ""), ("nsqlookupd", "tcp", ""),
    ],
)  # fmt: skip
def test_a_port_stands_whatever_is_said_to_it(
    daemons: dict[str, Daemon], authority: Authority, program: str, port: str, mode: str
) -> None:
    # given a port, and clients that say what nobody should
    daemon, context = daemons[program], authority.client()
    words = HTTP if port == "https" else V2 if program == "nsqd" else V1
    begin = negotiated(mode, context) if mode else over_tls(context)
    fuzzer = Fuzzer(getattr(daemon, port), words, begin)
    for _ in range(WARM):
        fuzzer.talk()
    before, count, end = daemon.resident(), 0, time.monotonic() + SECONDS
    # when they do so for a while
    while time.monotonic() < end:
        fuzzer.talk()
        count += 1
    # then it has grown by little, and others are served
    assert count > SECONDS
    assert daemon.resident() - before < GROWTH
    if program == "nsqd":
        with SecureClient(daemon.tcp) as client:
            client.secure(context, deflate=True)
            assert client.publish("served", b"hello") == b"OK"
    assert daemon.get("/stats?format=json" if program == "nsqd" else "/topics")
