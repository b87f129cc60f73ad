"""What a device holds while changes are on their way to it, and what a power cut may make of them: values only.

A `Device` is a value; each operation makes the next one. Files and directories are numbers, as inodes are.

    write, truncation   ──flush of the file──────────────────▶ sure
    entry               ──flush of its directory─────────────▶ sure
    waiting write       ──flush of the file that failed──────▶ forgotten: no later flush makes it sure

What is not sure has one of many `Fate`s at a cut. The rules, harsher than any one file system, and like all of them:
- Each write and each truncation is kept or lost by itself, whatever came before or after it. A write may also be torn:
  any of its 512-byte sectors (counted from the start of the file) are kept, the others not. Where the size reached the
  device without the bytes, there are zeros, or what the device held there before: noise, or the bytes of a dead file.
- A file's bytes and its name are two things: the flush of one says nothing of the other. A directory that is itself
  not sure takes all that is in it with it.
- Entries are kept or lost by themselves, but those of one name in the order in which they were made. A rename is one
  step, old name or new, and the flush of either directory makes it sure. A directory is only gone when all that left
  it has left. A directory moved elsewhere comes after all before it.
- A sector is whole, and a write hurts no bytes beside it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

SECTOR: Final = 512
ROOT: Final = 0
_DEAD_KEPT: Final = 3  # of how many removed files the bytes may come up again

Trees: TypeAlias = dict[int, dict[str, int]]
Place: TypeAlias = tuple[int, str]  # a name in a directory


class Fate(NamedTuple):
    """What of one change is on the device: a bit for each sector, and whether the file's new size is."""

    sectors: int
    sized: bool


KEPT: Final = Fate(-1, True)
LOST: Final = Fate(0, False)
HOLLOW: Final = Fate(0, True)


class State(Enum):
    WAITING = "waiting"
    SURE = "sure"
    FORGOTTEN = "forgotten"


class Change(NamedTuple):
    """A write, or a truncation to `position` where there are no bytes."""

    step: int
    path: str
    position: int
    data: bytes | None
    state: State = State.WAITING

    def __str__(self) -> str:
        if self.data is None:
            return f"truncation of {self.path} to {self.position}"
        return f"write of {self.path} at {self.position}, {len(self.data)} bytes"

    @property
    def end(self) -> int:
        return self.position + len(self.data or b"")

    @property
    def sectors(self) -> int:
        """How many sectors it touches; a truncation none."""
        return 0 if self.data is None else (self.end - 1) // SECTOR - self.position // SECTOR + 1

    def apply(self, content: bytearray, fate: Fate, stale: Stale) -> None:
        """Make of the file's bytes what this change with this fate makes of them."""
        if fate == LOST:
            return
        content += bytes(max(0, self.position - len(content)))  # a hole is zeros, whatever lay there
        if self.data is None:
            del content[self.position :]
        elif fate == KEPT:
            content[self.position : self.position + len(self.data)] = self.data
        else:
            self._tear(self.data, content, fate, stale)

    def _tear(self, data: bytes, content: bytearray, fate: Fate, stale: Stale) -> None:
        base = self.position // SECTOR
        kept = [base + sector for sector in range(self.sectors) if fate.sectors >> sector & 1]
        reached = self.end if fate.sized else min(self.end, (kept[-1] + 1) * SECTOR)
        if reached > len(content):
            content += stale.between(len(content), reached)
        for sector in kept:
            start, stop = max(self.position, sector * SECTOR), min(self.end, (sector + 1) * SECTOR)
            content[start:stop] = data[start - self.position : stop - self.position]


class Entry(NamedTuple):
    """A name that came, went, or moved; `after` are the steps without which it cannot have happened."""

    step: int
    path: str
    node: int
    removed: Place | None
    added: Place | None
    after: frozenset[int]

    def __str__(self) -> str:
        return f"{'removal' if not self.added else 'rename to' if self.removed else 'name'} {self.path}"

    @property
    def places(self) -> set[Place]:
        return {place for place in (self.removed, self.added) if place}

    def apply(self, trees: Trees) -> None:
        if self.removed:
            del trees[self.removed[0]][self.removed[1]]
        if self.added:
            trees[self.added[0]][self.added[1]] = self.node


Item: TypeAlias = Change | Entry


