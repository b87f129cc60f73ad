"""What a client sends is what nsqd's parser reads."""

from __future__ import annotations

import pytest

from penstock.protocol import requests


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(requests.pub("t", b"ab"), b"PUB t\n\0\0\0\x02ab", id="pub"),
        pytest.param(requests.dpub("t", 1500, b"ab"), b"DPUB t 1500\n\0\0\0\x02ab", id="dpub"),
        pytest.param(
            requests.mpub("t", [b"ab", b"c"]),
            b"MPUB t\n\0\0\0\x0f\0\0\0\x02\0\0\0\x02ab\0\0\0\x01c",
            id="mpub",
        ),
        pytest.param(requests.identify(b"{}"), b"IDENTIFY\n\0\0\0\x02{}", id="identify"),
        pytest.param(requests.auth(b"s"), b"AUTH\n\0\0\0\x01s", id="auth"),
        pytest.param(requests.sub("t", "c"), b"SUB t c\n", id="sub"),
        pytest.param(requests.rdy(5), b"RDY 5\n", id="rdy"),
        pytest.param(requests.fin(b"0123456789abcdef"), b"FIN 0123456789abcdef\n", id="fin"),
        pytest.param(requests.req(b"0123456789abcdef", 10), b"REQ 0123456789abcdef 10\n", id="req"),
        pytest.param(requests.touch(b"0123456789abcdef"), b"TOUCH 0123456789abcdef\n", id="touch"),
    ],
)
def test_commands_are_written_as_nsqd_reads_them(written: bytes, expected: bytes) -> None:
    assert written == expected
