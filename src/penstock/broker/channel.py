# cython: annotation_typing=False
"""A channel: a cursor over its topic's log, what is unfinished below it, and the consumers that share it.

    log   ---+------------------+---------------+----->
             |    unfinished    | never handed  |
             | (in flight,      | out yet       |
             |  ready, delayed) |               |
          low-water           cursor            R

Rules
- A consumer has at most RDY messages in flight, and no more unsent bytes than its bound and one message.
- What is ready again and what is new alternate, so that neither starves; consumers take turns.
- Blocks of the log are asked for and given; where one cannot be given now, who has it pumps the channel later.

Knows offsets, blocks and times that it is given (monotonic ns); no file, no clock, no connection.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.consumer import UNSENT
from penstock.broker.latency import Latency
from penstock.broker.slots import IN_FLIGHT
from penstock.broker.unfinished import GRAIN, Unfinished
from penstock.protocol.batch import moved_before
from penstock.protocol.frames import Messages

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterable
    from random import Random

    from penstock.broker.blocks import Blocks
    from penstock.broker.consumer import Consumer

SLICE: Final = 64  # messages that one consumer is given before the next has its turn,
WIDE: Final = 1024  # more where few have turns
ABORTED: Final = 500 * 10**6  # ns: after an abort a message waits so long, and twice as long with each attempt
NEVER: Final = 1 << 63
_NOBODY: Final[deque[Consumer]] = (
    deque()
)  # what an idle channel has for a queue: an empty one of its own takes 760 bytes
_NONE: Final[deque[int]] = deque()


class Surroundings(NamedTuple):
    """What a topic and its channels need of whoever has them."""

    blocks: Blocks
    set_alarm: Callable[[int, Channel], None]  # the channel wants a `tick` then; a later alarm of it is void
    random: Random
    latency_window: int = 0  # ns that percentiles of end-to-end latency look back on; 0 where none are kept


class Channel:
    """One channel of a topic. Its topic moves `limit` (R) and pumps it."""

    __slots__ = (
        "_again", "_blocks", "_holders", "_messages", "_others", "_random", "_set_alarm", "_waiting", "alarm",
        "consumers", "cursor", "ephemeral", "latency", "limit", "name", "paused", "requeue_count", "since", "skipped",
        "started", "timeout_count", "unfinished",
    )  # fmt: skip

    def __init__(self, name: str, cursor: int, since: int, surroundings: Surroundings) -> None:
        self.name = name
        self.ephemeral = name.endswith("#ephemeral")
        self.cursor = cursor  # the next offset that was never handed out
        self.limit = cursor  # R: nothing from there on is handed out
        self.since = since  # wall ns: what was published before and deferred is not for it
        self.paused = False
        self.unfinished = Unfinished()
        self.consumers: list[Consumer] = []
        window = surroundings.latency_window
        self.latency = Latency(window) if window else None  # told by the consumers' sinks
        self.requeue_count = 0
        self.timeout_count = 0
        self.skipped = 0  # messages that an ephemeral channel dropped, or that were sampled away
        self.started = 0  # how many messages the topic had routed when this channel began to count
        self._waiting = _NOBODY  # those that may be able to take something
        self._holders: list[int] = []  # numbers that are free again
        self._messages: Messages | None = None  # the block at the cursor
        self._others = _NONE  # offsets in it that are not for this channel
        self._again = False  # what is ready again has the next turn
        self.alarm = NEVER  # when it wants `tick`
        self._blocks = surroundings.blocks
        self._set_alarm = surroundings.set_alarm
        self._random = surroundings.random

    # --- consumers

    def join(self, consumer: Consumer) -> None:
        """It gets messages as soon as it asks for some."""
        if not self.consumers:
            self._waiting = deque()
        consumer.holder = self._holders.pop() if self._holders else len(self.consumers) + 1
        self.consumers.append(consumer)

    def leave(self, consumer: Consumer, now: int, unsent: Iterable[int], *, aborted: bool) -> None:
        """Its messages are ready again: at once what never left the process, and all after a clean end."""
        self.consumers.remove(consumer)
        if consumer.waits:
            self._waiting.remove(consumer)
        if not self.consumers:
            self._waiting = _NOBODY
        for offset in unsent:
            self.unfinished.take_back(offset, 1, consumer.holder)
        for offset, attempts in self.unfinished.slots.held_by(consumer.holder):
            delay = min(ABORTED << min(attempts - 1, 20), consumer.message_timeout) if aborted else 0
            self.unfinished.requeue(offset, consumer.holder, now, delay)
            if delay:
                self._wake_at(now + delay + GRAIN)
        self._holders.append(consumer.holder)
        consumer.holder = 0

    def ready(self, consumer: Consumer, count: int) -> None:
        """RDY: so many it wants in flight."""
        consumer.ready = count
        self.wake(consumer)

    def wake(self, consumer: Consumer) -> None:
        """It may be able to take something: it stands in the queue for the next `pump`."""
        if not consumer.waits and consumer.holder:
            consumer.waits = True
            self._waiting.append(consumer)

    # --- what consumers say of messages

    def finish(self, consumer: Consumer, ids: array[int], base: int) -> list[int] | None:
        """FIN; the places of the ids that it does not have in flight."""
        failed = self.unfinished.finish(ids, 0, len(ids), base, consumer.holder)
        consumer.finished += len(ids) - (len(failed) if failed else 0)
        self.wake(consumer)
        return failed

    def requeue(self, consumer: Consumer, offset: int, now: int, delay: int) -> bool:
        """REQ; False where it does not have the message in flight."""
        if not self.unfinished.requeue(offset, consumer.holder, now, delay):
            return False
        self.requeue_count += 1
        consumer.requeued += 1
        if delay > 0:
            self._wake_at(now + delay + GRAIN)
        self.wake(consumer)
        return True

    def touch(self, consumer: Consumer, offset: int, now: int, most: int) -> bool:
        """TOUCH; False where it does not have the message in flight."""
        return self.unfinished.touch(offset, consumer.holder, now, consumer.message_timeout, most)

    def why_not(self, offset: int) -> str:
        """Why a message could not be finished, in nsqd's words."""
        found = self.unfinished.slots.messages(offset, offset + 1) if offset >= 0 else []
        return "client does not own message" if found and found[0][1] == IN_FLIGHT else "ID not in flight"

    # --- time

    def tick(self, now: int) -> None:
        """What ran out is ready again, and delays that are over end."""
        if expired := self.unfinished.expire(now):
            self.timeout_count += expired.total()
            for consumer in self.consumers:
                if consumer.holder in expired:
                    self.wake(consumer)  # it has room again
        self.unfinished.end_delays(now)
        self.alarm = NEVER
        if (next_ := self.unfinished.next_time()) is not None:
            self._wake_at(next_)

    def _wake_at(self, when: int) -> None:
        if when < self.alarm:
            self.alarm = when
            self._set_alarm(when, self)

    # --- delivery

    def pump(self, now: int) -> None:
        """Give what there is to the consumers that can take it."""
        waiting = self._waiting
        turns = share = 0
        while waiting and not self.paused:
            if turns <= 0:
                turns, share = len(waiting), self._share(len(waiting))
            turns -= 1
            consumer = waiting[0]
            room = self._room(consumer)
            if room <= 0:
                waiting.popleft()
                consumer.waits = False
            elif not self._give(consumer, min(room, share), now):
                return
            else:
                waiting.rotate(-1)

    def _room(self, consumer: Consumer) -> int:
        if consumer.closing or consumer.sink.unsent >= UNSENT:
            return 0
        return consumer.ready - self.unfinished.slots.in_flight_of(consumer.holder)

    def _share(self, consumers: int) -> int:
        """Few messages are shared out, many go slice by slice."""
        return min(
            max(SLICE, WIDE // consumers), -(-(self.unfinished.ready + self.limit - self.cursor) // consumers) or 1
        )

    def _give(self, consumer: Consumer, count: int, now: int) -> bool:
        """Ready ones and new ones in turn; False where neither can be given."""
        again = self._again
        self._again = not again
        if again:
            return self._give_again(consumer, count, now) or self._give_new(consumer, count, now)
        return self._give_new(consumer, count, now) or self._give_again(consumer, count, now)

    def _give_new(self, consumer: Consumer, count: int, now: int) -> bool:
        messages = self._at_cursor()
        if messages is None:
            return False
        if consumer.sample_rate:
            return self._sample(consumer, messages, now)
        first = self.cursor
        stop = min(self.limit, self._others[0]) if self._others else self.limit
        frames, given = messages.new(first, min(count, stop - first), UNSENT - consumer.sink.unsent)
        self.cursor += given
        self.unfinished.take(first, given, consumer.holder, now, consumer.message_timeout)
        self._wake_at(now + consumer.message_timeout)
        consumer.messages += given
        consumer.sink.send(frames, range(first, first + given))
        return True

    def _at_cursor(self) -> Messages | None:
        """The block that holds the message at the cursor; what is not for this channel, and holes, are stepped over.

        None where there is none to give.
        """
        while self.cursor < self.limit:
            messages = self._messages
            if messages is not None and messages.first <= self.cursor < messages.next:
                if not self._others or self._others[0] > self.cursor:
                    return messages
                self.cursor += self._others.popleft() == self.cursor
                continue
            block = self._blocks(self.cursor)
            if block is None:
                return None
            self.cursor = min(max(self.cursor, block.first), self.limit)
            self._messages = Messages(block.first, block.data)
            self._others = deque(moved_before(block.data, block.first, self.since))
        self._messages = None
        return None

    def _sample(self, consumer: Consumer, messages: Messages, now: int) -> bool:
        """One message, or as if one had been finished: a client that samples loses the rest for all of the channel."""
        first = self.cursor
        self.cursor += 1
        if self._random.randrange(100) > consumer.sample_rate:
            self.skipped += 1
            return True
        frames, _ = messages.new(first, 1, 0)
        self.unfinished.take(first, 1, consumer.holder, now, consumer.message_timeout)
        self._wake_at(now + consumer.message_timeout)
        consumer.messages += 1
        consumer.sink.send(frames, (first,))
        return True

    def _give_again(self, consumer: Consumer, count: int, now: int) -> bool:
        offsets = self.unfinished.next_ready(count)
        if not offsets:
            return False
        block = self._blocks(offsets[0])
        if block is None:
            return False
        messages = Messages(block.first, block.data)
        together = 1
        while together < len(offsets) and messages.first <= offsets[together] < messages.next:
            together += 1
        offsets = offsets[:together]
        attempts = self.unfinished.take_again(offsets, consumer.holder, now, consumer.message_timeout)
        self._wake_at(now + consumer.message_timeout)
        if not messages.first <= offsets[0] < messages.next:
            self._lost(offsets, consumer)
            return True
        self._send_again(consumer, messages, offsets, attempts)
        return True

    def _send_again(self, consumer: Consumer, messages: Messages, offsets: array[int], attempts: array[int]) -> None:
        frames, given = messages.again(offsets, attempts, 0, UNSENT - consumer.sink.unsent)
        for offset in offsets[given:]:
            self.unfinished.take_back(offset, 1, consumer.holder)
        sent = [offset for offset, tried in zip(offsets[:given], attempts, strict=False) if tried]
        consumer.messages += len(sent)
        if sent:
            consumer.sink.send(frames, sent)

    def _lost(self, offsets: array[int], consumer: Consumer) -> None:
        """The log does not have it any more (damage, or a power cut): nobody will ever get it."""
        self.unfinished.finish(offsets[:1], 0, 1, 0, consumer.holder)
        for offset in offsets[1:]:
            self.unfinished.take_back(offset, 1, consumer.holder)

    # --- what users ask for

    def empty(self, wall: int) -> None:
        """Nothing below R is for this channel any more, nor what was deferred before now."""
        self.rewind(self.limit)
        self.since = wall

    def rewind(self, cursor: int) -> None:
        """Go on from there; what is unfinished is forgotten, so that later FINs of it fail."""
        self.cursor = cursor
        self.unfinished.clear()
        if self.latency is not None:
            self.latency.forget()
        self._messages = None
        for consumer in self.consumers:
            self.wake(consumer)

    def look_again(self) -> None:
        """What it read ahead is not what the log has now."""
        self._messages = None

    @property
    def low_water(self) -> int:
        """What lies below is not needed any more."""
        return self.unfinished.slots.lowest(self.cursor)
