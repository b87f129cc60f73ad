"""How the other end of a connection is called."""

from __future__ import annotations

import pytest

from penstock.daemon.listening import shown_peer


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        (("10.0.0.1", 5000), "10.0.0.1:5000"),
        (("::1", 5000, 0, 0), "[::1]:5000"),
        (("::ffff:10.0.0.1", 5000, 0, 0), "10.0.0.1:5000"),  # IPv4 to a socket that takes both
        ("", "@"),  # a unix socket
        (None, "@"),
    ],
)
def test_a_peer_is_called_as_go_calls_it(peer: object, expected: str) -> None:
    assert shown_peer(peer) == expected
