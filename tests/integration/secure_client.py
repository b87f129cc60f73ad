"""The plain client, through TLS, snappy or deflate once they are agreed on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from penstock.stream import Deflate, Layers, Snappy, Tls
from tests.integration.client import Client

if TYPE_CHECKING:
    import socket
    import ssl

    from penstock.stream import Layer


class SecureClient(Client):
    def __init__(self, port: int, *, timeout: float = 10.0) -> None:
        self.layers = Layers()
        super().__init__(port, timeout=timeout)
        self._file.close()
        self._file = self._stream = _Stream(self._socket, self.layers)  # type: ignore[assignment]

    def secure(self, context: ssl.SSLContext | None = None, name: str = "localhost", **wishes: Any) -> dict[str, Any]:
        """IDENTIFY; what the server says, when everything that was wished for has begun."""
        asked = {"feature_negotiation": True, "tls_v1": context is not None, **wishes}
        answer = self.ask("IDENTIFY", json.dumps(asked).encode())
        if not answer.startswith(b"{"):
            raise AssertionError(answer)
        agreed: dict[str, Any] = json.loads(answer)
        if agreed["tls_v1"] and context is not None:
            tls = Tls(context, server=False, name=name)
            self._stream.begin(tls)
            self._stream.shake(tls)
            self._agreed()
        for word, layer in (("snappy", Snappy), ("deflate", lambda: Deflate(6))):
            if agreed[word]:
                self._stream.begin(layer())
                self._agreed()
        return agreed

    def _agreed(self) -> None:
        answer = self.answer()
        if answer != b"OK":
            raise AssertionError(answer)

    def send(self, data: bytes) -> None:
        super().send(self.layers.encode(data))


class _Stream:
    """What comes through the layers, as a file."""

    def __init__(self, wire: socket.socket, layers: Layers) -> None:
        self._wire = wire
        self._layers = layers
        self._came = bytearray()

    def begin(self, layer: Layer) -> None:
        """What has come already behind the last answer came through it."""
        self._layers.add(layer)
        came, self._came = self._came, bytearray()
        for piece in layer.decode(came) if came else ():
            self._came += piece

    def shake(self, tls: Tls) -> None:
        tls.begin()
        while not tls.ready:
            self._wire.sendall(tls.outgoing())
            self._receive()
        self._wire.sendall(tls.outgoing())

    def read(self, size: int) -> bytes:
        while len(self._came) < size and self._receive():
            pass
        taken = bytes(self._came[:size])
        del self._came[:size]
        return taken

    def _receive(self) -> bool:
        data = self._wire.recv(65_536)
        for piece in self._layers.decode(data) if data else ():
            self._came += piece
        return bool(data)

    def close(self) -> None:
        """The socket is closed beside it."""
