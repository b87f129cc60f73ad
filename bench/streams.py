"""TLS, snappy and deflate beside the plain stream: MPUBs to one nsqd, and what it delivers; each mode's time over the
plain one's.

What a publisher sends is encoded before the clock runs, so that the server's work is what is measured; a consumer has
to decode and to finish what comes while it runs. Messages are of JSON, since nobody compresses what is random; a second
figure is the server's CPU for each message, a third the bytes on the wire for each byte of the plain stream.
"""

from __future__ import annotations

import json
import secrets
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

import trustme

from bench.daemons import OURS, nsqd
from bench.load import COUNT, Load, folder
from bench.measure import Row, alternate, micro
from penstock.bench.usage import usage
from penstock.bench.wire import Frames
from penstock.errors import BenchFailed
from penstock.protocol.inbox import SHARED, Inbox
from penstock.protocol.requests import mpub
from penstock.stream import Deflate, Layers, Snappy, Tls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.bench.settings import Server
    from penstock.stream import Layer

MODES: Final = ("tls", "snappy", "deflate", "tls snappy", "tls deflate")
LEVEL: Final = 6
READY: Final = 2500
_OK: Final = b"\0\0\0\x06\0\0\0\0OK"


_Work = Callable[["Server", str, ssl.SSLContext, int], tuple[float, "_Run"]]


class _Run(NamedTuple):
    cpu: float  # the server's seconds for each message
    size: int  # bytes on the wire


def bodies() -> list[bytes]:
    """Of about 200 bytes each, no two of them alike."""
    return [
        json.dumps(
            {
                "order": number, "customer": f"customer-{number * 7919 % 10_007}", "state": "shipped",
                "amount": number / 7, "items": [{"sku": f"sku-{number * 31 % 997}", "count": number % 5}],
                "currency": "EUR", "warehouse": "north",
            }
        ).encode()
        for number in range(COUNT)
    ]  # fmt: skip


