"""Layers over a socket: a protocol to the socket, a transport to who talks over it. Knows asyncio.

    socket <--> Tunnel: layers <--> inner protocol

Either all goes through the layers from the first byte (`connection_made`, and the inner protocol hears of it when TLS
is ready), or a connection that talks already goes on through them (`take_over`). A connection without layers has no
tunnel, and pays for none.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final, cast

from penstock.errors import BadStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Buffer

    from penstock.stream.doors import Doors
    from penstock.stream.layer import Layers
    from penstock.stream.tls import Tls

HANDSHAKE: Final = 5.0  # seconds that one may take
TURN: Final = 1 << 20  # bytes given on before others have their turn
_SHARED: Final = memoryview(bytearray(256 << 10))  # what the sockets of all tunnels receive into

_OURS, _INNERS = 1, 2  # who does not want to read


class Tunnel(asyncio.BufferedProtocol, asyncio.Transport):
    """`on_ready` is called when the first byte can pass, and `on_broken` with what was wrong with the other side."""

    def __init__(
        self,
        inner: asyncio.BaseProtocol,
        layers: Layers,
        tls: Tls | None,
        *,
        on_ready: Callable[[Tunnel], None],
        on_broken: Callable[[Tunnel, str], None],
        doors: Doors | None = None,
    ) -> None:
        """`tls` is the outermost of the layers, if it is there; `doors` are those that a new connection enters by."""
        asyncio.Transport.__init__(self)
        self.tls = tls
        self.layers = layers
        self._inner = inner
        self._known = False  # to the inner protocol
        self._on_ready = on_ready
        self._on_broken = on_broken
        self._doors = doors
        self._ready = False
        self._early: list[bytes] = []  # written before that
        self._coming: Iterator[Buffer] | None = None  # pieces that are not given on
        self._rest: memoryview | bytes = b""  # of one of them
        self._unread = 0  # by whom
        self._stopped = False  # the socket is not read
        self._eof = False
        self._closing = False
        self._timer: asyncio.TimerHandle | None = None
        self._wire = 0  # bytes given to the socket,
        self._marks: deque[tuple[int, int]] = deque()  # how many before each write, and how much plain it was

    # --- to the socket: its protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._doors is None or self._doors.enter(self, transport):
            self._begin(cast("asyncio.Transport", transport), b"")

    def accept(self, transport: asyncio.Transport, received: bytes) -> None:
        """As `connection_made`, where somebody else has read the first bytes."""
        transport.set_protocol(self)
        self._begin(transport, received)

    def take_over(self, transport: asyncio.Transport, received: bytes) -> None:
        """From now on; `received` was read already, and has come through no layer."""
        self._known = True
        transport.set_protocol(self)
        self._begin(transport, received)

    def _begin(self, transport: asyncio.Transport, received: bytes) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        if self.tls is None:
            self._be_ready()
        else:
            self._timer = self._loop.call_later(HANDSHAKE, self._break, "TLS: no handshake in time")
            self.tls.begin()  # a client says something
            self._send(self.tls.outgoing())
        if received:
            self._take(received)

    def get_buffer(self, sizehint: int) -> Buffer:
        return _SHARED

    def buffer_updated(self, nbytes: int) -> None:
        self._take(_SHARED[:nbytes])

    def eof_received(self) -> bool:
        if not self._ready:
            self._break("TLS: it left in the handshake")
        elif not self._eof:
            self._eof = True
            if not cast("asyncio.Protocol", self._inner).eof_received():
                self.close()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._coming = None
        self._stop_timer()
        if self._doors is not None:
            self._doors.leave(self)
        if self._known:
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        if self._known:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._known:
            self._inner.resume_writing()

    # --- what comes

    def _take(self, data: Buffer) -> None:
        self._coming = self.layers.decode(data)
        self._go_on()

    def _go_on(self) -> None:
        """Give on what came, until all is given, nobody wants it, or others must have their turn."""
        turn = TURN
        try:
            while turn > 0 and self._wanted and not self._closing:
                if (piece := self._next()) is None:
                    break
                turn -= self._give(piece)
        except BadStream as error:
            self._break(str(error))
        if self._closing:
            return
        if self._coming is not None and self._wanted:
            self._loop.call_soon(self._have_turn)
        elif self._coming is None and self.tls is not None and self.tls.ended:
            self.eof_received()
        self._read(_OURS, wants=self._coming is None)

    def _have_turn(self) -> None:
        if self._coming is not None and self._wanted:
            self._go_on()

    @property
    def _wanted(self) -> bool:
        """The inner protocol wants to hear more, or there is a handshake, of which it hears nothing."""
        return not self._ready or not self._unread & _INNERS

    def _next(self) -> memoryview | None:
        """The next piece, or None behind the last; what the layers have to say themselves is sent."""
        if self._rest:
            rest, self._rest = self._rest, b""
            return memoryview(rest)
        if self._coming is None:
            return None
        try:
            piece = next(self._coming, None)
        finally:
            if self.tls is not None:
                self._send(self.tls.outgoing())
        if self.tls is not None and self.tls.ready and not self._ready:
            self._be_ready()
        if piece is None:
            self._coming = None
            return None
        return memoryview(piece)

    def _give(self, piece: memoryview) -> int:
        """Hand over as much of it as there is room for, and keep the rest; how much that was."""
        inner, size = self._inner, len(piece)
        if not size:
            return 0
        if not isinstance(inner, asyncio.BufferedProtocol):
            cast("asyncio.Protocol", inner).data_received(bytes(piece))
            return size
        room = memoryview(inner.get_buffer(size))
        if size > len(room):
            size = len(room)
            self._rest = bytes(piece[size:])
        room[:size] = piece[:size]
        room.release()
        inner.buffer_updated(size)
        return size

    def _be_ready(self) -> None:
        self._ready = self._known = True
        self._stop_timer()
        self._on_ready(self)
        self._read(_OURS, wants=not self._unread & _OURS)
        early, self._early = self._early, []
        for data in early:
            self.write(data)

    def _break(self, why: str) -> None:
        """The other side does not do what it has to: it is told so if it listens, and dropped."""
        if not self._closing:
            self._on_broken(self, why)
            if self.tls is not None:
                self._send(self.tls.outgoing())
            self._closing = True
            self._hang_up()

    def _hang_up(self) -> None:
        """At once where what is unsent does not go out by itself."""
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- to who talks: his transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        if not self._ready:
            self._early.append(bytes(data))
            return
        self._marks.append((self._wire, len(data)))
        self._send(self.layers.encode(bytes(data)))

    def _send(self, wire: bytes) -> None:
        if wire:
            self._wire += len(wire)
            self._transport.write(wire)

    def get_write_buffer_size(self) -> int:
        """Bytes, as they were before the layers, of writes of which nothing has left."""
        unsent = self._transport.get_write_buffer_size()
        left = self._wire - unsent
        marks = self._marks
        if not unsent:
            marks.clear()
        while marks and marks[0][0] < left:
            marks.popleft()
        return sum(size for _, size in marks) + sum(map(len, self._early))

    def pause_reading(self) -> None:
        self._read(_INNERS, wants=False)

    def resume_reading(self) -> None:
        self._read(_INNERS, wants=True)
        if self._coming is not None:
            self._loop.call_soon(self._have_turn)

    def _read(self, who: int, *, wants: bool) -> None:
        self._unread = self._unread & ~who if wants else self._unread | who
        stop = bool(self._unread & _OURS) or not self._wanted
        if stop != self._stopped and not self._transport.is_closing():
            self._stopped = stop
            (self._transport.pause_reading if stop else self._transport.resume_reading)()

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def can_write_eof(self) -> bool:
        return self.tls is not None

    def write_eof(self) -> None:
        """Nothing more is sent, and the other side knows it."""
        if self.tls is not None and not self._closing:
            self._send(self.tls.close())

    def close(self) -> None:
        if not self._closing:
            self.write_eof()
            self._closing = True
            self._transport.close()

    def abort(self) -> None:
        self._closing = True
        self._transport.abort()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Somebody else talks from now on."""
        self._inner = protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)
