"""A timetable beside a plain model of a topic's log, with crashes: what the tests of the timetable share."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.log.disk import Disk
from penstock.log.files import Files
from penstock.log.timetable import Slice, Timetable
from penstock.log.timetable.bucket import Limits
from penstock.log.work import Work
from penstock.protocol.batch import KEYED, MOVED, encode, header, put_moved, records

if TYPE_CHECKING:
    from tests.kit.power_cuts import Moment

SEED = 0xABCDEF
SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
SMALL = Limits(load=1500, entries=24, held=4000)  # everything that a million messages meet, a dozen meets


@dataclass
class Moved:
    """A batch of the log."""

    step: int  # how many operations the disk had seen when it was written
    head: bytes  # as recovery gives it: the header and the key
    bodies: list[bytes]
    dues: list[int]
    flushed: int | None = None  # and when it was flushed


@dataclass
class Log:
    """Batches in order; recovery begins at the last mark. What is not flushed a power cut may take, each for itself."""

    batches: list[Moved] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)  # (step, how many batches lie before it)
    first: int = 1000

    def append(self, slice_: Slice, now: int, step: int) -> Moved:
        payload = bytearray(slice_.size)
        assert put_moved(payload, 0, slice_.source, slice_.places, 7000 + self.first) == slice_.size
        batch = encode(self.first, len(slice_), now, payload, SEED, flags=KEYED | MOVED, key=slice_.key)
        self.first += len(slice_)
        bodies = [record.body for record in records(batch)]
        moved = Moved(step, bytes(batch[: header(batch).payload]), bodies, list(slice_.run.dues))
        self.batches.append(moved)
        return moved

    def after(self, step: int, rng: random.Random | None) -> Log:
        """What a kill then leaves; with `rng`, one of the things that a power cut could leave."""
        before = [batch for batch in self.batches if batch.step <= step]
        marks = [mark for mark in self.marks if mark[0] <= step]
        mark = marks[-1][1] if marks else 0
        if rng is not None:
            mark = rng.choice([0, mark, *(number for _, number in marks)])  # an index may be lost
        log = Log(first=self.first + 1000)
        for number, batch in enumerate(before):
            sure = batch.flushed is not None and batch.flushed <= step
            if sure or rng is None or rng.random() < 0.5:
                log.batches.append(Moved(0, batch.head, batch.bodies, batch.dues, 0 if sure else None))
            if number + 1 == mark:
                log.marks.append((0, len(log.batches)))
        return log

    @property
    def keyed(self) -> list[bytes]:
        mark = self.marks[-1][1] if self.marks else 0
        return [batch.head for batch in self.batches[mark:]]

    @property
    def bodies(self) -> list[bytes]:
        return [body for batch in self.batches for body in batch.bodies]


class World:
    """One timetable, its log, the time, and what was promised to whom."""

    def __init__(self, files: Files, folder: str, log: Log | None = None, limits: Limits = SMALL) -> None:
        self.files = files
        self.disk = Disk(files)
        self.folder = folder
        self.now = START
        self.log = log or Log()
        self.limits = limits
        self.timetable = Timetable(self.disk, folder, SEED, limits)
        self.timetable.recover(self.log.keyed)
        self.put_at: dict[bytes, int] = {}  # body to the step at which it was put
        self.sure_at: dict[bytes, int] = {}  # and at which it was flushed
        self.due: dict[bytes, int] = {}
        self.number = 0

    @property
    def step(self) -> int:
        return getattr(self.files, "step", 0)

    def body(self, size: int = 0) -> bytes:
        self.number += 1
        return b"%d:" % self.number + b"x" * size

    def put(self, delay: int, count: int = 1, size: int = 0) -> list[bytes]:
        bodies = [self.body(size) for _ in range(count)]
        self.timetable.put(bodies, self.now + delay, self.now)
        for body in bodies:
            self.put_at[body] = self.step
            self.due[body] = self.now + delay
        return bodies

    def prepare(self, limit: int = 10_000) -> int:
        """All that threads have to do."""
        for done in range(limit):
            work = self.timetable.prepare(self.now)
            if work is None:
                return done
            work()
        raise AssertionError("there is always more to prepare")

    def take(self, max_bytes: int = 600) -> Slice | None:
        slice_ = self.timetable.due(self.now, max_bytes)
        if slice_ is not None:
            assert len(slice_) > 0
            assert slice_.size <= max_bytes or len(slice_) == 1
        return slice_

    def append(self, slice_: Slice) -> None:
        offset = self.log.first
        moved = self.log.append(slice_, self.now, self.step)
        assert all(due <= self.now for due in moved.dues)
        assert moved.dues == [self.due.get(body, due) for body, due in zip(moved.bodies, moved.dues, strict=True)]
        self.timetable.moved(slice_, offset)

    def move(self, max_bytes: int = 600) -> int:
        """Prepare and append all that is due."""
        moved = 0
        while True:
            self.prepare()
            slice_ = self.take(max_bytes)
            if slice_ is None:
                look = self.timetable.next_look
                assert look is None or look > self.now
                return moved
            moved += len(slice_)
            self.append(slice_)

    def sync(self, *, mark: bool = True) -> Work:
        """As the log's flush does it: what was put, the log, the notes, the index marks."""
        log = list(self.log.batches)
        sure = [body for body in self.put_at if body not in self.sure_at]
        work = Work()
        self.timetable.flush(work)
        work.step(lambda: self._log_flushed(log))
        if mark:
            self.timetable.settle(work, self.log.first)
        work.run()
        if work.error is None:
            self.sure_at.update((body, self.step) for body in sure)
            if mark:
                self.log.marks.append((self.step, len(log)))
        work.finish()
        return work

    def _log_flushed(self, batches: list[Moved]) -> None:
        for batch in batches:
            if batch.flushed is None:
                batch.flushed = self.step

    def restart(self, files: Files | None = None, log: Log | None = None) -> World:
        """What another process finds."""
        self.timetable.close_files()
        self.timetable.close_files()
        self.disk.close_all()
        world = World(files or self.files, self.folder, log or self.log.after(self.step, None), self.limits)
        world.now = self.now
        world.number = self.number + 1_000_000
        world.due = self.due
        return world

    def killed(self, moment: Moment) -> World:
        """What goes on after a kill at that moment."""
        world = self.restart(moment.kill(), self.log.after(moment.step, None))
        world.put_at = {body: step for body, step in self.put_at.items() if step <= moment.step}
        world.sure_at = {body: step for body, step in self.sure_at.items() if step <= moment.step}
        return world

    def drain(self) -> list[bytes]:
        """Let all time pass; everything that was deferred or moved."""
        for _ in range(20_000):
            if (look := self.timetable.next_look) is None:
                return self.log.bodies
            self.now = max(self.now, look)
            if not self.move():
                self.now += 1
        raise AssertionError("there is always more to do")
