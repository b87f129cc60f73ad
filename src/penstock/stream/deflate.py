"""Deflate as NSQ speaks it: one raw stream each way, flushed behind each write. Bytes in, bytes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from zlib_ng import zlib_ng

from penstock.errors import BadStream
from penstock.stream.layer import PIECE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

_ERROR: Final = cast("type[Exception]", zlib_ng.error)
_RAW: Final = -15  # no header, the largest window


class Deflate:
    """Levels are 1 to 9."""

    def __init__(self, level: int) -> None:
        self._deflating = zlib_ng.compressobj(level, zlib_ng.DEFLATED, _RAW)
        self._inflating = zlib_ng.decompressobj(_RAW)

    def decode(self, data: Buffer) -> Iterator[Buffer]:
        inflating = self._inflating
        rest = bytes(data)
        while True:
            try:
                piece = inflating.decompress(rest, PIECE)
            except _ERROR as error:
                raise BadStream(f"no deflate: {error}") from None
            rest = inflating.unconsumed_tail
            if piece:
                yield piece
            if inflating.eof:
                raise BadStream("the deflated stream has ended")
            if not rest and len(piece) < PIECE:
                return

    def encode(self, data: bytes) -> bytes:
        return self._deflating.compress(data) + self._deflating.flush(zlib_ng.Z_SYNC_FLUSH)
