"""Snappy's framing format, as NSQ speaks it. Bytes in, bytes out.

    chunk:   type 1 | length 3, little-endian | that many bytes
    0xff     "sNaPpY": begins a stream, and may come again
    0x00     checksum 4 | compressed, at most 64 KiB when it is not      0x01   checksum 4 | as it is, at most 64 KiB
    0x80 -   without meaning for us, passed over                         0x02 - unknown, and not to be passed over

Chunks are found here, and decoded by the library, which checks their sums; nothing is decoded before its size is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cramjam

from penstock.errors import BadStream
from penstock.stream.layer import PIECE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

_BEGIN: Final = b"\xff\x06\x00\x00sNaPpY"
_COMPRESSED, _PLAIN, _PASSED_OVER, _STREAM = 0x00, 0x01, 0x80, 0xFF
_HEAD: Final = 4
_SUM: Final = 4
_LARGEST: Final = 64 << 10  # of what is in a chunk
_LONGEST: Final = _SUM + 32 + _LARGEST + _LARGEST // 6  # of a chunk: snappy's bound for what cannot be compressed


class Snappy:
    """One stream each way."""

    def __init__(self) -> None:
        self._compressing = cramjam.snappy.Compressor()
        self._rest = b""  # the beginning of a chunk
        self._skip = 0  # bytes of one that is passed over
        self._begun = False

    # --- what comes

    def decode(self, data: Buffer) -> Iterator[Buffer]:
        rest = self._rest + bytes(data) if self._rest else bytes(data)
        self._rest = b""
        at = 0
        while at < len(rest):
            chunks, at = self._chunks(rest, at)
            if not chunks:
                break
            try:
                yield memoryview(cramjam.snappy.decompress(chunks))
            except cramjam.DecompressionError as error:
                raise BadStream(f"no snappy: {error}") from None
        self._rest = rest[at:]

    def _chunks(self, data: bytes, at: int) -> tuple[bytes, int]:
        """Whole chunks from `at` on that come to no more than a piece, as a stream; and where the next begins."""
        found: list[bytes] = []
        size = 0
        while True:
            if self._skip:
                passed = min(self._skip, len(data) - at)
                self._skip -= passed
                at += passed
            if len(data) - at < _HEAD:
                break
            kind, length = data[at], int.from_bytes(data[at + 1 : at + _HEAD], "little")
            if self._passed_over(kind, length):
                self._skip = _HEAD + length
                continue
            end = at + _HEAD + length
            if end > len(data):
                break
            if kind == _STREAM:
                self._begin(data[at:end])
            else:
                plain = _size(data, at + _HEAD + _SUM, end) if kind == _COMPRESSED else length - _SUM
                if plain > _LARGEST:
                    raise BadStream(f"a chunk of {plain} bytes")
                if found and size + plain > PIECE:
                    break
                found.append(data[at:end])
                size += plain
            at = end
        return b"".join((_BEGIN, *found)) if found else b"", at

    def _passed_over(self, kind: int, length: int) -> bool:
        """Whether it is; BadStream for a chunk that cannot be."""
        if not self._begun and kind != _STREAM:
            raise BadStream("no snappy: a stream begins otherwise")
        if _PASSED_OVER <= kind < _STREAM:
            return True
        if _PLAIN < kind < _PASSED_OVER:
            raise BadStream(f"a chunk of the unknown type {kind:#04x}")
        if not (length == len(_BEGIN) - _HEAD if kind == _STREAM else _SUM <= length <= _LONGEST):
            raise BadStream(f"a chunk of {length} bytes")
        return False

    def _begin(self, chunk: bytes) -> None:
        if chunk != _BEGIN:
            raise BadStream("no snappy: a stream begins otherwise")
        self._begun = True

    # --- what goes

    def encode(self, data: bytes) -> bytes:
        self._compressing.compress(data)
        return bytes(self._compressing.flush())


def _size(data: bytes, at: int, end: int) -> int:
    """How much a compressed chunk comes to: seven bits a byte, the low ones first."""
    size = shift = 0
    for byte in data[at : min(end, at + 5)]:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size
        shift += 7
    raise BadStream("no snappy: a chunk without a size")
