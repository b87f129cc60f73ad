"""Random histories of a topic's log with deferred messages, over files that remember how to be cut.

    history = History(seed)
    history.live(30)                            # puts, moves, flushes that the loop overtakes, retention
    history = history.crashed(step, cut=False)  # in another process, after a kill at that operation, or a power cut
    history.check()                             # all that was promised is there once, whatever time it is due

All randomness is of the seed.
"""

from __future__ import annotations

import errno
import random
from contextlib import contextmanager, suppress
from copy import copy
from typing import TYPE_CHECKING

import pytest

from penstock.errors import LogError
from penstock.log import topic_log
from penstock.log.disk import Disk
from penstock.log.timetable import timetable
from penstock.log.topic_log import LogOptions, TopicLog
from penstock.log.work import Work
from tests.kit import FailingFiles, MemoryFiles, PowerCuts
from tests.unit.log.builders import BIRTH, DIRECTORY, TOPICS, read_all

from .world import SECOND, SMALL, START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.kit import Call

BIG = 600  # bytes of a body that a few of make a bucket too large


@contextmanager
def small_limits() -> Iterator[None]:
    """For histories: what a million messages meet, a dozen meets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timetable, "Limits", lambda: SMALL)
        patch.setattr(topic_log, "_AT_MOST", 2)
        yield


class History:
    """One topic through its processes; `told` says for people what was done."""

    def __init__(self, seed: int, *, faults: bool = False) -> None:
        """With `faults` flushes fail now and then: for kills only, since Linux forgets what a kill keeps of those."""
        self.rng = random.Random(seed)
        self.now = START
        self.faults = faults
        self.told: list[str] = []
        self.put_at: dict[bytes, int] = {}  # body to the operation of the disk after which a kill leaves it
        self.sure_at: dict[bytes, int] = {}  # and a power cut
        self.consumed: dict[tuple[int, bytes], int] = {}  # offset and body to when it was finished: it may be deleted
        self.flushed: list[tuple[int, int]] = []  # when, and up to which offset
        self._number = 0
        self._inside = False
        start = MemoryFiles()
        start.make_directory(TOPICS)
        self.disk = PowerCuts(start)
        self._begin()
        self.log = TopicLog.create(Disk(self.files, limit=6), DIRECTORY, BIRTH, self.options)
        self.flush()
        self.disk = PowerCuts(self.disk.copy())  # crashes are of what comes now
        self._begin()
        self.log = TopicLog.open(Disk(self.files, limit=6), DIRECTORY, self.options)

    def _begin(self) -> None:
        self.options = LogOptions(self.rng.choice((400, 900, 4000)), 2500)
        self.files = FailingFiles(self.disk)
        self.work: Work | None = None  # under way on the thread
        self.ran = False
        self.promised: list[bytes] = []  # what that flush makes sure

    # --- crashes

    def crashed(self, step: int, *, cut: bool) -> History:
        """What another process finds after a crash behind that operation; this one is as it was."""
        again = copy(self)
        again.told = self.told.copy()
        again._crash(step, cut=cut)
        return again

    def _crash(self, step: int, *, cut: bool) -> None:
        moment = self.disk.at(step)
        kept = self.sure_at if cut else self.put_at
        here = {body for body, at in kept.items() if at <= step}
        self.sure_at = {body: step for body, at in self.sure_at.items() if at <= step}
        self.put_at = dict.fromkeys(here, step)
        self.consumed = {found: at for found, at in self.consumed.items() if at <= step}
        if cut:
            sure = max((offset for at, offset in self.flushed if at <= step), default=0)
            gone = {body for _, body in self.consumed}
            here -= gone
            self.consumed = {found: 0 for found in self.consumed if found[0] < sure}
            state = next(moment.cuts(self.rng, 1))
            self.told.append(f"--- {state.origin}")
            self.disk = PowerCuts(state)
            self.sure_at, self.put_at = dict.fromkeys(here, 0), dict.fromkeys(here, 0)
        else:
            self.told.append(f"--- kill after operation {step}")
            self.disk = moment.kill()
        self.flushed = []
        self._begin()
        self.log = TopicLog.open(Disk(self.files, limit=6), DIRECTORY, self.options, after_power_cut=cut)

    def check(self) -> None:
        """Let all time pass: what was promised stands in the log, and nothing stands there twice."""
        self.files.heal()
        self.flush()
        while (look := self.log.next_due) is not None:
            self.now = max(self.now, look) + 1
            self.move()
        found = {
            (record.offset, record.body) for record in read_all(self.log, self.log.earliest)
        } | self.consumed.keys()
        bodies = [body for _, body in found]
        twice = {body for body in bodies if bodies.count(body) > 1}
        lost = self.put_at.keys() - set(bodies)
        assert not twice, f"{twice} stand in the log twice\n" + "\n".join(self.told)
        assert not lost, f"{lost} are lost\n" + "\n".join(self.told)
        assert not self.log.deferred_count

    # --- a life

    def live(self, operations: int) -> None:
        choices: list[Callable[[], object]] = [self._defer, self._publish, self._step, self._thread]
        choices += [self.flush, self._consume, self._fault]
        for do in self.rng.choices(choices, (10, 3, 8, 8, 2, 2, int(self.faults)), k=operations):
            self.told.append(f"{self.disk.step}: {do.__name__}")
            with suppress(LogError):
                do()

    def _body(self) -> bytes:
        self._number += 1
        return b"%d-%d:" % (len(self.told), self._number) + b"x" * self.rng.choice((0, 0, 5, 40, BIG))

    def _defer(self) -> None:
        delay = self.rng.choice((0, 1, SECOND // 10, SECOND, 70 * SECOND, 3600 * SECOND, 90_000 * SECOND))
        bodies = [self._body() for _ in range(self.rng.choice((1, 1, 3, 12)))]
        self.defer(bodies, delay * self.rng.choice((1, 1, 2)))

    def defer(self, bodies: list[bytes], delay: int) -> None:
        self.log.defer(bodies, self.now + delay, self.now)
        self.put_at.update(dict.fromkeys(bodies, self.disk.step))

    def _publish(self) -> None:
        self.publish(self._body())

    def publish(self, body: bytes) -> None:
        self.log.append([body], self.now)
        self.put_at[body] = self.disk.step

    def _step(self) -> None:
        """Time goes on, perhaps to what is next."""
        look = self.log.next_due
        self.now += self.rng.choice((0, 1, SECOND // 100, SECOND))
        if look is not None and self.rng.random() < 0.7:
            self.now = max(self.now, look)
        self.move(prepare=self.rng.random() < 0.8)

    def move(self, *, prepare: bool = True) -> None:
        """A slice of what is due, once what a thread has to do for it is done."""
        while prepare and (work := self.log.timetable.prepare(self.now)):
            work()
        if not self.log.move_due(self.now) and prepare:
            self.now += 1

    def _thread(self) -> None:
        """A thread gets work, does it, or what it did is taken note of."""
        if self.work is None:
            self.promised = [body for body in self.put_at if body not in self.sure_at]
            self.work, self.ran = self.log.work(), False
        elif not self.ran:
            self.files.before = self._meanwhile
            self.work.run()
            self.files.before = _nothing
            self.ran = True
        else:
            self.work.finish()
            assert self.work.error is None or self.faults
            self.work = None
            self.flushed.append((self.disk.step, self.log.flushed))
            if self.log.flushed == self.log.end and not self.log.timetable.dirty:
                self._sure()

    def _meanwhile(self, _call: Call) -> None:
        """The loop goes on while a thread waits for the system."""
        if not self._inside and self.rng.random() < 0.1:
            self._inside = True
            with suppress(LogError):
                self.rng.choice((self._defer, self._publish, self._step))()
            self._inside = False

    def _sure(self) -> None:
        """What was put when the flush began survives power cuts from now on."""
        for body in self.promised:
            self.sure_at.setdefault(body, self.disk.step)

    def flush(self) -> None:
        """All that there is for a thread."""
        while self.work is not None:
            self._thread()
        self.promised = list(self.put_at)
        while work := self.log.work():
            work()
        self.flushed.append((self.disk.step, self.log.flushed))
        self._sure()

    def _consume(self) -> None:
        """Everything up to some offset is finished: retention lets it go."""
        self.log.delete_below(offset := self.rng.randint(self.log.earliest, self.log.end))
        for record in read_all(self.log, self.log.earliest):
            if record.offset < offset:
                self.consumed.setdefault((record.offset, record.body), self.disk.step)

    def _fault(self) -> None:
        self.files.fail(errno.EIO, on=self.rng.choice(("flush", "flush_directory", "write")))


def _nothing(_call: Call) -> None:
    pass
