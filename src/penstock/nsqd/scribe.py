"""What the node's journal is told, and when: orders at once, progress of channels once each sync_timeout.

Knows the journal and the memories of channels; how a snapshot of the node looks is given to it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from penstock.errors import LogError
from penstock.nsqd.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from penstock.broker.channel import Channel
    from penstock.daemon.logging import Logger
    from penstock.log.entries import Entry
    from penstock.log.journal import Journal, Source
    from penstock.log.work import Work
    from penstock.nsqd.home import Clock

BLOCK: Final = 1000  # entries of channels' progress in one block of the journal


class Scribe:
    """Writes down what a node is to know after a restart."""

    def __init__(self, journal: Journal, clock: Clock, logger: Logger) -> None:
        self.journal = journal
        self.memories: dict[Channel, Memory] = {}  # of durable channels
        self.next_topic = 0
        self.next_channel = 0
        self._awaited = 0  # the journal's end behind what publishes wait for
        self.slicing = False  # a compaction has more to write
        self._clock = clock
        self._logger = logger
        self._unsaid: list[Entry] = []  # what the journal did not take
        self._together: list[Entry] | None = None  # what is ordered as one

    def order(self, *entries: Entry) -> None:
        """What users ask for: it stands in the journal when this returns, LogError where it does not."""
        if self._together is not None:
            self._together += entries
            return
        self._say()  # what happened before stands before
        self.journal.append(entries, self._clock.wall)

    def await_all(self) -> None:
        """Until what stands in the journal is on the device, `sure` is false."""
        self._awaited = self.journal.end

    @property
    def sure(self) -> bool:
        """The device has each channel that was made: a power cut leaves it to those whose publish is answered now."""
        return self.journal.flushed >= self._awaited

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is ordered meanwhile stands in the journal behind it, all or none."""
        ordered = self._together = []
        try:
            yield
        finally:
            self._together = None
        self.order(*ordered)

    def topic_number(self) -> int:
        self.next_topic += 1
        return self.next_topic - 1

    def channel_number(self) -> int:
        self.next_channel += 1
        return self.next_channel - 1

    def watch(self, channel: Channel, number: int) -> Memory:
        """From now on its progress is written down."""
        memory = self.memories[channel] = Memory(channel, number, self._clock)
        return memory

    def remember(self, channels: Iterable[Channel]) -> None:
        """What these channels did."""
        for channel in channels:
            if memory := self.memories.get(channel):
                self._unsaid += memory.changes()
        self.tell()

    def tell(self, *entries: Entry) -> None:
        """What nobody waits for, and all that was not said yet; what the journal does not take now it gets later."""
        self._unsaid += entries
        try:
            self._say()
        except LogError as error:
            self._logger.error("journal: %s", error)

    def _say(self) -> None:
        while self._unsaid:
            self.journal.append(self._unsaid[:BLOCK], self._clock.wall)
            del self._unsaid[:BLOCK]

    def keep(self, snapshot: Callable[[], Source]) -> Work | None:
        """Compact the journal where it has grown, a slice at a time; the work of flushing it.

        While `slicing`, it is to be called again as soon as others had their turn.
        """
        if self.journal.wants_compaction:
            self.journal.compact(snapshot())
        self._write_slice()
        try:
            return self.journal.flush_work() if self.journal.wants_flush else None
        except LogError as error:
            self._logger.error("journal: %s", error)
            return None

    def _write_slice(self) -> None:
        self.slicing = False
        try:
            self.slicing = self.journal.wants_slice and self.journal.write_slice(self._clock.wall)
        except LogError as error:  # tried again by the next `keep`
            self._logger.error("journal: %s", error)

    def close(self) -> None:
        """Flush what is written."""
        while (work := self.journal.flush_work()) is not None:
            work()
            if work.error is not None:
                self._logger.error("journal: %s", work.error.strerror)
                return
