"""What was answered OK beside what came: whether anything is lost, early, or there twice. Knows no socket."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

EARLY: Final = 0.01  # seconds: as much two clocks may differ


@dataclass
class Outcome:
    """Messages by their names, of which each has its own."""

    published: set[bytes] = field(default_factory=set)  # answered OK
    due: dict[bytes, float] = field(default_factory=dict)  # answered OK, deferred till then
    came: Counter[bytes] = field(default_factory=Counter)
    came_at: dict[bytes, float] = field(default_factory=dict)  # those that are deferred

    def take(self, names: Iterable[bytes], now: float) -> None:
        """These came."""
        for name in names:
            self.came[name] += 1
            if name in self.due:
                self.came_at.setdefault(name, now)

    @property
    def complete(self) -> bool:
        """Nothing that was answered OK is still to come."""
        return len(self.came_at) == len(self.due) and self.published <= self.came.keys()

    @property
    def lost(self) -> int:
        return len(self.published - self.came.keys()) + len(self.due.keys() - self.came.keys())

    @property
    def unanswered(self) -> int:
        """Came, and the kill took away the answer."""
        return len(self.came.keys() - self.published - self.due.keys())

    @property
    def twice(self) -> int:
        return self.came.total() - len(self.came)

    @property
    def lateness(self) -> list[float]:
        """Seconds between when each deferred one was due and when it came; below 0 it was early."""
        return [at - self.due[name] for name, at in self.came_at.items()]

    @property
    def early(self) -> int:
        return sum(late < -EARLY for late in self.lateness)

    @property
    def good(self) -> bool:
        return not (self.lost or self.early or self.twice)
