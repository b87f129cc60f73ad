"""What a nemesis is."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.torture.arena import Arena


class Nemesis:
    """Does one kind of harm; a round is one `harm`.

    What is over at once is done before the block, what lasts goes on until its end. `costs` says what may be lost;
    the checker holds it to that.
    """

    name: ClassVar[str]
    costs: ClassVar[str] = "nothing"
    disks: ClassVar[tuple[str, ...]] = ("folder", "small", "device")
    lasts: ClassVar[bool] = False  # others may strike meanwhile

    def strike(self, arena: Arena, random: Random) -> None:
        """What is done at once."""

    @contextmanager
    def harm(self, arena: Arena, random: Random) -> Iterator[None]:
        self.strike(arena, random)
        yield
