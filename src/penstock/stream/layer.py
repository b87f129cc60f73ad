"""A layer turns what comes over the wire into what was meant, and back. Bytes in, bytes out.

    socket --decode--> TLS --decode--> snappy --decode--> who talks
           <--encode--     <--encode--        <--encode--

`decode` gives pieces one by one, none larger than PIECE, and does no work before the next is asked for: however little
becomes however much, no more than a piece a layer is in memory, and whoever takes them can stop between two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

PIECE: Final = 256 << 10


class Layer(Protocol):
    """BadStream for bytes that cannot be what the layer is for."""

    def decode(self, data: Buffer) -> Iterator[Buffer]:
        """What came, as pieces that hold until the next is asked for; `data` need not stay beyond the first."""

    def encode(self, data: bytes) -> bytes:
        """What is to be sent, so that the other side can decode it without waiting for more."""


class Layers:
    """Several, the outermost first: one of them."""

    def __init__(self, *layers: Layer) -> None:
        self._layers = list(layers)

    def add(self, layer: Layer) -> None:
        """Inside of those that are there."""
        self._layers.append(layer)

    def decode(self, data: Buffer) -> Iterator[Buffer]:
        return self._decode(data, 0)

    def _decode(self, data: Buffer, depth: int) -> Iterator[Buffer]:
        if depth == len(self._layers):
            yield data
            return
        for piece in self._layers[depth].decode(data):
            yield from self._decode(piece, depth + 1)

    def encode(self, data: bytes) -> bytes:
        for layer in reversed(self._layers):
            data = layer.encode(data)
        return data
