"""A recorder of file operations that rebuilds what a power cut, or a kill, could have left after each of them.

    disk = PowerCuts()                          # or PowerCuts(state): all that the state holds is on the device
    answered = []
    run_history(disk, lambda: answered.append(disk.step))        # `step` counts the operations so far
    for moment in disk.moments():               # after each operation; disk.at(step) is one of them, disk.now the last
        for state in moment.cuts(rng, 5):       # random ones; moment.every_cut(limit) is all of them, or the corners
            recover(state)                      # a MemoryFiles of its own; what was answered up to moment.step holds

`moment.kill()` is what a killed process leaves: all that was written, none of it any surer than before; a `PowerCuts`
that goes on from there. What cuts can do is told in `device.py`. `print(state)` says which one a state is.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from .device import (
    HOLLOW,
    KEPT,
    LOST,
    NOISE,
    ROOT,
    ZEROS,
    Change,
    Content,
    Device,
    Item,
    Stale,
    State,
    Trees,
)
from .fates import Fates, combinations, corners, count, drawn, is_write
from .inodes import Directory, File, Node
from .memory_files import MemoryFiles


class Cut(NamedTuple):
    """One way in which a moment may end: a fate for each step that is not sure, kept where none is named."""

    step: int
    items: list[Item]
    fates: Fates
    stale: Stale

    def __str__(self) -> str:
        told = [f"cut after operation {self.step}, new room holds {self.stale.name}"]
        for item in self.items:
            fate = self.fates.get(item.step, KEPT)
            if fate != KEPT:
                torn = f"torn, sectors {fate.sectors:b} kept, size {'kept' if fate.sized else 'as far as they reach'}"
                what = {LOST: "lost", HOLLOW: "only its size kept"}.get(fate, torn)
                told.append(f"{item.step} {item}: {what}")
        return "; ".join(told)


class Moment:
    """What is certain and what is not after operation `step`. A value: what is done later does not change it."""

    def __init__(self, step: int, device: Device, disk: MemoryFiles, *, stale: bool) -> None:
        self.step = step
        self._device = device
        self._capacity = disk.capacity
        self._numbers = disk._numbers
        self._stale = stale

    @property
    def doubtful(self) -> list[str]:
        """What a cut may lose now, oldest first: for people, and for tests of what has to be flushed."""
        return [str(item) for item in self._items]

    @property
    def combinations(self) -> int:
        """How many cuts there are, some of which leave the same state: up to `limit`, `every_cut` gives them all."""
        return len(self._stales) * count(self._items)

    def cuts(self, rng: random.Random, n: int) -> Iterator[MemoryFiles]:
        """Up to `n` states, no cut twice, drawn from all that are possible."""
        seen = set()
        for _ in range(n):
            cut = self._drawn(rng)
            key = (cut.stale, *sorted(cut.fates.items()))
            if key not in seen:
                seen.add(key)
                yield self._state(cut)

    def every_cut(self, limit: int = 1000) -> Iterator[MemoryFiles]:
        """All states that are possible, each once, where there are no more than `limit` combinations.

        Else the corner cases (all, none, each one alone lost, kept, torn or hollow, each stop in order), then random
        ones, `limit` cuts in all; the same in each run.
        """
        seen = set()
        for cut in self._chosen(limit):
            state = self._state(cut)
            key = frozenset(state.tree().items())
            if key not in seen:
                seen.add(key)
                yield state

    def kill(self) -> PowerCuts:
        """The process is gone and the power is not: everything written is there, and none of it surer than before."""
        disk = PowerCuts(self._state(self._cut({})), stale=self._stale)
        disk._restart(self.step, self._device)
        return disk

    def _cut(self, fates: Fates, stale: Stale = ZEROS) -> Cut:
        return Cut(self.step, self._items, fates, stale)

    def _drawn(self, rng: random.Random) -> Cut:
        return self._cut(drawn(rng, self._items), rng.choice(self._stales))

    def _chosen(self, limit: int) -> Iterator[Cut]:
        if self.combinations <= limit:
            for fates in combinations(self._items):
                yield from self._with_stales(fates)
            return
        rng = random.Random(self.step)
        special = [cut for fates in corners(self._items) for cut in self._with_stales(fates)]
        if len(special) > limit:
            first = min(limit, 4 * len(self._stales))
            special[first:] = rng.sample(special[first:], limit - first)
        yield from special
        for _ in range(limit - len(special)):
            yield self._drawn(rng)

    def _with_stales(self, fates: Fates) -> Iterator[Cut]:
        """The cuts with these fates: one for each kind of stale bytes where some of them may come up."""
        for stale in self._stales if any(fate not in (KEPT, LOST) for fate in fates.values()) else [ZEROS]:
            yield self._cut(fates, stale)

    @cached_property
    def _items(self) -> list[Item]:
        return self._device.items()

    @cached_property
    def _stales(self) -> list[Stale]:
        if not self._stale or not any(map(is_write, self._items)):
            return [ZEROS]
        return [ZEROS, NOISE, *(Stale("the bytes of a removed file", dead) for dead in self._device.dead)]

    def _state(self, cut: Cut) -> MemoryFiles:
        trees = self._device.trees_after(cut.fates)
        files = MemoryFiles()

        def fill(directory: Directory) -> Directory:
            for name, number in trees[directory.number].items():
                path = f"{directory.path}/{name}"
                if number in trees:
                    directory.entries[name] = fill(Directory(number, path))
                else:
                    content = self._device.contents[number].after(cut.fates, cut.stale)
                    directory.entries[name] = File(number, content, path, links=1)
            return directory

        files.root = fill(Directory(ROOT))
        files.used = files.root.used()
        files.capacity = self._capacity
        files.origin = cut
        files._numbers = self._numbers
        return files


class PowerCuts(MemoryFiles):
    """A file system in memory that remembers, operation by operation, what of it is on the device.

    `stale=False` where bytes that never arrived are zeros: a journalling file system in its usual mode.
    """

    def __init__(self, state: MemoryFiles | None = None, *, stale: bool = True) -> None:
        super().__init__()
        self._stale = stale
        self._device = Device()
        if state is not None:
            self._adopt(state)
            self._device = _sure(self.root)
        self._moments = [Moment(0, self._device, self, stale=stale)]

    @property
    def step(self) -> int:
        """How many operations changed or flushed anything so far."""
        return self._moments[-1].step

    @property
    def now(self) -> Moment:
        return self._moments[-1]

    def at(self, step: int) -> Moment:
        """As it was after operation `step`."""
        first = self._moments[0].step
        if not first <= step <= self.step:
            raise ValueError(f"recorded are {first} to {self.step}")
        return self._moments[step - first]

    def moments(self) -> Iterator[Moment]:
        """Before the first operation, and after each."""
        return iter(tuple(self._moments))

    def forget(self, fd: int) -> None:
        """A flush of this file failed, as on Linux: what it had to bring to the device is not tried again."""
        with self.lock:
            self._record(self._device.flushed(self._get(fd).node.number, State.FORGOTTEN))

    def _record(self, device: Device) -> None:
        self._device = device
        self._moments.append(Moment(self.step + 1, device, self, stale=self._stale))

    def _restart(self, step: int, device: Device) -> None:
        """Begin here instead, in a process that finds what another one did up to `step`."""
        self._device = device
        self._moments = [Moment(step, device, self, stale=self._stale)]

    def _link(self, parent: Directory, name: str, node: Node) -> None:
        super()._link(parent, name, node)
        device = self._device.created(node.number, directory=isinstance(node, Directory))
        self._record(device.entered(self.step + 1, node.path, node.number, None, (parent.number, name), None))

    def _drop(self, parent: Directory, name: str) -> None:
        node = parent.entries[name]
        super()._drop(parent, name)
        place = (parent.number, name)
        self._record(self._device.entered(self.step + 1, node.path, node.number, place, None, node.number))

    def _move(self, parent: Directory, name: str, new_parent: Directory, new_name: str) -> None:
        node, replaced = parent.entries[name], new_parent.entries.get(new_name)
        super()._move(parent, name, new_parent, new_name)
        number = replaced.number if replaced else None
        old, new = (parent.number, name), (new_parent.number, new_name)
        self._record(self._device.entered(self.step + 1, node.path, node.number, old, new, number))

    def _put(self, file: File, position: int, content: bytes) -> None:
        super()._put(file, position, content)
        self._record(self._device.changed(file.number, Change(self.step + 1, file.path, position, content)))

    def _resize(self, file: File, size: int) -> None:
        super()._resize(file, size)
        self._record(self._device.changed(file.number, Change(self.step + 1, file.path, size, None)))

    def _flushed(self, node: Node) -> None:
        self._record(self._device.flushed(node.number))

    def _flushed_all(self) -> None:
        self._record(self._device.flushed_all())


def _sure(root: Directory) -> Device:
    """A device that holds the whole tree."""
    trees: Trees = {}
    contents: dict[int, Content] = {}

    def visit(directory: Directory) -> None:
        trees[directory.number] = {name: node.number for name, node in directory.entries.items()}
        for node in directory.entries.values():
            if isinstance(node, Directory):
                visit(node)
            else:
                contents[node.number] = Content(node.share())

    visit(root)
    return Device(trees, contents=contents)
