"""TLS over bytes: a handshake, then what was meant. Knows no socket; contexts and what they demand are given to it."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from penstock.errors import BadStream
from penstock.stream.layer import PIECE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

_RECORD: Final = 16 << 10  # the most that one record holds, so that a read never gives more
_ROOM: Final = memoryview(bytearray(PIECE // 4))  # a piece lies here until the next, of whichever connection


class Tls:
    """One side of a connection. After `decode`, `encode` and `close`, what `outgoing` gives has to be sent."""

    def __init__(self, context: ssl.SSLContext, *, server: bool, name: str | None = None) -> None:
        """`name` is what a client wants the other side's certificate to be for."""
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=server, server_hostname=name)
        self.ready = False  # both know with whom they talk
        self.ended = False  # the other side said that it sends nothing more

    # --- what comes

    def decode(self, data: Buffer) -> Iterator[Buffer]:
        self._in.write(data)
        if not self.ready:
            self.begin()
            if self.ready:
                yield b""  # so that whoever takes the pieces knows it before the first
        try:
            while self.ready and (size := self._fill()):
                yield _ROOM[:size]
        except ssl.SSLError as error:
            raise BadStream(reason(error)) from None

    def begin(self) -> None:
        """Go on with the handshake; a client begins by it."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError as error:
            raise BadStream(reason(error)) from None
        self.ready = True

    def _fill(self) -> int:
        """Records into the room, as long as there is a whole one and place for it."""
        size = 0
        try:
            while size <= len(_ROOM) - _RECORD and not self.ended:
                read = cast("int", self._tls.read(_RECORD, _ROOM[size:]))
                size += read
                self.ended = not read
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:  # the same, when this side has ended as well
            self.ended = True
        return size

    # --- what goes

    def encode(self, data: bytes) -> bytes:
        """To be asked for when it is ready; behind what has to be sent anyhow."""
        if data:
            self._tls.write(data)
        return self.outgoing()

    def outgoing(self) -> bytes:
        """What has to be sent: parts of the handshake, alerts."""
        return self._out.read()

    def close(self) -> bytes:
        """Nothing more is sent: what tells the other side so."""
        if self.ready:
            with suppress(ssl.SSLError):  # the other side has not answered, which nobody waits for
                self._tls.unwrap()
        return self.outgoing()

    # --- who is there

    @property
    def common_name(self) -> str:
        """Of the other side's certificate; empty where it showed none."""
        subject: Any = (self._tls.getpeercert() or {}).get("subject", ())
        return next((str(value) for part in subject for key, value in part if key == "commonName"), "")

    @property
    def version(self) -> str:
        return self._tls.version() or ""

    @property
    def cipher(self) -> str:
        cipher = self._tls.cipher()
        return cipher[0] if cipher else ""


def server_tls(context: ssl.SSLContext) -> Tls:
    return Tls(context, server=True)


def client_tls(context: ssl.SSLContext, name: str) -> Tls:
    return Tls(context, server=False, name=name)


def reason(error: ssl.SSLError) -> str:
    """What went wrong, without the numbers of OpenSSL's sources."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is refused: {error.verify_message}"
    said = (error.reason or str(error)).replace("_", " ").lower()
    return f"TLS: {said}"
