"""A tunnel between a socket that is made of bytes and who talks through it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from penstock.stream import Deflate, Layers, Tls
from penstock.stream import tunnel as module
from penstock.stream.tunnel import Tunnel
from tests.unit.stream.peers import contexts, decoded

if TYPE_CHECKING:
    from collections.abc import Callable


class Socket(asyncio.Transport):
    """Takes what it is sent, or keeps `unsent` of it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("10.0.0.1", 5)})
        self.sent = bytearray()
        self.unsent = 0
        self.reading = True
        self.state = "open"
        self.protocol: asyncio.BaseProtocol | None = None

    def write(self, data: Any) -> None:
        self.sent += data

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def is_closing(self) -> bool:
        return self.state != "open"

    def close(self) -> None:
        self.state = "closed"

    def abort(self) -> None:
        self.state = "aborted"

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def taken(self) -> bytes:
        sent = bytes(self.sent)
        self.sent.clear()
        return sent


class Talker(asyncio.BufferedProtocol):
    """Notes what comes; its room is small."""

    def __init__(self, room: int = 1 << 20) -> None:
        self.room = bytearray(room)
        self.heard = bytearray()
        self.told: list[str] = []
        self.deaf_at = -1
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.told.append("made")

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.room

    def buffer_updated(self, nbytes: int) -> None:
        self.heard += self.room[:nbytes]
        if 0 <= self.deaf_at <= len(self.heard):
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        self.told.append("eof")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append("lost")


class World:
    """A server's tunnel with a client at the other end of its socket."""

    def __init__(self, inner: asyncio.BaseProtocol, *, tls: bool = True) -> None:
        self.socket = Socket()
        self.broken: list[str] = []
        self.client = Tls(contexts().client, server=False, name="localhost")
        own = Tls(contexts().server, server=True) if tls else None
        self.tunnel = Tunnel(
            inner,
            Layers(own) if own else Layers(),
            own,
            on_ready=inner.connection_made,
            on_broken=lambda _tunnel, why: self.broken.append(why),
        )

    def connect(self) -> None:
        self.tunnel.connection_made(self.socket)
        self.client.begin()
        self.exchange()
        self.exchange()

    def exchange(self, data: bytes = b"") -> bytes:
        """The client says this, and hears something."""
        self.say(self.client.outgoing() + data)
        return decoded(self.client, self.socket.taken())

    def say(self, wire: bytes) -> None:
        while wire:
            room = memoryview(self.tunnel.get_buffer(-1))
            size = min(len(room), len(wire))
            room[:size] = wire[:size]
            self.tunnel.buffer_updated(size)
            wire = wire[size:]


