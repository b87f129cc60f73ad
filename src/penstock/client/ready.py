"""How many messages each nsqd may send: the RDY of each connection. Knows no socket; times are arguments, in seconds.

    enough for all       each has its share; those that are idle lend all but one of theirs, until a message comes
    fewer than there     each gets one in turn, for a slice of time, and passes it on sooner when nothing comes;
      are connections      a whole round takes no more than a second, so that nobody waits longer with messages ready

What an nsqd was allowed and what came from it count as in flight until it is told less and those are answered: so that
`max_in_flight` is exceeded by no more than what is on its way when one nsqd is told less and another more.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.client.subscription import Subscription

ROUND: Final = 1.0  # for all that take turns
_SHORTEST: Final = 0.01  # slice
_LONGEST: Final = 0.25
_PROBE: Final = 0.25  # of a slice: so long it waits for a first message, where others have some
_CLOCK: Final = 1e-6  # a timer may be as early as this
_IDLE: Final = 1.0  # without a message for so long, a connection lends its share
_SETTLED: Final = 0.05  # shares change no more often than this, but for connections that come and go
_NEVER: Final = -math.inf


class Share:
    """What one connection may send, was told, and has sent."""

    __slots__ = ("in_flight", "most", "ready", "round_trip", "since", "stirred", "subscription")

    def __init__(self, subscription: Subscription, most: int = 2500, round_trip: float = 0.0) -> None:
        """`most` is the nsqd's own limit."""
        self.subscription = subscription
        self.in_flight = subscription.in_flight
        self.most = most
        self.round_trip = round_trip
        self.ready = 0  # what it was told last
        self.since = 0.0  # when
        self.stirred = _NEVER  # when a message came last

    @property
    def taken(self) -> int:
        return max(self.ready, len(self.in_flight))


class Ready:
    """The shares of one consumer. `plan` says what is to be told to whom, and `due` when to ask for the next plan."""

    def __init__(self) -> None:
        self._shares: deque[Share] = deque()  # in the order of their turns
        self.due = math.inf
        self.wanting = False  # somebody should have more, once messages are answered
        self._planned = _NEVER

    def add(self, share: Share, now: float) -> None:
        share.stirred = now  # as if it had messages, until it shows
        self._shares.appendleft(share)  # it is next: what is there has waited longest
        self._soon(now)

    def remove(self, share: Share, now: float) -> None:
        if share in self._shares:
            self._shares.remove(share)
            self._soon(now)

    def stir(self, share: Share, now: float) -> None:
        """Messages came."""
        if now - share.stirred > _IDLE:
            self._soon(max(now, self._planned + _SETTLED))
        share.stirred = now

    def plan(self, allowed: int, now: float) -> Iterator[tuple[Share, int]]:
        """Who is to be told what, as of now, where that many messages may be in flight."""
        self._planned = now
        self.due = math.inf
        wished = self._turns(allowed, now) if allowed < len(self._shares) else self._divided(allowed, now)
        for share, count in wished.items():
            if count < share.ready:
                yield share, self._told(share, count, now)
        free = allowed - sum(share.taken for share in self._shares)
        self.wanting = False
        for share, count in wished.items():
            if count > share.ready:
                more = min(count, share.ready + max(0, free + share.taken - share.ready))
                self.wanting = self.wanting or more < count
                if more > share.ready:
                    free -= max(0, more - share.taken)
                    yield share, self._told(share, more, now)

    def _told(self, share: Share, count: int, now: float) -> int:
        if not share.ready:
            share.since = now
        share.ready = count
        return count

    def _soon(self, when: float) -> None:
        self.due = min(self.due, when)

    def _divided(self, allowed: int, now: float) -> dict[Share, int]:
        """One for each at least; the rest for those that are busy, or for all where none or all are."""
        shares = self._shares
        busy = [share for share in shares if now - share.stirred <= _IDLE]
        if busy:
            self._soon(min(share.stirred for share in busy) + 1.01 * _IDLE)
        else:
            busy = list(shares)
        wished = dict.fromkeys(shares, 1)
        left = allowed - len(shares)
        for number, share in enumerate(sorted(busy, key=lambda share: share.most)):
            more = min(left // (len(busy) - number), share.most - 1)
            wished[share] += more
            left -= more
        return wished

    def _turns(self, allowed: int, now: float) -> dict[Share, int]:
        """One for each of the first `allowed`; who had its turn goes to the end."""
        shares = self._shares
        wished = dict.fromkeys(shares, 0)
        if not allowed:
            return wished
        slice_ = min(max(ROUND * allowed / len(shares), _SHORTEST), _LONGEST)
        probe = slice_ * _PROBE if any(now - share.stirred <= _IDLE for share in shares) else slice_
        ends = {share: _end(share, slice_, probe) for share in shares if share.ready}
        for share in [share for share, end in ends.items() if now >= end - _CLOCK]:
            del ends[share]
            shares.remove(share)
            shares.append(share)
        for share in [*ends, *(share for share in shares if share not in ends)][:allowed]:
            wished[share] = 1
            self._soon(ends.get(share, now + probe))
        return wished


def _end(share: Share, slice_: float, probe: float) -> float:
    """When its turn is over: sooner when it had time to send something, and did not."""
    return share.since + max(slice_ if share.stirred > share.since else probe, 2 * share.round_trip)
