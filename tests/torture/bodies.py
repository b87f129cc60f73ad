"""Bodies that follow from a number, so that whoever reads one knows whether each byte of it is right."""

from __future__ import annotations

from typing import Final

_MIX: Final = 2654435761
_LARGE: Final = 200  # one in so many is large


def body(number: int) -> bytes:
    mixed = number * _MIX & 0xFFFFFFFF
    size = mixed % (30_000 if mixed % _LARGE == 0 else 250)
    return b"%d|" % number + (mixed.to_bytes(4, "big") * (size // 4 + 1))[:size]


def read(data: bytes) -> tuple[int, bool]:
    """The number, -1 where there is none, and whether the body is as it was sent."""
    head, _, _ = data.partition(b"|")
    if not head.isdigit() or len(head) > 12:
        return -1, False
    return int(head), data == body(int(head))
