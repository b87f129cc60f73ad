"""What the broker is given of a log. Knows no log: whoever has one gives blocks of it when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias


class Block(Protocol):
    """Whole batches, one behind the other."""

    @property
    def first(self) -> int:
        """The offset of the first record in them."""

    @property
    def next(self) -> int:
        """The offset behind the last one."""

    @property
    def data(self) -> bytes | bytearray | memoryview: ...


Blocks: TypeAlias = Callable[[int], Block | None]
"""The block that holds an offset, or the first one behind it (an empty one at the end); None where it is not here yet:
then the channel is pumped when it is."""
