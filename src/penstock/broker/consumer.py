# cython: annotation_typing=False
"""One subscriber of a channel, as the channel sees it: what it asked for and what it may be given. Knows no socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

UNSENT: Final = 1 << 20  # bytes that may wait for a client that reads slowly; one message more at the most


class Sink(Protocol):
    """Where a consumer's messages go."""

    @property
    def unsent(self) -> int:
        """Bytes given to it that have not left the process."""

    def send(self, frames: bytes, offsets: Sequence[int]) -> None:
        """The frames of the messages at these offsets, in this order."""

    def end(self) -> None:
        """Its channel is gone, and so is what it is subscribed to."""


class Consumer:
    """A subscription: it ends with its connection."""

    __slots__ = (
        "closing", "finished", "holder", "message_timeout", "messages", "ready", "requeued", "sample_rate", "sink",
        "waits",
    )  # fmt: skip

    def __init__(self, sink: Sink, *, message_timeout: int, sample_rate: int = 0) -> None:
        self.sink = sink
        self.message_timeout = message_timeout  # ns
        self.sample_rate = sample_rate  # percent of the messages that it wants; 0: all
        self.holder = 0  # its number in the channel
        self.ready = 0  # RDY: how many it wants in flight
        self.closing = False  # asked for no more
        self.waits = False  # stands in the channel's queue of those that may be given something
        self.messages = 0
        self.finished = 0
        self.requeued = 0
