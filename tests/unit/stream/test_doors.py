"""Limits: how many may be connected, and how much may be held for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.stream.doors import Burden, Doors


class Socket(asyncio.Transport):
    def __init__(self, peer: object) -> None:
        super().__init__({"peername": peer})
        self.protocol: object = None
        self.aborted = False

    def set_protocol(self, protocol: object) -> None:
        self.protocol = protocol

    def abort(self) -> None:
        self.aborted = True


def address(host: str) -> Socket:
    return Socket((host, 4242))


def run(test: Any) -> None:
    async def go() -> None:
        test()

    asyncio.run(go())


def test_who_finds_no_room_is_refused_until_somebody_leaves() -> None:
    def test() -> None:
        # given doors for two, and two inside
        told: list[str] = []
        doors = Doors(2, 0, told.append)
        assert doors.enter("a", address("10.0.0.1"))
        assert doors.enter("b", address("10.0.0.2"))
        # when a third comes
        third = address("10.0.0.3")
        assert not doors.enter("c", third)
        # then its connection is cut, and whoever would have served it does not hear of that
        assert third.aborted
        assert type(third.protocol) is asyncio.Protocol
        assert told == ["refused 1 connections: 2 are connected"]
        # and when one leaves, there is room
        doors.leave("a")
        assert doors.enter("c", address("10.0.0.3"))
        assert len(doors) == 2

    run(test)


def test_one_address_cannot_take_all_the_room() -> None:
    def test() -> None:
        # given one that may have two
        told: list[str] = []
        doors = Doors(0, 2, told.append)
        assert [doors.enter(number, address("10.0.0.1")) for number in range(3)] == [True, True, False]
        # then others have theirs
        assert doors.enter("other", address("10.0.0.2"))
        assert told == ["refused 1 connections: 2 are connected from 10.0.0.1"]
        # and who leaves makes room for that address again, and is not counted twice
        doors.leave(0)
        doors.leave(0)
        assert [doors.enter(number, address("10.0.0.1")) for number in (3, 4)] == [True, False]

    run(test)


def test_unix_sockets_have_no_address_to_be_limited_by() -> None:
    def test() -> None:
        doors = Doors(0, 1, lambda _: None)
        assert [doors.enter(number, Socket("")) for number in range(3)] == [True] * 3

    run(test)


def test_a_flood_of_refused_ones_is_told_of_in_few_lines() -> None:
    def test() -> None:
        # given doors that are full
        told: list[str] = []
        doors = Doors(1, 0, told.append)
        doors.enter("a", address("10.0.0.1"))
        # when a thousand come at once, then there is a line
        for number in range(1000):
            doors.enter(number, address("10.0.0.2"))
        assert len(told) == 1

    run(test)


class Client:
    def __init__(self) -> None:
        self.dropped = ""

    def drop(self, why: str) -> None:
        self.dropped = why


@pytest.mark.parametrize("last", [0, 1])
def test_who_holds_most_is_dropped_whoever_brings_the_last_byte(last: int) -> None:
    # given room for 1000 bytes, of which one client holds most
    burden = Burden(1000)
    heavy, light = Client(), Client()
    burden.hold(heavy, 600)
    burden.hold(light, 400)
    # when either holds more
    burden.hold((heavy, light)[last], 601 if last == 0 else 401)
    # then that one goes, and the other stays
    assert heavy.dropped.startswith("it holds 60")
    assert not light.dropped
    assert burden.total == (400, 401)[last]


def test_what_is_let_go_makes_room() -> None:
    # given a client that holds all there is
    burden = Burden(1000)
    clients = [Client() for _ in range(3)]
    burden.hold(clients[0], 1000)
    # when it holds nothing any more, or is gone
    burden.hold(clients[0], 0)
    burden.hold(clients[1], 1000)
    burden.forget(clients[1])
    burden.forget(clients[1])
    burden.hold(clients[2], 1000)
    # then others can
    assert [client.dropped for client in clients] == ["", "", ""]
    assert burden.total == 1000


def test_without_a_limit_nobody_is_dropped() -> None:
    burden, client = Burden(0), Client()
    burden.hold(client, 1 << 40)
    assert not client.dropped
