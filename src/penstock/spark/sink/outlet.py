"""One node, to which a task publishes: a chunk on its way while the next one is made. Knows chunks and no rows.

What fails and may pass is sent again, until the patience is over: to the same node where it is known by its number, or
where the caller wants it there; else to the next one.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from penstock.errors import NodeFailed, SparkError
from penstock.spark.http import Connection, pause_after

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.spark.http import Access, Answer
    from penstock.spark.sink.chunks import Chunk
    from penstock.spark.sink.numbering import Numbering

CHANGED: Final = (
    "this batch was published before, with other rows or in another order, and what is repeated has to be the same: "
    "a shuffle before the sink may be why; sort within partitions, or write to a table and publish that"
)
_CONFLICT: Final = 409


@dataclass(slots=True)
class _Sent:
    """A chunk that is not answered yet."""

    target: str
    body: memoryview


class Outlet:
    """`urls` are this node's, and of those that may stand in for it."""

    def __init__(
        self,
        urls: Sequence[str],
        access: Access,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._urls = deque(urls)
        self._access = access
        self._patience = patience
        self._clock = clock
        self._pause = pause
        self._connection = Connection(urls[0], access)
        self._sent: _Sent | None = None

    @property
    def url(self) -> str:
        return self._connection.url

    def publish(self, chunk: Chunk, key: str = "") -> None:
        """The one before it is answered when this returns; `key` is more of the query."""
        self.settle()
        place = chunk.place
        target = f"/mpub?topic={quote(place.topic, safe='')}&binary=true{key}"
        if place.due:
            target += f"&due={place.due}"
        elif place.delay:
            target += f"&defer={place.delay}"
        self._sent = _Sent(target, chunk.body())
        try:
            self._connection.begin("POST", target, self._sent.body)
        except NodeFailed as error:
            self._again(error)

    def settle(self) -> None:
        """What was sent is published."""
        if self._sent is None:
            return
        try:
            self._judge(self._connection.end())
        except NodeFailed as error:
            self._again(error)

    def _judge(self, answer: Answer) -> None:
        sent = self._sent
        if sent is None or (answer.status == 200 and answer.body == b"OK"):
            self._sent = None
            return
        if answer.status == 200:  # as much of an answer as was sent before the node was killed
            raise NodeFailed(f"{self.url} answered with no OK", passing=True)
        if answer.status == _CONFLICT:
            raise SparkError(f"{self.url}: {CHANGED}")
        raise self._connection.refused(sent.target.partition("?")[0], answer)

    def _again(self, error: NodeFailed) -> None:
        """Until it is published, or the patience is over."""
        since, failures = self._clock(), 0
        while True:
            if not error.passing:
                raise error
            if self._clock() - since >= self._patience:
                raise NodeFailed(f"{error}; it was sent again for {self._patience:g} s (option sinkTimeout)")
            self._pause(pause_after(failures))
            failures += 1
            self._next_node()
            try:
                self._answer_now()
            except NodeFailed as another:
                error = another
            else:
                return

    def _answer_now(self) -> None:
        if (sent := self._sent) is not None:
            self._judge(self._connection.ask("POST", sent.target, sent.body))

    def _next_node(self) -> None:
        if len(self._urls) > 1:
            self._urls.rotate(-1)
            self._connection.close()
            self._connection = Connection(self._urls[0], self._access)

    def ask(self, target: str, method: str = "GET") -> Answer:
        """Something else of the node, as patiently; nothing is on its way."""
        since, failures = self._clock(), 0
        while True:
            try:
                answer = self._connection.ask(method, target)
                if answer.status == 200:
                    return answer
                raise self._connection.refused(target.partition("?")[0], answer)
            except NodeFailed as error:
                if not error.passing or self._clock() - since >= self._patience:
                    raise
            self._pause(pause_after(failures))
            failures += 1

    def close(self) -> None:
        self._connection.close()


def key_of(numbering: Numbering, number: int, digest: str) -> str:
    """What a publish under a key has in its query."""
    return f"&producer={numbering.producer}&sequence={numbering.sequence(number)}&digest={digest}"
