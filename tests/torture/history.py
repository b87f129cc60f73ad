"""What clients did and saw, and what was done to the node: the events, in a file as well. Judges nothing.

Times are seconds of the monotonic clock, which all processes of a machine share. Messages are numbers; their bodies
follow from them (`bodies`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, get_args

if TYPE_CHECKING:
    from pathlib import Path

OK: Final = "ok"
REFUSED: Final = "refused"  # it is certain that nothing was published
UNKNOWN: Final = "unknown"  # no answer, or one that says so


class Publish(NamedTuple):
    """Messages `[first, first + size)`, by one command."""

    first: int
    size: int
    how: str
    sent: float
    answered: float
    outcome: str
    delay: float = 0.0


class Receipt(NamedTuple):
    """A message came; `number` is -1 where its body says none."""

    channel: str
    number: int
    id: int
    attempts: int
    connection: int
    at: float
    intact: bool


class Finish(NamedTuple):
    """A FIN; `known` is when the node had certainly taken it, 0.0 where nobody knows whether it did."""

    channel: str
    number: int
    attempts: int
    sent: float
    known: float


class Requeue(NamedTuple):
    """A REQ with a delay in seconds; `known` as for a FIN."""

    channel: str
    number: int
    attempts: int
    sent: float
    known: float
    delay: float


class Connected(NamedTuple):
    """A consumer's connection begins."""

    channel: str
    connection: int
    at: float
    ready: int


class Rewound(NamedTuple):
    """A channel begins anew."""

    channel: str
    at: float


class Died(NamedTuple):
    """A life of the node ended: by `kill`, `cut` (the power's) or `stop`. The next one listened at `back`."""

    how: str
    at: float
    back: float


class Trouble(NamedTuple):
    """Something was wrong in between: `what` is a nemesis; `deaf` where the journal may not be told meanwhile."""

    what: str
    began: float
    ended: float
    deaf: bool


class Harmed(NamedTuple):
    """Bytes that the node had written were changed or removed, behind its back; `kind` is which file."""

    at: float
    kind: str
    what: str


class Jumped(NamedTuple):
    """From the next life on the wall clock is another by so many seconds."""

    at: float
    seconds: float


class Reported(NamedTuple):
    """The node said that something is damaged, or lost."""

    line: str


class Hole(NamedTuple):
    """Offsets that the topic's log says hold nothing, at the end."""

    first: int
    next: int
    why: str


class Kept(NamedTuple):
    """A message that the topic's log holds at the end, by the number in its body; -1 where that is none."""

    offset: int
    number: int


class Bounds(NamedTuple):
    """The topic's log at the end: its first offset, its end, and the id of offset 0."""

    earliest: int
    end: int
    base: int


class Figures(NamedTuple):
    """A channel in /stats while no client did anything; of the topic where `channel` is empty."""

    at: float
    channel: str
    waiting: int  # depth, in flight and deferred
    messages: int  # counted since the node started
    requeues: int
    final: bool


class Wrong(NamedTuple):
    """Something that nobody meant to, whatever the faults: it did not start, it raised, it did not stop."""

    at: float
    what: str


Event: TypeAlias = (
    Publish | Receipt | Finish | Requeue | Connected | Rewound | Died | Trouble | Harmed | Jumped | Reported | Hole
    | Kept | Bounds | Figures | Wrong
)  # fmt: skip
_KINDS: Final = {kind.__name__: kind for kind in get_args(Event)}


class Promise(NamedTuple):
    """The flags that say what may be lost, in seconds and messages."""

    sync_every: int = 2500
    sync_timeout: float = 2.0


class History(list[Event]):
    """Events as they were noted down; threads may append. `promise` is what the node was started with."""

    def __init__(self, promise: Promise, channels: tuple[str, ...]) -> None:
        super().__init__()
        self.promise = promise
        self.channels = channels

    def save(self, path: Path) -> None:
        with path.open("w") as file:
            file.write(json.dumps({"promise": self.promise, "channels": self.channels}) + "\n")
            for event in self:
                file.write(json.dumps([type(event).__name__, *event]) + "\n")

    @classmethod
    def load(cls, path: Path) -> History:
        with path.open() as file:
            head = json.loads(file.readline())
            history = cls(Promise(*head["promise"]), tuple(head["channels"]))
            for line in file:
                kind, *fields = json.loads(line)
                history.append(_KINDS[kind](*fields))
        return history
