"""A program for counting: so many messages published, delivered, finished, scanned, posted, on a node without sockets.

python -m tests.bench.paths FOLDER PUBLISHED DELIVERED FINISHED SCANNED POSTED
"""

from __future__ import annotations

import gc
import struct
import sys
from typing import Any, cast

from penstock.http import Routes, Server
from penstock.http.connection import Connection
from penstock.log.files import Files
from penstock.nsqd.http.publishing import Publishing
from penstock.protocol.batch import positions
from penstock.protocol.ids import FIN
from tests.unit.nsqd import world
from tests.unit.nsqd.talk import Desk, Talk

BATCH = 200
SIZE = 200
MOST = 2500  # RDY
POSTERS = 16
BLOCK = 256 << 10


class Client(Talk):
    """One that looks at nothing but ids."""

    def hear(self, data: bytes) -> None:
        """A read, and the turn's end."""
        inbox = self.session.inbox
        while data:
            room = memoryview(inbox.room())
            size = min(len(room), len(data))
            room[:size] = data[:size]
            data = data[size:]
            self.session.received(size)
        self._desk.turn()
        self.session.unsent = 0


class Poster:
    """One that publishes over HTTP: the transport of its own connection."""

    def __init__(self, server: Server) -> None:
        self.sent = b""
        self.connection = Connection(server)
        self.connection.connection_made(cast("Any", self))

    def get_extra_info(self, _name: str) -> object:
        return ("127.0.0.1", 5555)

    def write(self, data: bytes) -> None:
        self.sent = data


class PostDesk(Desk):
    """One that publishes over HTTP come to as well."""

    def begin_turn(self) -> None:
        """`turn` is called at the end of each."""


def main(folder: str, published: int, delivered: int, finished: int, scanned: int, posted: int) -> None:
    world.PATH = folder
    desk = PostDesk(Files(), sync_every=1 << 40)
    producer, consumer = Client(desk), Client(desk)
    gc.disable()
    for _ in range(MOST // BATCH + 1):
        producer.hear(mpub("t"))
    for _ in range(published // BATCH):
        producer.hear(mpub("p"))
    consumer.hear(b"SUB t c\nRDY %d\n" % delivered)
    base = desk.node.homes["t"].base
    fins = b"".join(b"FIN %016x\n" % (base + offset) for offset in range(MOST))
    consumer.hear(b"RDY 0\n" + fins[: FIN * finished])
    channel = desk.node.homes["t"].topic.channels["c"]
    if channel.cursor != delivered or channel.unfinished.in_flight != delivered - finished:
        raise RuntimeError(f"{channel.cursor} delivered, {channel.unfinished.in_flight} of them in flight")
    post(desk, posted)
    log = desk.node.homes["t"].log
    log.relax()
    while scanned > 0:
        offset = 0
        while block := log.read(offset, BLOCK):
            scanned -= len(positions(block.data, 0, len(block.data)))
            offset = block.next


def post(desk: PostDesk, messages: int) -> None:
    """Over HTTP, a message a request, one of each client in a turn."""
    routes = Routes()
    routes.add("POST", "/pub", Publishing(cast("Any", desk)).pub, max_body=SIZE, quiet=True)
    server = Server(routes.find)
    posters = [Poster(server) for _ in range(POSTERS)]
    request = b"POST /pub?topic=h HTTP/1.1\r\nHost: bench\r\nContent-Length: %d\r\n\r\n" % SIZE + bytes(SIZE)
    for _ in range(messages // POSTERS):
        for each in posters:
            each.connection.data_received(request)
        desk.turn()
        if not all(each.sent.endswith(b"OK") for each in posters):
            raise RuntimeError(posters[0].sent)


def mpub(topic: str) -> bytes:
    bodies = struct.pack(">I", SIZE) + bytes(SIZE)
    return b"MPUB %b\n" % topic.encode() + struct.pack(">II", 4 + BATCH * len(bodies), BATCH) + bodies * BATCH


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
