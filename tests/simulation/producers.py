"""Producers of the simulation: each numbers its batches, and sends one until it is answered, over lives of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import LogError, OtherBatch
from penstock.log.keyed import Key

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.simulation.model import Model, Publish
    from tests.simulation.world import World


class Ticket:
    """One sending of a batch, and how it was answered."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.last: int | None = None
        self.answered = self.excused = False
        self.error: LogError | None = None

    def repeats(self, last: int) -> None:
        self.last = last

    def done(self, error: LogError | None) -> None:
        assert not self.answered, "answered twice"
        self.answered, self.error = True, error
        self.excused = self._model.troubled


class Producer:
    """To one topic; the model says of each message that it is there once."""

    def __init__(self, world: World, model: Model, rng: Random, name: str, topic: str) -> None:
        self._world = world
        self._model = model
        self._rng = rng
        self._name = name.encode()
        self._topic = topic
        self._sequence = 0
        self._batch: list[Publish] = []
        self._due = 0
        self._safe = True  # it was answered OK
        self._ticket: Ticket | None = None

    def move(self, message: Callable[[str], Publish]) -> None:
        """Send the batch that is not answered yet, or a new one, or one once more that was answered."""
        if self._ticket is not None:
            return
        if self._safe and (not self._batch or self._rng.random() < 0.8):
            self._sequence += self._rng.choice((1, 1, 1, 5))
            self._batch = [message(self._topic) for _ in range(self._rng.choice((1, 1, 2, 10)))]
            delay = self._rng.choice((0, 0, 0, 10, 3000, 20_000)) * 10**6
            self._due = self._world.clock.wall + delay if delay else 0
            for publish in self._batch:
                publish.once, publish.due = True, self._due
        self._send()

    def _send(self) -> None:
        model, node = self._model, self._world.node
        self._safe = False
        model.touching.add(self._topic)
        if model.troubled:
            model.attempted.add(self._topic)
        for publish in self._batch:
            publish.asked = model.step
            if not publish.seen:  # else its record says when it was published
                publish.wall = model.clock.wall
        bodies = [publish.body for publish in self._batch]
        key = Key(self._name, self._sequence, b"%d" % self._sequence)
        ticket = Ticket(model)
        try:
            home = node.topic(self._topic)
        except LogError as error:
            model.may_fail(str(error).encode())
            return
        self._ticket = ticket
        delay = max(10**7, self._due - self._world.clock.wall) if self._due else 0  # deferred whenever it is sent
        node.producers.publish(home, key, bodies, delay, ticket)
        node.dirty(home)

    def hear(self) -> None:
        """The turn is over: the answer, if there is one."""
        ticket = self._ticket
        if ticket is None or not ticket.answered:
            return
        self._ticket = None
        assert not isinstance(ticket.error, OtherBatch), "the same batch is another one"
        if ticket.error is not None:
            if self._model.deleted.get(self._topic, -1) < self._batch[0].asked:
                assert ticket.excused, f"nothing was wrong with the disk: {ticket.error}"
            return
        self._safe = True
        for publish in self._batch:
            if ticket.last is None or not publish.seen:  # else it may be consumed, emptied, deleted
                self._model.answered(publish)

    def forget(self) -> None:
        """The node is gone, and with it the answer."""
        self._ticket = None