class Stale(NamedTuple):
    """What a device gives for bytes that never reached it: what lay there before, again and again, sector by sector."""

    name: str
    held: bytes

    def between(self, start: int, stop: int) -> bytes:
        size = stop - start
        held = self.held + bytes(-len(self.held) % SECTOR)
        at = start % len(held)
        return (held[at:] + held * (size // len(held) + 1))[:size]


ZEROS: Final = Stale("zeros", bytes(SECTOR))
NOISE: Final = Stale("noise", random.Random(0).randbytes(8 * SECTOR))


class Content(NamedTuple):
    """A file: its bytes at the last flush, and what was done to it since."""

    durable: bytes = b""
    changes: tuple[Change, ...] = ()

    def after(self, fates: Mapping[int, Fate], stale: Stale) -> bytes:
        """Its bytes when its changes have these fates; what is not named is kept, and nobody names what is sure."""
        if not self.changes:
            return self.durable
        content = bytearray(self.durable)
        for change in self.changes:
            change.apply(content, fates.get(change.step, KEPT), stale)
        return bytes(content)

    def turn(self, state: State) -> Content:
        """What waits becomes sure or forgotten; what is sure and follows nothing doubtful becomes the durable bytes."""
        changes = tuple(c._replace(state=state) if c.state is State.WAITING else c for c in self.changes)
        if all(change.state is State.SURE for change in changes):
            return Content(self.after({}, ZEROS))
        return Content(self.durable, changes)


class Device(NamedTuple):
    """All of it at one moment."""

    trees: Trees = {ROOT: {}}  # noqa: RUF012 - never changed in place
    entries: tuple[Entry, ...] = ()  # names that are not sure, oldest first
    contents: dict[int, Content] = {}  # noqa: RUF012
    dead: tuple[bytes, ...] = ()

    def items(self) -> list[Item]:
        """All that is not sure, in the order in which it was done."""
        changes = [c for content in self.contents.values() for c in content.changes if c.state is not State.SURE]
        return sorted([*self.entries, *changes], key=lambda item: item.step)

    def trees_after(self, fates: Mapping[int, Fate]) -> Trees:
        """Who stands where when the entries have these fates; without what it rests on, an entry is lost too."""
        trees = {number: dict(entries) for number, entries in self.trees.items()}
        lost: set[int] = set()
        for entry in self.entries:
            if fates.get(entry.step, KEPT) != KEPT or entry.after & lost:
                lost.add(entry.step)
            else:
                entry.apply(trees)
        return trees

    def changed(self, number: int, change: Change) -> Device:
        content = self.contents.get(number)
        if content is None:  # open, but its removal is sure: nobody can find it again
            return self
        return self._replace(contents={**self.contents, number: Content(content.durable, (*content.changes, change))})

    def created(self, number: int, *, directory: bool) -> Device:
        if directory:
            return self._replace(trees={**self.trees, number: {}})
        return self._replace(contents={**self.contents, number: Content()})

    def entered(
        self,
        step: int,
        path: str,
        node: int,
        removed: Place | None,
        added: Place | None,
        replaced: int | None,
    ) -> Device:
        """A name came, went, or moved; `replaced` is the node that it removed, if any."""
        places = {removed, added}
        moved = bool(removed and added and removed[0] != added[0] and node in self.trees)
        after = frozenset(
            entry.step
            for entry in self.entries
            if moved or entry.places & places or any(place[0] == replaced for place in entry.places)
        )
        return self._replace(entries=(*self.entries, Entry(step, path, node, removed, added, after)))

    def flushed(self, number: int, state: State = State.SURE) -> Device:
        """A flush of the file or the directory; a failed one of a file turns what waits into FORGOTTEN."""
        if number in self.contents:
            return self._replace(contents={**self.contents, number: self.contents[number].turn(state)})
        if number not in self.trees or state is not State.SURE:
            return self
        sure: set[int] = set()
        for entry in reversed(self.entries):
            if entry.step in sure or any(place[0] == number for place in entry.places):
                sure |= {entry.step, *entry.after}
        return self._settle(sure)

    def flushed_all(self) -> Device:
        contents = {number: content.turn(State.SURE) for number, content in self.contents.items()}
        return self._replace(contents=contents)._settle({entry.step for entry in self.entries})

    def _settle(self, sure: set[int]) -> Device:
        """These entries are on the device; what nobody can reach any more is dead."""
        if not sure:
            return self
        left = tuple(entry for entry in self.entries if entry.step not in sure)
        trees = self.trees_after({entry.step: LOST for entry in left})
        alive: set[int] = set()
        seek = [ROOT, *(entry.node for entry in left)]
        while seek:
            number = seek.pop()
            alive.add(number)
            seek += trees.get(number, {}).values()
        dead = [content.durable for number, content in self.contents.items() if number not in alive and content.durable]
        return Device(
            {number: entries for number, entries in trees.items() if number in alive},
            left,
            {number: content for number, content in self.contents.items() if number in alive},
            (*self.dead, *dead)[-_DEAD_KEPT:],
        )
