"""A reader: a position by offset in a topic's log, moved by whoever reads the log by himself. Knows offsets alone.

It holds what lies above it, as a channel does, and is given nothing. No R moves for it.
"""

from __future__ import annotations


class Reader:
    """One reader of a topic."""

    __slots__ = ("name", "offset", "paused", "renewed", "told")

    def __init__(self, name: str, offset: int, renewed: int, *, paused: bool = False) -> None:
        self.name = name
        self.offset = offset  # all below is read, and is not needed any more
        self.renewed = renewed  # wall ns: when it was heard of last
        self.paused = paused
        self.told = offset  # the end of the log, as it was told last

    def look(self, committed: int) -> int:
        """The end of the log, for it: while it is paused, no new one."""
        if not self.paused:
            self.told = max(self.told, committed)
        return self.told

    def move(self, offset: int) -> bool:
        """It has read up to there; False where it had read more, and stays."""
        lower = offset < self.offset
        self.offset = max(offset, self.offset)
        self.told = max(self.told, self.offset)
        return not lower
