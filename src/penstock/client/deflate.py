"""A stream through deflate, as NSQ negotiates it: raw, flushed behind each write. Knows no socket."""

from __future__ import annotations

import zlib

_RAW = -zlib.MAX_WBITS


class Deflate:
    """Both directions of one connection."""

    def __init__(self) -> None:
        self._out = zlib.compressobj(wbits=_RAW)
        self._in = zlib.decompressobj(wbits=_RAW)

    def encode(self, data: bytes) -> bytes:
        return self._out.compress(data) + self._out.flush(zlib.Z_SYNC_FLUSH)

    def decode(self, data: bytes) -> bytes:
        return self._in.decompress(data)
