"""What the journal is told of a channel: since the last time, in pages of offsets. Knows the entries; no file.

A channel that delivers and finishes within one tick leaves nothing but its cursor: a page is only told when something
in it lay below the cursor the last time, and so was unfinished.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from penstock.broker.slots import PAGE_BITS
from penstock.log.entries import IN_FLIGHT, READY, Progress, pack_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.broker.channel import Channel
    from penstock.log.entries import Entry
    from penstock.log.state import ChannelState
    from penstock.nsqd.home import Clock

_MS: Final = 10**6


class Memory:
    """One durable channel, and what the journal says of it."""

    __slots__ = ("_channel", "_clock", "_cursor", "number")

    def __init__(self, channel: Channel, number: int, clock: Clock) -> None:
        self._channel = channel
        self._clock = clock
        self.number = number
        self._cursor = channel.cursor

    def forget(self) -> None:
        """The journal was told that nothing is unfinished below the cursor."""
        self._cursor = self._channel.cursor
        self._channel.unfinished.slots.changed()

    def restore(self, state: ChannelState, is_there: Callable[[int], bool]) -> None:
        """The channel as the journal left it: what was in flight is ready again, and what was lost is forgotten."""
        channel = self._channel
        for offset, attempts, due in state.unfinished:
            if not is_there(offset):
                continue
            ready_at = None if due in (IN_FLIGHT, READY) else self._clock.now + due * _MS - self._clock.wall
            channel.unfinished.put(offset, attempts, ready_at)
        channel.unfinished.slots.changed()

    def changes(self) -> list[Entry]:
        """What happened since this was asked last: below the cursor of then, the pages in which it did."""
        channel = self._channel
        slots, shift = channel.unfinished.slots, self._clock.wall - self._clock.now
        pages = slots.changed()
        start, cursor = self._cursor, channel.cursor
        if not pages and start == cursor:
            return []
        self._cursor = cursor
        below = pages[: bisect_left(pages, start, key=lambda page: page << PAGE_BITS)]
        unfinished = slots.packed_pages(below, start, shift) + slots.packed(start, cursor, shift)
        return [Progress(self.number, start, cursor, pack_ranges(_ranges(below, start)), unfinished)]

    def page(self, first: int, limit: int) -> tuple[bytes, int]:
        """About `limit` messages that are unfinished from `first` on, packed, and the offset behind them."""
        slots = self._channel.unfinished.slots
        stop = slots.narrow(first, self._channel.cursor, limit)
        return slots.packed(first, stop, self._clock.wall - self._clock.now), stop


def _ranges(pages: list[int], stop: int) -> Iterator[tuple[int, int]]:
    """Pages, which are in order, as ranges of offsets below `stop`; neighbours are one."""
    at = 0
    while at < len(pages):
        last = at
        while last + 1 < len(pages) and pages[last + 1] == pages[last] + 1:
            last += 1
        yield pages[at] << PAGE_BITS, min((pages[last] + 1) << PAGE_BITS, stop)
        at = last + 1
