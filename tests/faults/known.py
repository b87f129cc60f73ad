"""What people outside know of the topics of a node, moment by moment: the measure of every recovery here.

A history tells it to a `Timeline` while it goes on; `at(step)` is what was known when operation `step` was the last.
What loosens a promise is told before it is asked for, what makes one after it was answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import NamedTuple


class There(Enum):
    """Of a topic."""

    MADE = "was made"
    SURE = "was made and flushed"
    GOING = "is being deleted"
    GONE = "was deleted"
    ERASED = "was deleted, and that was flushed"


@dataclass
class Known:
    """One incarnation of a topic. Offsets that somebody saw are below `end`."""

    there: There = There.MADE
    end: int = 0
    flushed: int = 0
    wished: int = 0  # what is below may be deleted
    told: int = 0  # what is below was said to be gone
    alive: frozenset[int] = frozenset()  # answered, and not lost at an earlier cut
    held: frozenset[int] = frozenset()  # copied aside, and still wanted
    deferred: frozenset[bytes] = frozenset()  # bodies of messages that wait for their time, or waited
    safe: frozenset[bytes] = frozenset()  # of those, what was flushed


class Message(NamedTuple):
    body: bytes
    timestamp: int
    id: bytes


class Told(NamedTuple):
    step: int
    folder: str
    field: str
    value: object


class Book:
    """What was ever tried to write where, in order: a message that nobody can have seen may be written over."""

    def __init__(self) -> None:
        self.messages: dict[str, dict[int, list[Message]]] = {}
        self.moved: dict[str, dict[bytes, int]] = {}  # where deferred messages went
        self._places: dict[bytes, tuple[str, int]] = {}

    def enter(self, folder: str, offset: int, message: Message) -> None:
        place = self._places.setdefault(message.id, (folder, offset))
        assert place == (folder, offset), f"{message.id!r} names {place} and {(folder, offset)}"
        self.messages.setdefault(folder, {}).setdefault(offset, []).append(message)


@dataclass
class Timeline:
    """What was known at its beginning, and what was told since; `now` is all of it."""

    start: dict[str, Known] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = {folder: copy(known) for folder, known in self.start.items()}

    def tell(self, step: int, folder: str, name: str, value: object) -> None:
        self.told.append(Told(step, folder, name, value))
        _apply(self.now, self.told[-1])

    def at(self, step: int) -> dict[str, Known]:
        known = {folder: copy(each) for folder, each in self.start.items()}
        for told in self.told:
            if told.step > step:
                break
            _apply(known, told)
        return known

    def folded(self, steps: Iterable[int]) -> Iterator[dict[str, Known]]:
        """`at` each of the steps, which ascend; good until the next one."""
        known = {folder: copy(each) for folder, each in self.start.items()}
        number = 0
        for step in steps:
            while number < len(self.told) and self.told[number].step <= step:
                _apply(known, self.told[number])
                number += 1
            yield known


_RISING = {"end", "flushed", "wished", "told"}
_GROWING = {"alive", "deferred", "safe"}
_FIELDS = {each.name for each in fields(Known)}


def _apply(known: dict[str, Known], told: Told) -> None:
    assert told.field in _FIELDS
    topic = known.setdefault(told.folder, Known())
    before = getattr(topic, told.field)
    if told.field in _RISING:
        setattr(topic, told.field, max(before, told.value))
    elif told.field in _GROWING:
        setattr(topic, told.field, before | told.value)
    else:
        setattr(topic, told.field, told.value)
