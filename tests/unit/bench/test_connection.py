"""The loop of a load: what a socket does not take at once goes out later, in order, and nothing waits for it."""

from __future__ import annotations

import hashlib
import random
import socket
import threading

import pytest

from penstock.bench.connection import Client, Connection, Loop
from penstock.bench.settings import Address
from penstock.errors import BenchFailed

OK = b"\0\0\0\x06\0\0\0\0OK"
HEARTBEAT = b"\0\0\0\x0f\0\0\0\0_heartbeat_"


class Counting(Client):
    """Counts the bytes that come."""

    came = 0

    def receive(self) -> bool:
        self.came += self._receive_into(bytearray(100))
        return True


def address(server: socket.socket) -> Address:
    return Address("127.0.0.1", server.getsockname()[1])


def test_more_than_the_socket_takes_goes_out_in_order() -> None:
    # given a server that reads nothing yet, and far more than the buffers between hold
    data = random.Random(1).randbytes(20_000_000)
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = Counting(address(server))
        loop = Loop([client], lambda _client: None)
        other = server.accept()[0]
        client.send(data[:15_000_000])
        client.send(data[15_000_000:])
        assert client.has_unsent
        # when it reads all, and then answers
        found = hashlib.sha256()

        def read() -> None:
            left = len(data)
            while left:
                read = other.recv(1 << 20)
                found.update(read)
                left -= len(read)
            other.send(b"done")

        reader = threading.Thread(target=read)
        reader.start()
        loop.run(60, until=lambda: client.came > 0)
        reader.join()
        # then it has read what was sent
        assert found.digest() == hashlib.sha256(data).digest()
        assert not client.has_unsent
        loop.close()
        other.close()


def test_a_heartbeat_is_answered() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        # given a server that sends a heartbeat with its first answer
        def serve() -> None:
            with server.accept()[0] as other:
                other.recv(1000)
                other.send(OK + HEARTBEAT)
                answers.append(other.recv(1000))

        answers: list[bytes] = []
        thread = threading.Thread(target=serve)
        thread.start()
        # when a client connects
        client = Connection(address(server))
        thread.join()
        client.close()
        # then it says that it is there
        assert answers == [b"NOP\n"]


def test_a_server_that_closes_a_connection_is_no_success() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = Counting(address(server))
        server.accept()[0].close()
        with pytest.raises(BenchFailed, match="closed"):
            Loop([client], lambda _client: None).run(10)
        client.close()
