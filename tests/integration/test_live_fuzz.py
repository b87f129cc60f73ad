"""Garbage, dribbles and conversations gone wrong on a live socket: no exception, no growth, and others are served."""

from __future__ import annotations

import json
import random
import re
import socket
import struct
import time
import urllib.parse
import urllib.request
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.daemon import Nsqd

GROWTH = 6 << 20  # in a minute, some 200 bytes kept of each conversation exceed that
LINGERING = 30  # connections that stay open beside the one that is talking

_SIZES = (0, 1, 2**31 - 1, 2**31, 2**32 - 1)
_MESSAGE = re.compile(rb"\x00\x00\x00\x02.{10}([0-9a-f]{16})", re.DOTALL)


class Fuzzer:
    """Conversations from a seed. Ids of messages that came are used in later ones, so that some hit."""

    def __init__(self, port: int, seed: int) -> None:
        self._port = port
        self._rng = random.Random(seed)
        self._ids = deque([b"0" * 16], maxlen=50)
        self._open: deque[socket.socket] = deque()

    def talk(self) -> None:
        """One more conversation, and one of those before ends."""
        rng = self._rng
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=10)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open.append(connection)
        pieces = rng.choice([self._garbage, self._dribble, self._mutated])()
        try:
            for piece in pieces:
                connection.sendall(piece)
                self._listen(connection)
        except OSError:
            pass  # it has hung up, as it should on most of this
        while len(self._open) > LINGERING:
            self._end(self._open.popleft())

    def close(self) -> None:
        while self._open:
            self._end(self._open.popleft())

    def _end(self, connection: socket.socket) -> None:
        if self._rng.random() < 0.5:  # abruptly
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    def _listen(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        with suppress(BlockingIOError):
            self._ids.extend(_MESSAGE.findall(connection.recv(1 << 16)))
        connection.settimeout(10)

    # --- what is said

    def _garbage(self) -> list[bytes]:
        rng = self._rng
        start = rng.choice([b"", b"  V2", b"  V1", b"  V2PUB t\n", b"GET / HTTP/1.1\r\n\r\n"])
        return [start + rng.randbytes(rng.choice([1, 100, 20_000]))]

    def _dribble(self) -> list[bytes]:
        said = self._conversation()[:300]
        return [said[at : at + 1] for at in range(len(said))]

    def _mutated(self) -> list[bytes]:
        said = bytearray(self._conversation())
        for _ in range(self._rng.randint(1, 4)):
            self._mutate(said)
        cut = self._rng.randrange(len(said) + 1)
        return [bytes(said[:cut]), bytes(said[cut:])]

    def _mutate(self, said: bytearray) -> None:
        rng = self._rng
        at = rng.randrange(len(said) + 1)
        match rng.randrange(5):
            case 0:
                said[at : at + 1] = rng.randbytes(1)
            case 1:
                del said[at : at + rng.randint(1, 8)]
            case 2:
                said[at:at] = said[at : at + rng.randint(1, 40)]
            case 3:
                said[at : at + 4] = struct.pack(">I", rng.choice(_SIZES))
            case _:
                said[at:at] = rng.choice([b"\n", b" ", b"\x00", b"-1", b"9" * 30])

    def _conversation(self) -> bytes:
        commands = [self._command() for _ in range(self._rng.randint(1, 20))]
        if self._rng.random() < 0.7:
            commands.insert(0, b"SUB fuzzed c\nRDY %d\n" % self._rng.choice([0, 1, 50, 2500]))
        return b"  V2" + b"".join(commands)

    def _command(self) -> bytes:
        rng = self._rng
        id_, body = rng.choice(self._ids), rng.randbytes(rng.choice([1, 20, 3000]))
        several = struct.pack(">I", 3) + 3 * _sized(body)
        features = {"feature_negotiation": True, "heartbeat_interval": 1000, "msg_timeout": rng.choice([0, 1000])}
        return rng.choice(
            [
                b"FIN " + id_ + b"\n",
                b"REQ " + id_ + b" %d\n" % rng.choice([0, 10, 10**9]),
                b"TOUCH " + id_ + b"\n",
                b"PUB fuzzed\n" + _sized(body),
                b"MPUB fuzzed\n" + _sized(several),
                b"DPUB fuzzed %d\n" % rng.choice([1, 100, 3_600_000]) + _sized(body),
                b"SUB fuzzed d#ephemeral\n",
                b"RDY %d\n" % rng.choice([0, 1, 2500, 2501]),
                b"IDENTIFY\n" + _sized(json.dumps(features).encode()),
                b"AUTH\n" + _sized(b"secret"),
                rng.choice([b"CLS\n", b"NOP\n", b"NOP\r\n", b"SUB fuzzed\n", b"RDY\n", b"PUB\n"]),
            ]
        )


def _sized(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def clear(nsqd: Nsqd) -> None:
    """Topics that the talk made are no growth that counts."""
    for topic in nsqd.stats("&include_clients=false")["topics"]:
        ask = urllib.request.Request(
            f"http://127.0.0.1:{nsqd.http}/topic/delete?topic={urllib.parse.quote(topic['topic_name'])}",
            method="POST",
        )
        urllib.request.urlopen(ask, timeout=10).close()


def assert_served(nsqd: Nsqd) -> None:
    with nsqd.client() as client:
        assert client.publish("served", b"m") == b"OK"
        client.subscribe("served", "c", 1)
        client.finish(client.message())


def until(seconds: float, act: Callable[[], None]) -> int:
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        act()
        count += 1
    return count


@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_nsqd_survives_whatever_is_said_to_it(tmp_path: Path, seconds: float) -> None:
    nsqd = Nsqd(tmp_path)
    fuzzer = Fuzzer(nsqd.tcp, seed=1 if seconds < 60 else random.randrange(2**32))

    def some() -> None:
        for _ in range(50):
            fuzzer.talk()
        assert_served(nsqd)
        clear(nsqd)

    # given one that has heard some of it
    until(seconds / 2, some)
    before = nsqd.resident()
    # when it hears as much again
    assert until(seconds / 2, some) > 0
    # then it has not grown, and ends well
    grown = nsqd.resident() - before
    fuzzer.close()
    assert_served(nsqd)
    assert nsqd.stop() == 0
    nsqd.assert_calm()
    assert grown < GROWTH
