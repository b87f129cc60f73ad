"""Where a channel stands in a log that is being written: its cursor, and below it what it has not finished.

    offsets    0 1 2 3 4 5 6 7 8 9
    it holds   x   x x   x x x x x        and 3 after some attempts
    journal    0   2 3  |                 the cursor is 5: from there on it holds everything, never tried

What has to be listed is only known when something is missing behind it. So what is not listed yet is one stretch of
offsets, and what is listed leaves as entries of a bounded size. Knows no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.log.entries import READY, Progress, pack_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PAGE: Final = 4096  # messages in one entry


class Placing:
    """One channel, which holds what `add` says, in rising order of offset."""

    __slots__ = ("_channel", "_cursor", "_emit", "_first", "_listed", "_next", "attempts", "messages")

    def __init__(self, channel: int, emit: Callable[[Progress], None]) -> None:
        self.messages = 0  # that it holds, once all are added and finished
        self.attempts = 0  # that those took so far
        self._channel = channel
        self._emit = emit
        self._cursor = 0  # as the last entry left it
        self._listed: list[tuple[int, int, int]] = []  # what the next entry says
        self._first = 0  # it holds all of [_first, _next), never tried; below that, what is listed
        self._next = 0

    def add(self, offset: int, attempts: int) -> None:
        """The channel has not finished this message."""
        if offset == self._next and not attempts:
            self._next += 1
            return
        self._list_stretch()
        self._first = self._next = offset
        if attempts:
            self.messages += 1
            self.attempts += attempts
            self._list([(offset, attempts, READY)])
            self._first += 1
        self._next += 1

    def finish(self, routed: int) -> None:
        """The log ends there for now."""
        if self._next == routed:
            self.messages += self._next - self._first
        else:
            self._list_stretch()
            self._first = routed
        self._say(self._first)

    def _list_stretch(self) -> None:
        self.messages += self._next - self._first
        for first in range(self._first, self._next, PAGE):
            self._list((offset, 0, READY) for offset in range(first, min(first + PAGE, self._next)))

    def _list(self, messages: Iterable[tuple[int, int, int]]) -> None:
        self._listed += messages
        if len(self._listed) >= PAGE:
            self._say(self._listed[-1][0] + 1)

    def _say(self, cursor: int) -> None:
        if self._listed or cursor != self._cursor:
            self._emit(Progress(self._channel, self._cursor, cursor, b"", pack_messages(self._listed)))
        self._cursor = cursor
        self._listed.clear()
