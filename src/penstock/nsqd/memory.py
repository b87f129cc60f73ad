"""What the journal is told of a channel: since the last time, in pages of offsets. Knows the entries' bytes; no file.

A channel that delivers and finishes within one tick leaves nothing but its cursor: a page is written when something in
it is unfinished, or when something was the last time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.slots import DELAYED, PAGE_BITS
from penstock.broker.slots import IN_FLIGHT as TAKEN
from penstock.log.entries import IN_FLIGHT, READY, Page, Progress, pack_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from penstock.broker.channel import Channel
    from penstock.log.entries import Entry
    from penstock.log.state import ChannelState
    from penstock.nsqd.home import Clock

_MS: Final = 10**6
_FEW: Final = 1 << 15  # unfinished messages that are rather listed at once than looked for page by page


class Memory:
    """One durable channel, and what the journal says of it."""

    __slots__ = ("_channel", "_clock", "_cursor", "_pages", "number")

    def __init__(self, channel: Channel, number: int, clock: Clock) -> None:
        self._channel = channel
        self._clock = clock
        self.number = number
        self._cursor = channel.cursor
        self._pages: dict[int, None] = {}  # where the journal has something unfinished; an empty set is larger

    def forget(self) -> None:
        """The journal was told that nothing is unfinished below the cursor."""
        self._cursor = self._channel.cursor
        self._pages.clear()
        self._channel.unfinished.slots.changed()

    def restore(self, state: ChannelState, is_there: Callable[[int], bool]) -> None:
        """The channel as the journal left it: what was in flight is ready again, and what was lost is forgotten."""
        channel = self._channel
        for offset, attempts, due in state.unfinished:
            self._pages[offset >> PAGE_BITS] = None
            if not is_there(offset):
                continue
            ready_at = None if due in (IN_FLIGHT, READY) else self._clock.now + due * _MS - self._clock.wall
            channel.unfinished.put(offset, attempts, ready_at)
        channel.unfinished.slots.changed()

    def changes(self) -> list[Entry]:
        """What happened since this was asked last; to be one block."""
        channel = self._channel
        pages = channel.unfinished.slots.changed()
        start, cursor = self._cursor, channel.cursor
        if not pages and start == cursor:
            return []
        self._cursor = cursor
        found = self._by_page(pages)
        entries: list[Entry] = [
            self._page(page, found.get(page, []), start)
            for page in pages
            if page << PAGE_BITS < start and (page in found or page in self._pages)
        ]
        passed = [message for page in pages for message in found.get(page, []) if message[0] >= start]
        for page in pages:
            if page in found:
                self._pages[page] = None
            else:
                self._pages.pop(page, None)
        entries.append(Progress(self.number, start, cursor, b"", pack_messages(passed)))
        return entries

    def _page(self, page: int, messages: list[tuple[int, int, int]], start: int) -> Page:
        first, next_ = page << PAGE_BITS, min((page + 1) << PAGE_BITS, start)
        return Page(self.number, first, next_, pack_messages(m for m in messages if m[0] < next_))

    def _by_page(self, pages: list[int]) -> dict[int, list[tuple[int, int, int]]]:
        slots = self._channel.unfinished.slots
        wanted = set(pages)
        if len(slots) <= _FEW:
            messages: Iterable[tuple[int, int, int, int]] = slots.messages(0, 1 << 63)
        else:
            messages = (m for page in pages for m in slots.messages(page << PAGE_BITS, (page + 1) << PAGE_BITS))
        found: dict[int, list[tuple[int, int, int]]] = {}
        for message in self._as_written(messages):
            if message[0] >> PAGE_BITS in wanted:
                found.setdefault(message[0] >> PAGE_BITS, []).append(message)
        return found

    def messages(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        """(offset, attempts, due) of what is unfinished in `[first, stop)`, as the journal has it."""
        return list(self._as_written(self._channel.unfinished.slots.messages(first, stop)))

    def _as_written(self, messages: Iterable[tuple[int, int, int, int]]) -> Iterator[tuple[int, int, int]]:
        """(offset, attempts, due): times of the journal are those of the wall."""
        shift = self._clock.wall - self._clock.now
        for offset, state, attempts, until in messages:
            if state == DELAYED:
                yield offset, attempts, max(READY + 1, -(-(until + shift) // _MS))
            else:
                yield offset, attempts, IN_FLIGHT if state == TAKEN else READY
