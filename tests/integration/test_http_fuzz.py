"""Thousands of clients that say what no client should: nothing is answered 500, and nobody has to wait."""

from __future__ import annotations

import errno
import random
import socket
from pathlib import Path

import pytest

from tests.integration.daemon import Nsqd

METHODS = ["GET", "POST", "POST", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH", "CONNECT"]
TARGETS = [
    "/ping", "/info", "/stats", "/stats?format=json", "/pub?topic=f", "/mpub?topic=f", "/mpub?topic=f&binary=true",
    "/put?topic=e%23ephemeral", "/pub?topic=f&defer=5", "/topic/create?topic=f", "/topic/delete?topic=f",
    "/topic/empty?topic=f", "/topic/pause?topic=f", "/topic/unpause?topic=f", "/channel/create?topic=f&channel=c",
    "/channel/delete?topic=f&channel=c", "/channel/empty?topic=f&channel=c", "/channel/pause?topic=f&channel=c",
    "/channel/create?topic=f&channel=d&from=earliest", "/channel/rewind?topic=f&channel=c&to=-1m",
    "/channel/rewind?topic=f&channel=c&to=9999999999999999999999", "/channel/peek?topic=f&channel=c&n=100",
    "/topic/retain?topic=f&bytes=0&time=1h", "/reader/commit?topic=f&reader=r&offset=0",
    "/reader/delete?topic=f&reader=r", "/log?topic=f&reader=r", "/log/read?topic=f&offset=0",
    "/log/at?topic=f&timestamp=1", "/metrics", "/openapi.json",
    "/config/log_prefix", "/config/nsqlookupd_tcp_addresses", "/config/x", "*", "http://x/ping", "//x/..", "/%",
    "/pub?topic=%zz", "/pub?topic=f&defer=99999999999999999999", "/stats?topic=\xff", "/ping?" + "x" * 9000,
]  # fmt: skip
HEADERS = [
    "Connection: close", "Expect: 100-continue", "Expect: x", "Connection: upgrade\r\nUpgrade: h2c",
    "X: " + "y" * 40_000, "Content-Length: 99999999999", "Transfer-Encoding: gzip", "Transfer-Encoding: chunked",
]  # fmt: skip


def a_request(draw: random.Random) -> bytes:
    body = draw.randbytes(draw.choice([0, 1, 30, 300])) if draw.random() < 0.7 else b"\0\0\0\1\0\0\0\1a"
    target = draw.choice(TARGETS)
    head = [f"{draw.choice(METHODS)} {target} HTTP/{draw.choice(['1.1'] * 8 + ['1.0', '2.0'])}", "Host: x"]
    head += draw.sample(HEADERS, 1) * (draw.random() < 0.3)
    if draw.random() < 0.9:
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def mangled(data: bytes, draw: random.Random) -> bytes:
    """With a few bytes changed, left out or put in, or cut off."""
    for _ in range(draw.randint(0, 3)):
        at = draw.randrange(len(data) + 1)
        some = draw.randbytes(draw.randint(1, 20))
        data = draw.choice([data[:at] + some + data[at:], data[:at] + data[at + len(some) :], data[:at], data])
    return data


def say(port: int, data: bytes, draw: random.Random) -> bytes:
    """In pieces, and then nothing more; what is answered until the server closes. A TimeoutError if it does not."""
    said = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        try:
            while data:
                size = draw.choice([1, 7, 100, 100_000])
                client.sendall(data[:size])
                data = data[size:]
            client.shutdown(socket.SHUT_WR)
            while more := client.recv(65536):
                said += more
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):  # it was cut off
                raise
    return said


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_whatever_clients_say_is_answered_or_cut_off(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    nsqd = Nsqd(tmp_path)
    for _ in range(2000):
        data = mangled(b"".join(a_request(draw) for _ in range(draw.randint(1, 5))), draw)
        answers = say(nsqd.http, data, draw)
        assert b"HTTP/1.1 500" not in answers, data
    assert nsqd.stop() == 0
    nsqd.assert_calm()
    assert not [line for line in nsqd.log if " ERROR: HTTP: " in line]
