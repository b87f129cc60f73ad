"""Which nsqd has which topics and channels, as far as it told. Knows no socket; times are arguments, in ns.

    topic --+-- served by: an nsqd, perhaps tombstoned for a while
            +-- channels: those that any nsqd has or had

An nsqd that was not heard for a time is inactive until it is heard again. Who looks a topic up is shown the active
ones that are not tombstoned for it: when these change, so does the topic's revision, and `changed` is told. What time
changes is changed by `advance`: it is called before anything else that happens at that time.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.protocol.names import is_ephemeral

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.protocol.v1 import Identify

NEVER: Final = 1 << 63


class Nsqd:
    """One connection of an nsqd that has said who it is."""

    __slots__ = ("active", "address", "channels", "heard", "said", "topics")

    def __init__(self, address: str, said: Identify, now: int) -> None:
        self.address = address  # of its end of the connection
        self.said = said
        self.heard = now
        self.active = True
        self.topics: dict[str, Serving] = {}
        self.channels: dict[tuple[str, str], None] = {}

    @property
    def name(self) -> str:
        """What it is tombstoned by."""
        return f"{self.said.broadcast_address}:{self.said.http_port}"


class Serving:
    """An nsqd that has a topic."""

    __slots__ = ("nsqd", "tombstoned", "tombstoned_at")

    def __init__(self, nsqd: Nsqd) -> None:
        self.nsqd = nsqd
        self.tombstoned = False
        self.tombstoned_at: int | None = None  # also when that is over

    @property
    def shown(self) -> bool:
        return self.nsqd.active and not self.tombstoned


class Topic:
    __slots__ = ("channels", "revision", "served_by")

    def __init__(self) -> None:
        self.revision = 0
        self.served_by: dict[Nsqd, Serving] = {}
        self.channels: dict[str, dict[Nsqd, None]] = {}


class _Tombstone(NamedTuple):
    at: int
    topic: str
    serving: Serving


class Registrations:
    def __init__(self, inactive_after: int, tombstone_lifetime: int, changed: Callable[[str], None]) -> None:
        self.nsqds: dict[Nsqd, None] = {}
        self.topics: dict[str, Topic] = {}
        self._inactive_after = inactive_after
        self._tombstone_lifetime = tombstone_lifetime
        self._changed = changed
        self._revision = 0
        self._active: OrderedDict[Nsqd, None] = OrderedDict()  # who was not heard for the longest time is first
        self._tombstones: deque[_Tombstone] = deque()  # in the order in which they end

    # --- what nsqd say

    def join(self, nsqd: Nsqd) -> None:
        self.nsqds[nsqd] = self._active[nsqd] = None

    def ping(self, nsqd: Nsqd, now: int) -> None:
        nsqd.heard = now
        self._active[nsqd] = None
        self._active.move_to_end(nsqd)
        if not nsqd.active:
            nsqd.active = True
            self._show(nsqd)

    def register(self, nsqd: Nsqd, topic: str, channel: str = "") -> bool:
        """A topic, or a channel and its topic; whether anything of it is new."""
        found = self._topic(topic)
        new = nsqd not in found.served_by
        if new:
            found.served_by[nsqd] = nsqd.topics[topic] = Serving(nsqd)
            if nsqd.active:
                self._change(topic)
        if channel and (topic, channel) not in nsqd.channels:
            found.channels.setdefault(channel, {})[nsqd] = None
            nsqd.channels[topic, channel] = None
            new = True
        return new

    def unregister(self, nsqd: Nsqd, topic: str, channel: str = "") -> bool:
        """A channel, or a topic with all its channels; whether there was anything."""
        if channel:
            return self._drop_channel(nsqd, topic, channel)
        if topic not in nsqd.topics:
            return False
        for name, of_it in [key for key in nsqd.channels if key[0] == topic]:
            self._drop_channel(nsqd, name, of_it)
        self._drop_topic(nsqd, topic)
        return True

    def leave(self, nsqd: Nsqd) -> None:
        """Its connection ended."""
        for topic, channel in list(nsqd.channels):
            self._drop_channel(nsqd, topic, channel)
        for topic in list(nsqd.topics):
            self._drop_topic(nsqd, topic)
        self.nsqds.pop(nsqd, None)
        self._active.pop(nsqd, None)

    def _drop_channel(self, nsqd: Nsqd, topic: str, channel: str) -> bool:
        if (topic, channel) not in nsqd.channels:
            return False
        del nsqd.channels[topic, channel]
        channels = self.topics[topic].channels
        del channels[channel][nsqd]
        if not channels[channel] and is_ephemeral(channel):
            del channels[channel]
        return True

    def _drop_topic(self, nsqd: Nsqd, topic: str) -> None:
        serving = nsqd.topics.pop(topic)
        found = self.topics[topic]
        del found.served_by[nsqd]
        if not found.served_by and is_ephemeral(topic):
            self.delete_topic(topic)
        elif serving.shown:
            self._change(topic)

    # --- what users ask for

    def create(self, topic: str, channel: str = "") -> None:
        found = self._topic(topic)
        if channel:
            found.channels.setdefault(channel, {})

    def delete_topic(self, topic: str) -> None:
        """Forget it, whoever has it, until it is registered again."""
        if topic not in self.topics:
            return
        for channel in list(self.topics[topic].channels):
            self.delete_channel(topic, channel)
        for nsqd in self.topics.pop(topic).served_by:
            del nsqd.topics[topic]
        self._changed(topic)

    def delete_channel(self, topic: str, channel: str) -> bool:
        """Whether there was one."""
        if topic not in self.topics or channel not in self.topics[topic].channels:
            return False
        for nsqd in self.topics[topic].channels.pop(channel):
            del nsqd.channels[topic, channel]
        return True

    def tombstone(self, topic: str, name: str, now: int) -> None:
        """Show the nsqd of this name to nobody who looks the topic up, for a while."""
        if topic not in self.topics:
            return
        for nsqd, serving in self.topics[topic].served_by.items():
            if nsqd.name != name:
                continue
            serving.tombstoned_at = now
            if self._tombstone_lifetime:
                was_shown, serving.tombstoned = serving.shown, True
                self._tombstones.append(_Tombstone(now, topic, serving))
                if was_shown:
                    self._change(topic)

    # --- what is shown

    def revision(self, topic: str) -> int:
        """Another one when other nsqd are shown; 0 of a topic that is not known."""
        return self.topics[topic].revision if topic in self.topics else 0

    def shown(self, topic: str) -> list[Nsqd]:
        """The nsqd that somebody who looks the topic up is told."""
        return [nsqd for nsqd, serving in self.topics[topic].served_by.items() if serving.shown]

    def channels(self, topic: str) -> list[str]:
        return sorted(self.topics[topic].channels) if topic in self.topics else []

    # --- time

    @property
    def next_time(self) -> int:
        """When `advance` has something to do."""
        silent = next(iter(self._active)).heard + self._inactive_after + 1 if self._active else NEVER
        over = self._tombstones[0].at + self._tombstone_lifetime if self._tombstones else NEVER
        return min(silent, over)

    def advance(self, now: int) -> None:
        """It is that time."""
        while self._active and (nsqd := next(iter(self._active))).heard + self._inactive_after < now:
            del self._active[nsqd]
            nsqd.active = False
            self._show(nsqd)
        while self._tombstones and self._tombstones[0].at + self._tombstone_lifetime <= now:
            at, topic, serving = self._tombstones.popleft()
            if serving.tombstoned_at != at:  # it was tombstoned once more
                continue
            serving.tombstoned = False
            if serving.nsqd.active and serving.nsqd.topics.get(topic) is serving:
                self._change(topic)

    # --- revisions

    def _topic(self, name: str) -> Topic:
        """The topic, known from now on."""
        if name not in self.topics:
            self.topics[name] = Topic()
            self._change(name)
        return self.topics[name]

    def _show(self, nsqd: Nsqd) -> None:
        """It is active now, or not any more."""
        for topic, serving in nsqd.topics.items():
            if not serving.tombstoned:
                self._change(topic)

    def _change(self, topic: str) -> None:
        self._revision += 1
        self.topics[topic].revision = self._revision
        self._changed(topic)