def in_a_loop(test: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


@in_a_loop
async def test_who_talks_hears_of_a_connection_when_it_is_safe() -> None:
    # given a talker behind TLS
    talker = Talker()
    world = World(talker)
    # when a client has only connected
    world.tunnel.connection_made(world.socket)
    # then it does not know
    assert talker.told == []
    # when it has shaken hands, and speaks
    world.client.begin()
    world.exchange()
    world.exchange(world.client.encode(b"hello"))
    # then it does, and hears it; and what it says arrives
    assert (talker.told, bytes(talker.heard)) == (["made"], b"hello")
    talker.transport.write(b"welcome")
    assert world.exchange() == b"welcome"


@in_a_loop
async def test_what_comes_with_the_end_of_the_handshake_is_heard() -> None:
    # given a client that sends its first words in one go with its last of the handshake
    talker = Talker()
    world = World(talker)
    world.tunnel.connection_made(world.socket)
    world.client.begin()
    world.exchange()
    # when they come
    world.say(world.client.outgoing() + world.client.encode(b"hello"))
    # then they are heard
    assert talker.heard == b"hello"


@in_a_loop
async def test_bytes_that_were_read_before_the_upgrade_are_not_lost() -> None:
    # given a connection that talks already, and a client that begins with TLS before it is told to
    talker = Talker()
    world = World(talker)
    talker.transport = world.tunnel
    world.client.begin()
    begun = world.client.outgoing()
    # when the tunnel takes over with what was read of that
    world.tunnel.take_over(world.socket, begun[:100])
    assert world.socket.protocol is world.tunnel
    world.say(begun[100:])
    decoded(world.client, world.socket.taken())
    world.exchange(world.client.encode(b"hello"))
    # then they understand each other
    assert talker.heard == b"hello"


@in_a_loop
async def test_what_is_written_in_the_handshake_goes_out_behind_it() -> None:
    # given a connection in the middle of its upgrade
    talker = Talker()
    world = World(talker)
    talker.connection_made(world.tunnel)
    world.tunnel.take_over(world.socket, b"")
    # when something is written, a heartbeat say
    world.tunnel.write(b"heartbeat")
    assert (world.socket.taken(), world.tunnel.get_write_buffer_size()) == (b"", 9)
    # then it comes when both are ready
    world.client.begin()
    assert world.exchange() + world.exchange() == b"heartbeat"


@in_a_loop
async def test_a_talker_with_little_room_gets_it_in_turns() -> None:
    # given a talker that takes ten bytes at once
    talker = Talker(room=10)
    world = World(talker)
    world.connect()
    # when more than that comes, then it gets all of it
    world.say(world.client.encode(b"0123456789abcdefghijklmno"))
    assert talker.heard == b"0123456789abcdefghijklmno"


@in_a_loop
async def test_who_does_not_want_to_hear_gets_nothing() -> None:
    # given a talker that has enough after ten bytes, and takes five at once
    talker = Talker(room=5)
    world = World(talker)
    world.connect()
    talker.deaf_at = 10
    # when more comes
    world.say(world.client.encode(b"0123456789abcdefghijklmno"))
    # then it gets ten, and the socket is not read
    assert (bytes(talker.heard), world.socket.reading) == (b"0123456789", False)
    # when it listens again, then it gets the rest in the loop's next turn, and the socket is read
    talker.deaf_at = -1
    talker.transport.resume_reading()
    assert talker.heard == b"0123456789"
    await asyncio.sleep(0)
    assert (bytes(talker.heard), world.socket.reading) == (b"0123456789abcdefghijklmno", True)


@in_a_loop
async def test_what_comes_to_much_is_given_on_turn_by_turn() -> None:
    # given a client whose few bytes come to eight MiB
    talker = Talker()
    world = World(talker, tls=False)
    world.tunnel.layers.add(Deflate(6))
    world.tunnel.connection_made(world.socket)
    world.say(Deflate(9).encode(bytes(8 << 20)))
    # then a turn of the loop gives some of it on, and the socket is not read meanwhile
    assert len(talker.heard) <= module.TURN
    assert not world.socket.reading
    # and others have their turns in between, until all is given
    turns = 0
    while len(talker.heard) < 8 << 20:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 7
    await asyncio.sleep(0)
    assert world.socket.reading


@in_a_loop
async def test_how_much_is_unsent_is_told_as_it_was_before_the_layers() -> None:
    # given a socket that has taken all, and then nothing of two writes that became small
    talker = Talker()
    world = World(talker, tls=False)
    world.tunnel.layers.add(Deflate(6))
    world.tunnel.connection_made(world.socket)
    world.tunnel.write(bytes(1000))
    assert world.tunnel.get_write_buffer_size() == 0
    before = len(world.socket.sent)
    world.tunnel.write(bytes(20_000))
    world.tunnel.write(bytes(30_000))
    world.socket.unsent = len(world.socket.sent) - before
    # then what is unsent are those two as they were
    assert world.tunnel.get_write_buffer_size() == 50_000
    # when a byte of the first has left, then that may have reached the client
    world.socket.unsent -= 1
    assert world.tunnel.get_write_buffer_size() == 30_000


def test_who_does_not_shake_hands_in_time_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        # given very little time for a handshake
        monkeypatch.setattr(module, "HANDSHAKE", 0.0)
        talker = Talker()
        world = World(talker)
        # when a client connects and says nothing
        world.tunnel.connection_made(world.socket)
        while not world.broken:
            await asyncio.sleep(0)
        # then it is dropped, and whoever would have talked to it never knows
        assert world.broken == ["TLS: no handshake in time"]
        assert world.socket.state == "closed"
        world.tunnel.connection_lost(None)
        assert talker.told == []

    asyncio.run(run())


@in_a_loop
async def test_who_is_refused_is_told_why_and_dropped() -> None:
    # given a client that has connected
    talker = Talker()
    world = World(talker)
    world.tunnel.connection_made(world.socket)
    # when it says what is no greeting
    world.say(b"\x16\x03\x01\x00\x05hello")
    # then it is dropped behind an alert, and the reason is known
    assert len(world.broken) == 1
    assert world.broken[0].startswith("TLS: ")
    assert world.socket.taken().startswith(b"\x15\x03")
    assert world.socket.state == "closed"


@in_a_loop
async def test_a_client_that_leaves_in_the_handshake_is_dropped() -> None:
    talker = Talker()
    world = World(talker)
    world.tunnel.connection_made(world.socket)
    world.tunnel.eof_received()
    assert world.broken == ["TLS: it left in the handshake"]


@pytest.mark.parametrize("how", ["by TLS", "by TCP", "by both"])
def test_the_end_of_what_a_client_sends_is_told_once(how: str) -> None:
    async def run() -> None:
        # given a client that talks
        talker = Talker()
        world = World(talker)
        world.connect()
        # when it closes its side
        if how != "by TCP":
            world.say(world.client.encode(b"bye") + world.client.close())
        if how != "by TLS":
            world.tunnel.eof_received()
        # then the talker hears so once; and as it does not want to stay, the tunnel closes
        assert talker.told == ["made", "eof"]
        assert world.socket.state == "closed"

    asyncio.run(run())


@in_a_loop
async def test_a_talker_that_closes_says_so_in_tls() -> None:
    # given a client that talks
    talker = Talker()
    world = World(talker)
    world.connect()
    # when the talker closes
    talker.transport.close()
    # then the client knows that nothing was cut off
    decoded(world.client, world.socket.taken())
    assert world.client.ended
    assert world.socket.state == "closed"


@in_a_loop
async def test_one_that_is_refused_while_it_takes_nothing_is_cut_off() -> None:
    # given a client that does not read
    talker = Talker()
    world = World(talker)
    world.connect()
    world.socket.unsent = 5
    # when it sends what is no TLS
    world.say(b"\x17\x03\x03\x00\x05hello")
    # then nobody waits for it
    assert world.broken
    assert world.socket.state == "aborted"
