"""Servers for a while: an nsqd, ours or another, on free ports; and a bare one that only answers OK."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Final

from bench.load import Load, folder
from penstock.bench.connection import Connection
from penstock.bench.settings import Address, Server
from penstock.errors import BenchFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS: Final = (sys.executable, "-m", "penstock.nsqd.main")
_OK: Final = b"\0\0\0\x06\0\0\0\0OK"
_PATIENCE: Final = 30.0


@contextmanager
def nsqd(load: Load, *command: str) -> Iterator[Server]:
    """One that answers, with an empty data path."""
    tcp, http = Address("127.0.0.1", _free_port()), Address("127.0.0.1", _free_port())
    with folder(load) as directory:
        flags = [f"--data-path={directory}", f"--tcp-address=127.0.0.1:{tcp.port}"]
        flags.append(f"--http-address=127.0.0.1:{http.port}")
        process = subprocess.Popen([*command, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(process, tcp)
            yield Server(tcp, http, process.pid)
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def _wait_for(process: subprocess.Popen[bytes], tcp: Address) -> None:
    deadline = monotonic() + _PATIENCE
    while process.poll() is None and monotonic() < deadline:
        with suppress(BenchFailed):
            Connection(tcp).close()
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    raise BenchFailed(f"{process.args!r} does not answer")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@contextmanager
def bare(size: int) -> Iterator[Server]:
    """Reads, and answers OK behind every `size` bytes: what loopback and the load can do at all."""
    process = subprocess.Popen([sys.executable, "-m", "bench.daemons", str(size)], stdout=subprocess.PIPE, text=True)
    if process.stdout is None:
        raise BenchFailed("the bare server has no output")
    try:
        yield Server(Address("127.0.0.1", int(process.stdout.readline())))
    finally:
        process.terminate()
        process.wait(_PATIENCE)
        process.stdout.close()


def _serve(size: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            threading.Thread(target=_answer, args=(server.accept()[0], size), daemon=True).start()


def _answer(client: socket.socket, size: int) -> None:
    """The first bytes are IDENTIFY, which waits for its answer."""
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    room = bytearray(256 << 10)
    client.recv_into(room)
    client.send(_OK)
    came = 0
    with suppress(ConnectionError):
        while read := client.recv_into(room):
            came += read
            whole, came = divmod(came, size)
            if whole:
                client.send(_OK * whole)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
