"""A history by message, by channel and by life of the node: what rules look things up in. Judges nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeVar

from tests.torture.history import (
    OK,
    REFUSED,
    Bounds,
    Connected,
    Died,
    Event,
    Figures,
    Finish,
    Harmed,
    History,
    Hole,
    Jumped,
    Kept,
    Publish,
    Receipt,
    Reported,
    Requeue,
    Rewound,
    Trouble,
    Wrong,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

E = TypeVar("E", bound=Event)
SLACK: Final = 1.5  # seconds that a tick, a thread or a client may be late on a busy machine


class Ledger:
    """Each kind of event, sorted by what rules ask."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.promise = history.promise
        self.channels = history.channels
        self.publishes = self._all(Publish)
        self.finishes, self.requeues = self._all(Finish), self._all(Requeue)
        self.connections = {each.connection: each for each in self._all(Connected)}
        self.rewinds = self._all(Rewound)
        self.deaths = sorted(self._all(Died), key=lambda died: died.at)
        self.troubles = sorted(self._all(Trouble), key=lambda trouble: trouble.began)
        self.harms, self.jumps = self._all(Harmed), sorted(self._all(Jumped), key=lambda jump: jump.at)
        self.reported, self.holes = self._all(Reported), self._all(Hole)
        self.kept, self.bounds = self._all(Kept), self._all(Bounds)
        self.figures, self.wrongs = self._all(Figures), self._all(Wrong)
        self.by_number = {n: publish for publish in self.publishes for n in range(publish.first, _end(publish))}
        self.receipts = sorted(self._all(Receipt), key=lambda receipt: receipt.at)
        came: dict[tuple[str, int], list[Receipt]] = defaultdict(list)
        for receipt in self.receipts:
            came[receipt.channel, receipt.number].append(receipt)
        self.came = dict(came)
        self.offset_of = {kept.number: kept.offset for kept in self.kept}
        if self.bounds:
            for receipt in self.receipts:
                self.offset_of.setdefault(receipt.number, receipt.id - self.bounds[0].base)

    def _all(self, kind: type[E]) -> list[E]:
        return [event for event in self.history if isinstance(event, kind)]

    # --- messages

    def answered(self) -> Iterator[tuple[int, Publish]]:
        """Each message that was answered OK."""
        for number, publish in self.by_number.items():
            if publish.outcome == OK:
                yield number, publish

    def possible(self, number: int) -> bool:
        """Whether it may be there at all."""
        publish = self.by_number.get(number)
        return publish is not None and publish.outcome != REFUSED

    # --- lives

    def forgets_since(self, died: Died) -> float:
        """What channels did from then on may be forgotten by this death; by a cut, what was answered as well."""
        timeout = self.promise.sync_timeout
        since = died.at - {"kill": timeout + SLACK, "cut": 2 * timeout + SLACK, "stop": 0.0}[died.how]
        for trouble in reversed(self.troubles):
            if trouble.deaf and trouble.began < died.at and trouble.ended >= since:
                since = min(since, trouble.began - timeout - SLACK)
        return since

    def undone(self, channel: str, done: float, seen: float) -> bool:
        """Whether what was done on the channel may not hold any more: forgotten, or the channel rewound."""
        rewound = any(rewind.channel == channel and done <= rewind.at <= seen for rewind in self.rewinds)
        return rewound or self.forgotten(done, seen)

    def forgotten(self, done: float, seen: float) -> bool:
        """Whether a death between these times may have undone what was done then."""
        if any(harm.kind == "journal" and done < harm.at < seen for harm in self.harms):
            return True
        return any(done <= died.at <= seen and done >= self.forgets_since(died) for died in self.deaths)

    def life_at(self, when: float) -> float:
        """When the life began that was lived at that time."""
        return max((died.back for died in self.deaths if died.back <= when), default=0.0)

    def ahead(self, since: float, until: float) -> float:
        """By how much the wall clock of a life in between was at most ahead of the one it began in."""
        offset = self._offset(self.life_at(since))
        starts = [died.back for died in self.deaths if since < died.back <= until]
        return max([0.0, *(self._offset(start) - offset for start in starts)])

    def behind(self, since: float, until: float) -> bool:
        offset = self._offset(self.life_at(since))
        return any(self._offset(died.back) < offset for died in self.deaths if since < died.back <= until)

    def _offset(self, life: float) -> float:
        return sum(jump.seconds for jump in self.jumps if jump.at < life)

    def well_since(self, when: float, patience: float) -> float:
        """The end of the troubles that begin no later than `patience` behind that time, or behind each other."""
        outages = [(died.at, died.back) for died in self.deaths] + [(t.began, t.ended) for t in self.troubles]
        for began, ended in sorted(outages):
            if began <= when + patience and ended > when:
                when = ended
        return when


def _end(publish: Publish) -> int:
    return publish.first + publish.size
