"""Clients of nsqlookupd's TCP port that say nothing, and how long they may."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Any, cast

import pytest

from penstock.daemon.logging import Logger
from penstock.nsqlookupd.connection import Connection
from penstock.nsqlookupd.options import Options
from penstock.nsqlookupd.registrations import NEVER
from penstock.nsqlookupd.service import Service
from penstock.nsqlookupd.watch import FIRST, LEAST, Watch

if TYPE_CHECKING:
    from collections.abc import Callable

S = 10**9
BODY = b'{"broadcast_address":"a","tcp_port":1,"http_port":2,"version":"1.3.0"}'
IDENTIFY = b"  V1IDENTIFY\n" + struct.pack(">I", len(BODY)) + BODY


def test_who_does_not_say_who_it_is_is_dropped_in_ten_seconds() -> None:
    watch: Watch[str] = Watch(300 * S)
    watch.add("a", 0)
    watch.add("b", S)
    assert watch.next == FIRST
    assert [each for each, _ in watch.look(FIRST - 1)] == []
    assert [each for each, _ in watch.look(FIRST)] == ["a"]
    assert watch.next == FIRST + S


def test_who_goes_on_speaking_stays_and_who_falls_silent_is_dropped() -> None:
    # given two that said who they are, of which one goes on
    watch: Watch[str] = Watch(300 * S)
    for each in ("talks", "silent"):
        watch.add(each, 0)
        watch.heard(each, S)
    watch.heard("talks", 200 * S)
    # when the time of the other is over
    assert watch.next == 301 * S
    assert [each for each, _ in watch.look(301 * S)] == ["silent"]
    # then the one that talks has still its own
    assert watch.next == 500 * S
    watch.remove("talks")
    assert watch.next == NEVER


def test_silence_is_borne_for_several_pings_whatever_counts_as_inactive() -> None:
    watch: Watch[str] = Watch(S // 2)
    watch.heard("a", 0)
    assert watch.next == LEAST


class Transport:
    """As much of one as a connection needs."""

    def __init__(self) -> None:
        self.cut = False

    def get_extra_info(self, name: str) -> Any:
        return _Socket() if name == "socket" else ("10.0.0.1", 5000)

    def write(self, _data: bytes) -> None:
        """Nobody reads it."""

    def abort(self) -> None:
        self.cut = True


class _Socket:
    family = -1

    def setsockopt(self, *_what: int) -> None:
        """It is none."""


@pytest.mark.parametrize(("said", "seconds"), [(b"", 10), (b"  V1PING\n", 10), (b"  V1IDENT", 10), (IDENTIFY, 300)])
def test_a_connection_on_which_nothing_more_is_said_is_cut_and_told_of(
    said: bytes, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    timers: list[Callable[[], None]] = []
    now = 0

    def later(_delay: float, call: Callable[[], None]) -> _Timer:
        timers.append(call)
        return _Timer()

    def write(line: bytes) -> bool:
        lines.append(line.decode())
        return True

    async def talk() -> tuple[Transport, bool]:
        nonlocal now
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", later)
        service = Service(Options(), Logger("", clock=lambda: 0, write=write), lambda: now)
        connection, transport = Connection(service), Transport()
        connection.connection_made(cast("Any", transport))
        connection.data_received(said)
        # when all but the last moment is over, and then that
        now = seconds * S - 1
        timers[-1]()
        before = transport.cut
        now += 1
        timers[-1]()
        return transport, before

    transport, before = asyncio.run(talk())
    assert (before, transport.cut) == (False, True)
    assert any("[10.0.0.1:5000] dropped: " in line for line in lines)


class _Timer:
    def cancel(self) -> None:
        """It does not ring by itself."""
