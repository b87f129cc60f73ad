"""What one connection to an nsqd has given a consumer. Knows no socket; times are arguments, in seconds.

delivered --> in flight --finish, requeue--> answered
                 |  '--touch-- its time begins anew; by itself, as long as nsqd allows it
                 '--its time is over, or its connection--> not held any more: it comes again
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.protocol import requests

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.client.address import Address
    from penstock.client.handshake import Agreement
    from penstock.client.message import Message

_TOUCH_AT: Final = 0.5  # of the time that a message has


class Subscription:
    """The messages of one connection."""

    def __init__(
        self,
        address: Address,
        agreement: Agreement,
        send: Callable[[bytes], None],
        outcome: Callable[[bool | None], None],
        *,
        touches: bool = True,
    ) -> None:
        """`outcome` is told of each answer: finished, requeued, or requeued by nobody's fault (None)."""
        self.address = address
        self.in_flight: dict[bytes, Message] = {}  # in the order in which their times end
        self.send = send
        self._outcome = outcome
        self._touches = touches
        self._time = agreement.msg_timeout
        self._most = agreement.max_msg_timeout

    def delivered(self, messages: list[Message]) -> None:
        in_flight = self.in_flight
        for message in messages:
            if message.id in in_flight:  # its time was over, for nsqd
                del in_flight[message.id]
            in_flight[message.id] = message

    def holds(self, message: Message) -> bool:
        return self.in_flight.get(message.id) is message

    def finish(self, message: Message) -> None:
        if self.holds(message):
            del self.in_flight[message.id]
            self.send(b"FIN %b\n" % message.id)
            self._outcome(True)

    def requeue(self, message: Message, delay: float, backoff: bool | None) -> None:
        if self.holds(message):
            del self.in_flight[message.id]
            self.send(requests.req(message.id, max(0, round(delay * 1000))))
            self._outcome(False if backoff else None)

    def touch(self, message: Message, now: float) -> None:
        if self.holds(message):
            self.send(requests.touch(message.id))
            message.touched = now
            del self.in_flight[message.id]
            self.in_flight[message.id] = message

    def tick(self, now: float) -> int:
        """Touch what has waited for half its time; let go of what has no time left, and say how many those are."""
        until = now - self._time * (_TOUCH_AT if self._touches else 1.0)
        waiting = []
        for message in self.in_flight.values():
            if message.touched > until:
                break
            waiting.append(message)
        over = 0
        for message in waiting:
            if now >= min(message.touched + self._time, message.delivered + self._most):
                del self.in_flight[message.id]
                over += 1
            else:
                self.touch(message, now)
        return over

    @property
    def pace(self) -> float:
        """Seconds between two ticks."""
        return self._time / 8

    def lost(self) -> None:
        """Nothing is held any more."""
        self.in_flight.clear()
