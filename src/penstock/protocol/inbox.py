# cython: annotation_typing=False
"""Where a connection's bytes are received. Knows no socket, and of commands only how many bytes they seem to take.

    room --receive--> received --parse--> keep        all connections receive into one shared buffer

Only what is left of a command that is not whole stays with its connection; the next read finds it at the start of the
shared buffer. What is large, or not whole then either, gets a buffer of its own, which grows by what has come until the
command fits, and goes with it. So a byte is copied a few times at most, however a client cuts its commands, and nobody
gets memory for what was only announced.
"""

from __future__ import annotations

from typing import Final

SHARED: Final = 256 << 10  # a good size for the one buffer
_LITTLE: Final = 4 << 10  # is copied without a thought


class Inbox:
    """The bytes of one connection: from `received` to `keep` they are `data[:end]`."""

    __slots__ = ("_own", "_rest", "_shared", "data", "end", "kept")

    def __init__(self, shared: bytearray) -> None:
        """The shared buffer belongs to one connection from its `room` to its `keep`."""
        self.data = self._shared = shared
        self.end = 0
        self._own: bytearray | None = None
        self._rest = b""
        self.kept = 0  # bytes of the beginning of a command, in `_own` or in `_rest`

    def room(self) -> bytearray | memoryview:
        """Where the next bytes go; never empty."""
        data = self._own or self._shared
        return memoryview(data)[self.kept :] if self.kept else data

    def take(self) -> bytes:
        """What is kept, which is kept no more."""
        kept = bytes(memoryview(self._own)[: self.kept]) if self._own else self._rest
        self._own, self._rest, self.kept = None, b"", 0
        return kept

    def received(self, size: int) -> None:
        """So many bytes were put into the room."""
        self.data = self._own or self._shared
        if self._rest:
            self.data[: self.kept] = self._rest
        self.end = self.kept + size

    def keep(self, at: int, needed: int) -> None:
        """The bytes from `at` on are no whole command, which seems to take `needed` of them."""
        left = self.end - at
        most = len(self._shared) // 2
        if at == 0 and self.kept:  # it was no whole one before either
            most = min(most, _LITTLE)
        if left > most:
            self._keep_apart(at, left, needed)
        else:
            self._rest = bytes(memoryview(self.data)[at : self.end]) if left else b""
            self._own = None
        self.kept = left
        self.data = self._shared
        self.end = 0

    def _keep_apart(self, at: int, left: int, needed: int) -> None:
        if at or self._own is None or left == len(self._own):
            own = bytearray(max(min(needed, 2 * left), left + left // 4 + _LITTLE))  # `needed` may be a lie
            own[:left] = memoryview(self.data)[at : self.end]
            self._own = own
            self._rest = b""
