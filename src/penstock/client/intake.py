"""A consumer without its sockets: messages of all connections in one queue, RDY, back-off and time. Sends through
subscriptions, and reads no clock: times are arguments, in seconds.

    subscription --received--> queue --next--> whoever consumes --finish, requeue--> subscription
                                                                        '--> back-off --> RDY of all
"""

from __future__ import annotations

import logging
import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.client.backoff import Backoff, State
from penstock.client.ready import Ready, Share
from penstock.protocol import requests

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.client.message import Message
    from penstock.client.subscription import Subscription

_log: Final = logging.getLogger("penstock.client")
_TICK: Final = 1.0  # seconds between looks at the time of messages, at most


@dataclass
class Stats:
    """What a consumer did since it was opened."""

    received: int = 0
    finished: int = 0
    requeued: int = 0
    timed_out: int = 0  # that nobody answered in time
    given_up: int = 0  # after their last attempt
    failed: int = 0  # finished, requeued or touched when nsqd did not hold them for us any more


class Intake:
    def __init__(self, max_in_flight: int, backoff: Backoff) -> None:
        self.stats = Stats()
        self.queue: deque[Message] = deque()
        self.due = math.inf  # when `tick` has something to do
        self.stopping = False
        self._max_in_flight = max_in_flight
        self._backoff = backoff
        self._ready = Ready()
        self._shares: dict[Subscription, Share] = {}
        self._next_look = math.inf
        self._outcomes: list[bool] = []

    # --- connections

    def connected(self, subscription: Subscription, most: int, round_trip: float, now: float) -> None:
        share = Share(subscription, most, round_trip)
        self._shares[subscription] = share
        self._next_look = min(self._next_look, now + min(_TICK, subscription.pace))
        self._ready.add(share, now)
        self.tick(now)

    def disconnected(self, subscription: Subscription, now: float) -> None:
        """What it gave comes again."""
        subscription.lost()
        share = self._shares.pop(subscription, None)
        if share is not None:
            self._ready.remove(share, now)
            self.tick(now)

    @property
    def connections(self) -> list[Subscription]:
        return list(self._shares)

    # --- messages

    def received(self, subscription: Subscription, messages: list[Message], now: float) -> None:
        subscription.delivered(messages)
        self.stats.received += len(messages)
        if self.stopping:
            self._give_back(messages)
            return
        self.queue.extend(messages)
        self._ready.stir(self._shares[subscription], now)
        self.due = min(self.due, self._ready.due)

    def next(self) -> Message | None:
        """The next one that is still ours."""
        queue = self.queue
        while queue:
            message = queue.popleft()
            if message.held:
                return message
        return None

    def outcome(self, finished: bool | None) -> None:
        """A message was answered: `None` where it was requeued and nobody is to blame."""
        if finished:
            self.stats.finished += 1
            if self._backoff.state is State.PROBING:
                self._outcomes.append(True)
        else:
            self.stats.requeued += 1
            if finished is False:
                self._outcomes.append(False)

    @property
    def restless(self) -> bool:
        """Whether what was answered in this turn calls for a `tick`."""
        return not self.stopping and (bool(self._outcomes) or self._ready.wanting)

    # --- time

    def tick(self, now: float) -> None:
        """Do what is to be done by now; once a turn is enough."""
        if now >= self._next_look:
            self._look(now)
        for finished in self._outcomes:
            if self._backoff.succeeded(now) if finished else self._backoff.failed(now):
                self._told_of_backoff()
        self._outcomes.clear()
        if self.stopping:
            self.due = self._next_look  # what handlers still have is touched
            return
        self._backoff.tick(now)
        for share, count in self._ready.plan(self._backoff.allows(self._max_in_flight), now):
            share.subscription.send(requests.rdy(count))
        self.due = min(self._ready.due, self._backoff.until, self._next_look)

    def _look(self, now: float) -> None:
        for subscription in self._shares:
            self.stats.timed_out += subscription.tick(now)
        paces = [subscription.pace for subscription in self._shares]
        self._next_look = now + min(_TICK, *paces) if paces else math.inf

    def _told_of_backoff(self) -> None:
        backoff = self._backoff
        if backoff.state is State.FLOWING:
            _log.info("back-off is over")
        else:
            _log.warning("backing off for %.1f s, level %d", backoff.seconds, backoff.level)

    @property
    def max_in_flight(self) -> int:
        return self._max_in_flight

    def allow(self, max_in_flight: int, now: float) -> None:
        """So many from now on; none, to pause."""
        self._max_in_flight = max_in_flight
        self.tick(now)

    # --- the end

    def stop(self) -> None:
        """Nothing more is asked for; what nobody has begun with is given back."""
        self.stopping = True
        self.due = self._next_look
        for subscription in self._shares:
            subscription.send(requests.CLS)
        queued, self.queue = self.queue, deque()
        self._give_back(queued)

    def give_back(self) -> None:
        """All that is still held."""
        for subscription in self._shares:
            self._give_back(list(subscription.in_flight.values()))

    @staticmethod
    def _give_back(messages: Iterable[Message]) -> None:
        for message in messages:
            if not message.answered:
                message.answered = True
                message.holder.requeue(message, 0.0, backoff=None)
