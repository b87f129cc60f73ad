"""Whether a consumer holds back, and for how long. Knows no connection; times are arguments, in seconds.

    FLOWING --failure--> WAITING --time--> PROBING --success--> one level less: WAITING, or at last FLOWING
                            ^                 |
                            '----failure------'  one level more, and twice as long

While it waits nothing is asked for, and what was in flight before changes nothing. While it probes, one message is.
"""

from __future__ import annotations

import math
from enum import Enum


class State(Enum):
    FLOWING = 0
    WAITING = 1
    PROBING = 2


class Backoff:
    def __init__(self, first: float = 1.0, longest: float = 120.0) -> None:
        """The shortest and the longest wait; no back-off at all where the longest is 0."""
        self.state = State.FLOWING
        self.level = 0
        self.until = math.inf  # where it waits: when that is over
        self._first = first
        self._longest = longest

    def failed(self, now: float) -> bool:
        """A message could not be dealt with; whether that changes anything."""
        if self.state is State.WAITING or self._longest <= 0:
            return False
        if self.level == 0 or self.seconds < self._longest:
            self.level += 1
        self._wait(now)
        return True

    def succeeded(self, now: float) -> bool:
        if self.state is not State.PROBING:
            return False
        self.level -= 1
        if self.level:
            self._wait(now)
        else:
            self.state = State.FLOWING
        return True

    def tick(self, now: float) -> bool:
        """Whether a wait is over."""
        if self.state is not State.WAITING or now < self.until:
            return False
        self.state = State.PROBING
        self.until = math.inf
        return True

    def allows(self, max_in_flight: int) -> int:
        """How many messages may be in flight now."""
        if self.state is State.FLOWING:
            return max_in_flight
        return min(1, max_in_flight) if self.state is State.PROBING else 0

    @property
    def seconds(self) -> float:
        """How long this level waits."""
        return min(self._first * 2.0 ** (self.level - 1), self._longest)

    def _wait(self, now: float) -> None:
        self.state = State.WAITING
        self.until = now + self.seconds