def rows(load: Load) -> Iterator[Row]:
    authority = trustme.CA()
    with folder(load) as directory:
        cert = authority.issue_cert("localhost")
        pem, key = Path(directory, "cert.pem"), Path(directory, "key.pem")
        cert.private_key_pem.write_to_path(key)
        cert.cert_chain_pems[0].write_to_path(pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        authority.configure_trust(context)
        with nsqd(load, *OURS, f"--tls-cert={pem}", f"--tls-key={key}", "--https-address=") as server:
            for name, work in (("MPUB", _publish), ("SUB and FIN", _consume)):
                for mode in MODES:
                    yield _row(load, f"{name} through {mode.replace(' ', ' and ')}", work, server, mode, context)


def _row(load: Load, name: str, work: _Work, server: Server, mode: str, context: ssl.SSLContext) -> Row:
    count = max(load.batches // 4, 5)
    runs: dict[str, list[_Run]] = {mode: [], "plain": []}

    def run(which: str) -> float:
        seconds, found = work(server, which, context, count)
        runs[which].append(found)
        return seconds

    measured = alternate(partial(run, mode), partial(run, "plain"), load.rounds)
    ours, plain = (count * COUNT / seconds for seconds in measured.medians)
    cpu, plain_cpu = (median(each.cpu for each in runs[which]) for which in (mode, "plain"))
    wire = runs[mode][0].size / runs["plain"][0].size
    return Row(
        name,
        f"{ours / 1e6:,.2f} M/s, CPU {micro(cpu)}, {wire:.2f} of the bytes",
        f"plain {plain / 1e6:,.2f} M/s, CPU {micro(plain_cpu)}",
        measured,
        figures={"messages/s": ours, "plain": plain, "CPU": cpu, "plain: CPU": plain_cpu, "bytes": wire},
    )


def _publish(server: Server, mode: str, context: ssl.SSLContext, count: int, topic: str = "") -> tuple[float, _Run]:
    """Seconds from the first byte to the last answer."""
    with socket.create_connection(server.tcp) as wire:
        layers = _agree(wire, mode, context)
        command = mpub(topic or f"bench_{secrets.token_hex(4)}#ephemeral", bodies())
        encoded = [layers.encode(command) for _ in range(count)]
        before, begun = _cpu(server), time.perf_counter()
        wire.setblocking(False)
        _exchange(wire, layers, encoded, len(_OK) * count)
        seconds = time.perf_counter() - begun
        return seconds, _Run((_cpu(server) - before) / (count * COUNT), sum(map(len, encoded)))


def _consume(server: Server, mode: str, context: ssl.SSLContext, count: int) -> tuple[float, _Run]:
    """Seconds from RDY to the last message, of those that wait in a new channel."""
    topic = f"bench_{secrets.token_hex(4)}"
    _publish(server, "plain", context, count, topic)
    with socket.create_connection(server.tcp) as wire:
        layers, frames, inbox = _agree(wire, mode, context), Frames(), Inbox(bytearray(SHARED))
        wire.sendall(layers.encode(f"SUB {topic} c\n".encode()))
        before, begun, size = _cpu(server), time.perf_counter(), 0
        wire.sendall(layers.encode(b"RDY %d\n" % READY))
        while frames.messages < count * COUNT:
            data = wire.recv(1 << 16)
            if not data:
                raise BenchFailed("nsqd hung up")
            size += len(data)
            for piece in layers.decode(data):
                wire.sendall(layers.encode(_finish(frames, inbox, memoryview(piece))))
        seconds = time.perf_counter() - begun
        return seconds, _Run((_cpu(server) - before) / (count * COUNT), size)


def _finish(frames: Frames, inbox: Inbox, data: memoryview) -> bytes:
    """A FIN for each message that becomes whole."""
    fins = b""
    while data:
        room = memoryview(inbox.room())[: len(data)]
        room[:] = data[: len(room)]
        data = data[len(room) :]
        inbox.received(len(room))
        inbox.keep(frames.scan(inbox.data, 0, inbox.end), frames.needed)
        fins += frames.fins()
    return fins


def _cpu(server: Server) -> float:
    found = None if server.pid is None else usage(server.pid)
    return 0.0 if found is None else found.cpu


def _exchange(wire: socket.socket, layers: Layers, parts: list[bytes], owed: int) -> None:
    """Send all, and read until so many bytes of answers came: neither waits for the other."""
    rest = memoryview(b"".join(parts))
    while owed > 0:
        readable, writable, _ = select.select([wire], [wire] if rest else [], [], 30)
        if not readable and not writable:
            raise BenchFailed("nsqd does not answer")
        if writable:
            rest = rest[wire.send(rest[: 1 << 18]) :]
        if readable:
            data = wire.recv(1 << 16)
            if not data:
                raise BenchFailed("nsqd hung up")
            owed -= sum(len(memoryview(piece)) for piece in layers.decode(data))


def _agree(wire: socket.socket, mode: str, context: ssl.SSLContext) -> Layers:
    """IDENTIFY, and what follows from it, OK by OK."""
    wishes = {
        "feature_negotiation": True,
        "tls_v1": "tls" in mode,
        "deflate_level": LEVEL,
        "heartbeat_interval": 60_000,
    }
    body = json.dumps(wishes | {word: word in mode for word in ("snappy", "deflate")}).encode()
    wire.sendall(b"  V2IDENTIFY\n" + struct.pack(">I", len(body)) + body)
    _exactly(wire, struct.unpack(">I", _exactly(wire, 4))[0])
    layers, came = Layers(), b""
    if "tls" in mode:
        tls = Tls(context, server=False, name="localhost")
        tls.begin()
        layers.add(tls)
        while not tls.ready:
            wire.sendall(tls.outgoing())
            came = _decoded(tls, wire.recv(1 << 16))
        wire.sendall(tls.outgoing())
        came = _behind_ok(wire, layers, came)
    for word, make in (("snappy", Snappy), ("deflate", partial(Deflate, LEVEL))):
        if word in mode:
            layer = make()
            layers.add(layer)
            _behind_ok(wire, layers, _decoded(layer, came))
    return layers


def _behind_ok(wire: socket.socket, layers: Layers, came: bytes) -> bytes:
    """What came with the OK may have gone through the next layer already."""
    while len(came) < len(_OK):
        came += _decoded(layers, wire.recv(1 << 16))
    if not came.startswith(_OK):
        raise BenchFailed(f"{came!r} for an OK")
    return came[len(_OK) :]


def _decoded(layer: Layer, data: bytes) -> bytes:
    return b"".join(bytes(piece) for piece in layer.decode(data)) if data else b""


def _exactly(wire: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += wire.recv(size - len(data))
    return data
