"""Lets go of what all have consumed: by each topic's limits, the node's total, and what must stay free on the disk.

    earliest                 floor            cursors        R
       | segment | segment | segment | segment | segment ... |
       '-- deletable ------'         |
                           '-- only a few unfinished messages keep it: they are copied aside, and it may go too

Asked in each of the node's rounds: for the topics that did something, and a few of the others in turn. Knows logs and
topics; the files are deleted by the log's own work, on a thread.
"""

from __future__ import annotations

from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from penstock.errors import LogError
from penstock.log.memory_log import MemoryLog
from penstock.log.retention import NOTHING, Kept, Limits, NodeLimits, expired, over_total

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.daemon.logging import Logger
    from penstock.log.topic_log import TopicLog
    from penstock.nsqd.home import Home
    from penstock.nsqd.options import Options

TURN: Final = 100  # quiet topics that are looked at each time
FEW: Final = 64  # unfinished messages that do not keep a segment,
SHARE: Final = 8  # where they are no more than one in so many
MANY: Final = 100_000  # unfinished messages of a topic among which nobody looks for few


class Keeper:
    """What a node retains."""

    def __init__(self, options: Options, logger: Logger) -> None:
        self.limits = Limits(options.retention_bytes, options.retention_time)
        self._node_limits = NodeLimits(options.retention_total_bytes, options.min_free)
        self._logger = logger
        self._quiet: Iterator[str] = iter(())

    def begin(self, homes: dict[str, Home], free: int) -> list[Home]:
        """A round begins: some quiet topics that are to be looked at too, and those that yield for the node's sake."""
        return self._next_quiet(homes) + self._for_the_node(homes, free)

    def _next_quiet(self, homes: dict[str, Home]) -> list[Home]:
        names = list(islice(self._quiet, TURN))
        if not names:
            self._quiet = iter(list(homes))
        return [homes[name] for name in names if name in homes]

    def look_at(self, home: Home, wall: int) -> None:
        """Mark what may go of this topic."""
        log = home.log
        if isinstance(log, MemoryLog):
            return
        self._forget_finished(home, log)
        if len(log.chain.segments) < 2:
            return
        below = expired(Kept(log, home.topic.low_water, home.retention.over(self.limits)), wall)
        below = max(below, self._release(home, log, below, wall))
        log.delete_below(below)

    def _for_the_node(self, homes: dict[str, Home], free: int) -> list[Home]:
        """The oldest goes first, whosever it is."""
        logs = [(home, home.log) for home in homes.values() if not isinstance(home.log, MemoryLog)]
        closed = sum(segment.position for _, log in logs for segment in log.chain.segments[:-1])
        limits = self._node_limits
        if closed <= limits.total_bytes and free >= limits.min_free:
            return []
        kept = [Kept(log, home.topic.low_water, home.retention.over(self.limits)) for home, log in logs]
        below = over_total(kept, limits, free)
        found = [(home, log) for home, log in logs if log.birth.folder in below]
        for _, log in found:
            log.delete_below(below[log.birth.folder])
        return [home for home, _ in found]

    def yield_room(self, homes: dict[str, Home]) -> list[Home]:
        """The disk is full: all that is consumed may go."""
        found = []
        for home in homes.values():
            if not isinstance(log := home.log, MemoryLog):
                below = expired(Kept(log, home.topic.low_water, NOTHING), 0)
                if below > log.earliest:
                    log.delete_below(below)
                    found.append(home)
        return found

    # --- stragglers

    def _release(self, home: Home, log: TopicLog, below: int, wall: int) -> int:
        """Copy the few messages aside that keep the first segment; up to where it may go then."""
        channels = [channel for channel in home.topic.channels.values() if not channel.ephemeral]
        if sum(len(channel.unfinished) for channel in channels) > MANY:
            return below
        cursors = min([home.topic.passed, *(channel.cursor for channel in channels)])
        first = max(below, log.deleting_below, log.earliest)
        stop = next((b.first for a, b in pairwise(log.chain.segments) if a.first >= first), 0)
        if stop > expired(Kept(log, cursors, home.retention.over(self.limits)), wall):
            return below
        offsets = {
            offset for channel in channels for offset, *_ in channel.unfinished.slots.messages(log.earliest, stop)
        }
        if len(offsets) > min(FEW, (stop - first) // SHARE):
            return below
        try:
            log.hold(offsets, wall)
        except LogError as error:
            self._logger.error("TOPIC(%s): %s", home.topic.name, error)
            return below
        return stop

    def _forget_finished(self, home: Home, log: TopicLog) -> None:
        """What was copied aside and is finished now; what is about to be deleted is wanted there already."""
        if len(log.held):
            held = log.held.between(0, max(log.chain.first(log.end), log.deleting_below))
            channels = [channel for channel in home.topic.channels.values() if not channel.ephemeral]
            log.held.keep(offset for offset in held if any(offset in channel.unfinished.slots for channel in channels))
