# cython: annotation_typing=False
"""A topic: how far its log was handed to its channels, and who they are. Knows offsets; no file, no clock.

    log ---+------------------------+----------------+---->
           |  routed: the channels  |  waits here    |
           |  that exist get it     |                |
                                    R          committed end

R follows the committed end while the topic has a channel and is not paused; else it stands. A channel that is made
begins at R, and one that is rewound goes on from anywhere below.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from penstock.broker.channel import Channel

if TYPE_CHECKING:
    from penstock.broker.channel import Surroundings
    from penstock.broker.reader import Reader

_ABOVE: Final = 1 << 64  # any offset


class Topic:
    """One topic of a node."""

    __slots__ = (
        "_held_back",
        "_surroundings",
        "bound",
        "channels",
        "committed",
        "ephemeral",
        "holes",
        "message_bytes",
        "message_count",
        "name",
        "paused",
        "readers",
        "routed",
        "routed_count",
    )  # fmt: skip

    def __init__(self, name: str, *, routed: int, committed: int, bound: int, surroundings: Surroundings) -> None:
        self.name = name
        self.ephemeral = name.endswith("#ephemeral")
        self.routed = routed  # R
        self.committed = committed
        self.bound = bound  # messages that an ephemeral channel may lag behind
        self.channels: dict[str, Channel] = {}
        self.readers: dict[str, Reader] = {}
        self.paused = False
        self.message_count = 0  # published since the start
        self.message_bytes = 0
        self.routed_count = 0  # messages that R passed since the start
        self._held_back = False
        self.holes: list[tuple[int, int]] = []
        self._surroundings = surroundings

    # --- R

    @property
    def follows(self) -> bool:
        """R goes with the committed end."""
        return bool(self.channels) and not self.paused and not self._held_back

    @property
    def held_back(self) -> bool:
        return self._held_back

    def hold_back(self, hold: bool) -> None:
        """R stands although there are channels: others may be about to be made (a look-up is under way)."""
        self._held_back = hold

    def advance(self, committed: int, now: int) -> None:
        """The log is committed up to there."""
        behind = self.committed < self.routed  # after a start: what the channels were given is not all flushed
        self.committed = committed
        self.route(now)
        if behind and not self.follows:
            for channel in self.channels.values():
                channel.pump(now)

    def route(self, now: int) -> None:
        """Move R as far as it may go, and let the channels give what they have."""
        if not self.follows:
            return
        if self.routed < self.committed:
            self.routed_count += self.count(self.routed, self.committed)
            self.routed = self.committed
        for channel in self.channels.values():
            channel.limit = self.routed
            if channel.ephemeral and (oldest := self._last(self.bound)) > channel.cursor:
                self._drop_to(channel, oldest)
            channel.pump(now)

    def _drop_to(self, channel: Channel, oldest: int) -> None:
        """An ephemeral channel keeps what its bound allows; the oldest yield."""
        first, channel.cursor = channel.cursor, oldest
        channel.skipped += self.count(first, oldest)

    def _last(self, count: int) -> int:
        """Where the last so many messages below R begin."""
        first = self.routed - count
        for begin, end in reversed(self.holes):
            if begin < self.routed:
                if (end := min(end, self.routed)) <= first:
                    break
                first -= end - begin
        return first

    # --- holes and counts

    def add_hole(self, first: int, next_: int) -> None:
        """These offsets hold nothing."""
        apart = []
        for begin, end in self.holes:
            if end < first or begin > next_:
                apart.append((begin, end))
            else:
                first, next_ = min(first, begin), max(next_, end)
        self.holes = sorted([*apart, (first, next_)]) if first < next_ else apart

    def count(self, first: int, next_: int) -> int:
        """How many messages `[first, next_)` holds."""
        missing = sum(max(0, min(next_, end) - max(first, begin)) for begin, end in self.holes)
        return max(0, next_ - first - missing)

    def holds(self, offset: int) -> bool:
        """It lies in no hole."""
        at = bisect_right(self.holes, (offset, _ABOVE)) - 1
        return at < 0 or offset >= self.holes[at][1]

    @property
    def depth(self) -> int:
        """Messages that no channel was given yet."""
        return self.count(self.routed, self.committed)

    def depth_of(self, channel: Channel) -> int:
        """Messages that wait in the channel: never handed out, or ready again."""
        return self.count(channel.cursor, channel.limit) + channel.unfinished.ready

    def lag_of(self, reader: Reader) -> int:
        """Messages that the reader has not read."""
        return self.count(reader.offset, self.committed)

    def count_of(self, channel: Channel) -> int:
        """Messages that came to the channel since it was made, or since the start."""
        return self.routed_count - channel.started

    # --- what users ask for

    @property
    def latest(self) -> int:
        """How far a channel may skip: R, or where R goes as soon as there is a channel."""
        return self.routed if self.paused or self._held_back else max(self.routed, self.committed)

    @property
    def waiting(self) -> tuple[int, int]:
        """What no channel was given yet; after a start R may stand above what is flushed, and never goes back."""
        return self.routed, max(self.routed, self.committed)

    def add_channel(self, name: str, since: int, cursor: int | None = None) -> Channel:
        """A new channel, at R, or wherever else it is to begin."""
        channel = Channel(name, self.routed, since, self._surroundings)
        channel.started = self.routed_count
        if cursor is not None:
            channel.started += self.count(self.routed, cursor) - self.count(cursor, self.routed)
            channel.cursor = cursor
        self.channels[name] = channel
        return channel

    def rewind(self, channel: Channel, cursor: int) -> None:
        """The channel goes on from there, and what it is given once more counts once more."""
        channel.started -= self.count(cursor, channel.cursor)
        channel.rewind(cursor)
        if channel.ephemeral and (oldest := self._last(self.bound)) > cursor:
            self._drop_to(channel, oldest)

    def remove_channel(self, name: str) -> Channel:
        """What it had is forgotten; its consumers are the caller's to send away."""
        channel = self.channels.pop(name)
        channel.paused = True
        channel.rewind(channel.cursor)
        return channel

    def empty(self) -> tuple[int, int]:
        """What no channel was given yet becomes a hole; which."""
        hole = self.waiting
        self.add_hole(*hole)
        self.routed = hole[1]
        for channel in self.channels.values():
            channel.limit = self.routed
            channel.look_again()
        return hole

    @property
    def passed(self) -> int:
        """What lies below has been routed, and read by every reader."""
        offsets = [self.routed, *(reader.offset for reader in self.readers.values())]
        return min(offsets)

    @property
    def low_water(self) -> int:
        """What lies below is needed by no durable channel, by none that is still to come, and by no reader."""
        durable = (channel for channel in self.channels.values() if not channel.ephemeral)
        offsets = [self.passed, *(channel.low_water for channel in durable)]
        return min(offsets)
