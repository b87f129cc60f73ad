"""The seed of a batch's CRC, from the batch itself: how a file is read whose folder, and so whose name, is lost.

A CRC is linear in what it begins with: crc(data, seed) = crc(data, 0) ^ seed * x^(8 * len(data)), as polynomials over
GF(2) modulo the CRC's. So a batch that is intact has one seed that fits it, and a division finds it. A batch that is
not has one too, any number; so a seed is believed when two different batches have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zlib_ng.zlib_ng import crc32

from penstock.errors import CorruptLog
from penstock.log.tools.looking import likely_batches
from penstock.protocol.batch import HEADER, positions

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from penstock.log.scan import Reader

# Polynomials stand as in the CRC itself: the highest bit is x^0, the lowest x^31.
_MODULUS: Final = 0xEDB88320
_ONE: Final = 1 << 31
_X: Final = 1 << 30
_ORDER: Final = (1 << 32) - 1  # x to this power is 1
_COVERED: Final = 12  # the CRC is over what follows it

_ENOUGH: Final = 1000  # batches to ask: one takes half a millisecond


def seed_of(batch: Buffer) -> int:
    """The seed with which the CRC of this whole batch holds."""
    data = memoryview(batch)
    stored = int.from_bytes(data[8:_COVERED], "big")
    covered = data[_COVERED:]
    return _times(stored ^ crc32(covered), _power(_X, _ORDER - 8 * len(covered) % _ORDER))


def _times(one: int, other: int) -> int:
    product = 0
    while one:
        if one & _ONE:
            product ^= other
        one = one << 1 & 0xFFFFFFFF
        other = other >> 1 ^ (_MODULUS if other & 1 else 0)
    return product


def _power(base: int, exponent: int) -> int:
    product = _ONE
    while exponent:
        if exponent & 1:
            product = _times(product, base)
        base = _times(base, base)
        exponent >>= 1
    return product


def find_seed(reader: Reader) -> int | None:
    """The seed that most of the first batches have, two at least; or the only batch's, when that holds records."""
    heads: dict[int, set[bytes]] = {}
    for number, (_, batch) in enumerate(likely_batches(reader), 1):
        heads.setdefault(seed_of(batch), set()).add(batch[:HEADER])
        if number == _ENOUGH:
            break
    if len(heads) == 1 and holds_records(batch):
        return next(iter(heads))
    seed = max(heads, key=lambda seed: len(heads[seed]), default=0)
    return seed if len(heads.get(seed, ())) > 1 else None


def holds_records(batch: bytes) -> bool:
    """Whether what stands behind the header is as many records as it says."""
    try:
        return len(positions(batch, 0, len(batch))) > 0
    except CorruptLog:
        return False
