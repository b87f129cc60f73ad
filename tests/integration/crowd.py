"""Very many idle consumers in one thread, over epoll: they answer heartbeats and tell what came when. Knows no test."""

from __future__ import annotations

import json
import resource
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

_WAVE = 200  # connections that are opened at once
_HEARTBEAT = b"_heartbeat_"


class Arrival(NamedTuple):
    """A message, and when which consumer got it."""

    member: int
    at: float
    data: bytes  # timestamp, attempts, id, body

    @property
    def body(self) -> bytes:
        return self.data[26:]


class Crowd:
    """So many consumers of one channel, each with RDY 1."""

    def __init__(self, port: int, count: int, topic: str, channel: str, heartbeat_ms: int) -> None:
        _allow_files(count + 200)
        self._epoll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._rest: dict[int, bytes] = {}
        self._subscribed = 0
        self.beats: dict[int, list[float]] = {}  # of each consumer: when its heartbeats came
        self.arrivals: list[Arrival] = []
        features = json.dumps({"heartbeat_interval": heartbeat_ms}).encode()
        identify = b"IDENTIFY\n" + struct.pack(">I", len(features)) + features
        hello = b"  V2" + identify + f"SUB {topic} {channel}\nRDY 1\n".encode()
        while len(self._sockets) < count:
            for _ in range(min(_WAVE, count - len(self._sockets))):
                self._join(port, hello)
            self.listen(lambda: self._subscribed == 2 * len(self._sockets), 20)

    def _join(self, port: int, hello: bytes) -> None:
        member = socket.create_connection(("127.0.0.1", port), timeout=10)
        member.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        member.sendall(hello)
        number = member.fileno()
        self._sockets[number], self._rest[number], self.beats[number] = member, b"", []
        self._epoll.register(number, select.EPOLLIN)

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        self._epoll.close()
        for member in self._sockets.values():
            member.close()

    def listen(self, until: Callable[[], bool], patience: float) -> None:
        """Take what comes until it is enough."""
        deadline = time.monotonic() + patience
        while not until():
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError("the crowd waits for something that does not come")
            for number, _ in self._epoll.poll(min(left, 0.1)):
                self._take(number)

    def listen_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self.listen(lambda: time.monotonic() >= end, seconds + 1)

    def finish(self, arrival: Arrival) -> None:
        self._sockets[arrival.member].sendall(b"FIN " + arrival.data[10:26] + b"\n")

    def _take(self, number: int) -> None:
        came = self._sockets[number].recv(1 << 16)
        if not came:
            raise AssertionError("nsqd hung up on one of the crowd")
        now = time.monotonic()
        data = self._rest[number] + came
        while len(data) >= 8:
            size, kind = struct.unpack_from(">II", data)
            if len(data) < 4 + size:
                break
            self._frame(number, kind, data[8 : 4 + size], now)
            data = data[4 + size :]
        self._rest[number] = data

    def _frame(self, number: int, kind: int, data: bytes, now: float) -> None:
        if kind == 2:
            self.arrivals.append(Arrival(number, now, data))
        elif data == _HEARTBEAT:
            self.beats[number].append(now)
            self._sockets[number].sendall(b"NOP\n")
        elif data == b"OK":
            self._subscribed += 1
        else:
            raise AssertionError(data)


def _allow_files(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
