"""Random histories of a data path: what users and threads do, in any order, over files that remember how to be cut.

    history = History(seed)
    history.live(40)                            # forty operations, one process
    for moment, known in history.moments(): ...
    history.go_on(moment, state)                # in another process, after this cut; or `None`: after a kill

All randomness is of the seed. A thread's work may be interrupted by the loop's at each of its calls of the system.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from penstock.errors import LogError, PenstockError, Refused
from penstock.log import birth, data_path, topic_log
from penstock.log.data_path import DataPath
from penstock.log.disk import Disk
from penstock.log.entries import Entry, ReaderMoved
from penstock.log.journal import Journal
from penstock.log.timetable import timetable
from penstock.log.timetable.bucket import Limits
from penstock.log.topic_log import LogOptions, TopicLog
from penstock.log.work import Work
from penstock.protocol.batch import KEYED, records
from tests.kit import Call, FailingFiles, MemoryFiles, Moment, PowerCuts

from .known import Book, Known, Message, There, Timeline
from .rules import DEFERRED, JOURNAL, NEW, check_journal, check_topics, messages

PATH = "/data"
RESERVE = 48  # small, so that reserving ahead is a part of each history
KINDS = ((), "open", "write", "truncate", "flush", "flush_directory", "rename", "read", "size", "unlink")
ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE)
FEW = Limits(load=1500, entries=24, held=4000)  # deferred messages: a dozen are much
SECOND = 10**9


class Secrets:
    """Random names that come again with the seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def token_hex(self, size: int) -> str:
        return self._rng.randbytes(size).hex()

    def randbits(self, bits: int) -> int:
        return self._rng.getrandbits(bits)


@contextmanager
def small_world(seed: int) -> Iterator[None]:
    """Names by the seed, and offsets reserved in small steps."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (birth, data_path):
            patch.setattr(module, "secrets", Secrets(seed))
        patch.setattr(topic_log, "RESERVE", RESERVE)
        patch.setattr(timetable, "Limits", lambda: FEW)
        patch.setattr(birth.Birth.__new__, "__defaults__", (RESERVE, 0, 0))
        yield


class Pending:
    """What a thread has to do, is doing, or has done; `done` is for when it went well."""

    def __init__(self, work: Work, done: Callable[[], None]) -> None:
        self.work = work
        self.done = done
        self.ran = False


class History:
    """One data path through its processes; `told` says for people what was done."""

    def __init__(self, seed: int, *, faults: bool = False) -> None:
        """With `faults`, operations may fail in the log's ways: for cuts, and for kills that no cut follows.

        What a failed flush had to bring to the device a kill would keep, and a later cut take, flushed again or not.
        """
        self.rng = random.Random(seed)
        self.faults = faults
        self.book = Book()
        self.timeline = Timeline()
        empty = MemoryFiles()
        empty.make_directory(PATH)
        self.disk = PowerCuts(empty)
        self.boot = 1
        self.clock = 10**18
        self._number = 0
        self.told: list[str] = []
        self._inside = False
        self._begin()
        self.create()

    # --- processes

    def _begin(self) -> None:
        self.options = LogOptions(self.rng.choice((250, 800, 4000)), self.rng.choice((1, 2500)))
        self.files = FailingFiles(self.disk)
        self._open()

    def _open(self) -> None:
        self.pending: list[Pending] = []
        self.writing: set[str] = set()  # folders of topics whose batch a thread writes
        disk = Disk(self.files, limit=self.rng.choice((2, 6, 512)))
        self.data = DataPath(PATH, disk=disk, options=self.options, boot=str(self.boot))
        self.journal = Journal(disk, f"{PATH}/{data_path.JOURNAL}", floor=600)
        self.written: list[tuple[int, int]] = []  # the journal's ordinals behind each number
        self.observe()

    def live(self, operations: int) -> None:
        for operation in self.rng.choices(_OPERATIONS, _WEIGHTS, k=operations):
            self.told.append(f"{self.disk.step}: {operation.__name__}")
            self._maybe_fail()
            self._do(operation)
            self.observe()
        self.files.heal()

    def _maybe_fail(self) -> None:
        if self.faults and self.rng.random() < 0.3:
            self.files.heal()
            if self.rng.random() < 0.7:
                kinds = self.rng.choice(KINDS)
                written, times = self.rng.choice((0, 1, 30, 70)), self.rng.choice((1, 1, 2, None))
                self.files.fail(
                    self.rng.choice(ERRORS), on=kinds, skip=self.rng.randrange(3), written=written, times=times
                )
                self.told.append(f"    {kinds or 'all'} will fail {times or 'on'}")

    def _do(self, operation: Callable[[History], None]) -> None:
        try:
            operation(self)
        except LogError as error:
            if not self.faults:
                raise
            self.told.append(f"    {type(error).__name__}: {error}")

    def go_on(self, moment: Moment, state: MemoryFiles | None) -> None:
        """Another process finds what this moment left: after a power cut the state, else what a kill leaves."""
        self.told.append(f"--- {f'kill after operation {moment.step}' if state is None else state.origin}")
        before = self.timeline.at(moment.step)
        self.timeline = Timeline(self.timeline.at(moment.step))
        self.disk = moment.kill() if state is None else PowerCuts(state)
        self.boot += state is not None
        self._begin()
        for log in self.data.logs:
            if log.options.sync_every == 1:  # what is not flushed cannot be seen
                work_off(log)
        self.observe()
        check_topics(self.data.logs, before, self.book, cut=state is not None)
        noted = before.get(JOURNAL, Known())
        last = check_journal(self.journal, noted, cut=state is not None)
        for known in (self.timeline.start, self.timeline.now):
            _settle(known, self.data.logs, cut=state is not None)
            known[JOURNAL] = Known(end=last, flushed=noted.flushed if state is None else last)
        for log in self.data.logs:
            for body in waiting(log):
                self.book.moved.get(log.birth.folder, {}).pop(body, None)

    def moments(self) -> Iterator[tuple[Moment, dict[str, Known]]]:
        moments = list(self.disk.moments())
        yield from zip(moments, self.timeline.folded(moment.step for moment in moments), strict=True)

    # --- telling

    def tell(self, folder: str, name: str, value: object) -> None:
        self.timeline.tell(self.disk.step, folder, name, value)

    def known(self, log: TopicLog) -> Known:
        return self.timeline.now.setdefault(log.birth.folder, Known())

    def observe(self) -> None:
        """Tell what the logs say now."""
        for log in self.data.logs:
            known = self.known(log)
            for name, value in (("end", log.end), ("flushed", log.flushed), ("told", log.earliest)):
                if value > getattr(known, name):
                    self.tell(log.birth.folder, name, value)

    # --- operations

    def _log(self) -> TopicLog | None:
        return self.rng.choice(self.data.logs) if self.data.logs else None

    def _now(self) -> int:
        self.clock += self.rng.choice((0, 1, 1000))
        return self.clock

    def append(self) -> None:
        """One message or many, put at once or in parts, with a key or without."""
        if (log := self._log()) is None:
            return
        if log.birth.folder in self.writing:
            with pytest.raises(LogError):
                log.append([b"not now"], self._now())
            return
        known, first, written = self.known(log), log.end, 0
        assert first >= known.end, f"{first} was given out before, up to {known.end}"
        try:
            for _ in range(self.rng.choice((1, 1, 1, 3))):
                written += self._put(log, first + written)
            key = self.rng.choice((b"", b"", b"producer"))
            got = log.write(self._now(), flags=KEYED if key else 0, key=key)
        except PenstockError as error:
            self._allowed(error)
            assert log.end == first, "an append that failed gave out offsets"
            return
        assert (got, log.end) == (first, first + written)
        self.tell(log.birth.folder, "alive", frozenset(range(first, first + written)))
        self.tell(log.birth.folder, "end", log.end)

    def append_apart(self) -> None:
        """As `append`, on a thread."""
        if (log := self._log()) is None or log.birth.folder in self.writing:
            return
        folder, first = log.birth.folder, log.end
        try:
            written = self._put(log, first)
            work = log.write_apart(self._now())
        except PenstockError as error:
            self._allowed(error)
            return

        def through() -> None:
            self.tell(folder, "alive", frozenset(range(first, first + written)))
            self.tell(folder, "end", log.end)

        self.writing.add(folder)
        work.then(through)
        work.then(lambda: self.writing.discard(folder))
        work.otherwise(lambda _error: self.writing.discard(folder))
        self.pending.append(Pending(work, _nothing_more))

    def _put(self, log: TopicLog, offset: int) -> int:
        bodies = [self._body() for _ in range(self.rng.choice((1, 1, 2, 5, 12)))]
        now = self._now()
        for at, body in enumerate(bodies, offset):
            self.book.enter(log.birth.folder, at, Message(body, now, b"%016x" % (log.birth.base + at)))
        if self.rng.random() < 0.5:
            log.put(bodies, now)
        else:
            framed = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
            log.put_framed(framed, 0, len(framed), len(bodies), now)
        return len(bodies)

    def _body(self) -> bytes:
        return self.rng.randbytes(self.rng.choice((0, 1, 7, 30, 30, 30, 120, 600)))

    def defer(self) -> None:
        if (log := self._log()) is None:
            return
        bodies = []
        for _ in range(self.rng.choice((1, 1, 3, 12))):
            self._number += 1
            bodies.append(DEFERRED + b"%d " % self._number + self._body())
        delay = self.rng.choice((0, SECOND // 10, SECOND, 70 * SECOND, 3600 * SECOND, 90_000 * SECOND))
        now = self._now()
        log.defer(bodies, now + delay, now)
        self.tell(log.birth.folder, "deferred", frozenset(bodies))

    def move_due(self) -> None:
        """Time goes on, perhaps to what is next."""
        if (log := self._log()) is None:
            return
        look = log.next_due
        self.clock += self.rng.choice((0, 0, SECOND // 100, SECOND))
        if look is not None and self.rng.random() < 0.7:
            self.clock = max(self.clock, look)
        if work := log.timetable.prepare(self.clock):
            self.pending.append(Pending(work, _nothing_more))
        first = log.end
        try:
            moved = log.move_due(self.clock)
        except PenstockError as error:
            self._allowed(error)
            return
        if moved:
            self._moved(log, first)

    def _moved(self, log: TopicLog, first: int) -> None:
        block = log.tail.read(first, 1)
        assert block is not None
        folder = log.birth.folder
        for record in records(block.data):
            self.book.enter(folder, record.offset, Message(record.body, record.timestamp, record.id))
            self.book.moved.setdefault(folder, {})[record.body] = record.offset
        self.tell(folder, "alive", frozenset(range(first, log.end)))
        self.tell(folder, "end", log.end)

    # --- the journal: numbers that ascend

    def note(self) -> None:
        self._number += 1
        self.journal.append([self._entry(self._number)], self.clock)
        self.written.append((self.journal.end, self._number))
        self.tell(JOURNAL, "end", self._number)

    def _entry(self, number: int) -> Entry:
        return ReaderMoved(1, "r", number, self.clock, False)

    def flush_notes(self) -> None:
        if work := self.journal.flush_work():
            self.pending.append(Pending(work, self._noted))

    def _noted(self) -> None:
        if flushed := [number for ordinal, number in self.written if ordinal <= self.journal.flushed]:
            self.tell(JOURNAL, "flushed", max(flushed))

    def compact(self) -> None:
        """All that counts is the last number."""
        last = self.timeline.now.get(JOURNAL, Known()).end
        if last and self.journal.wants_compaction:
            self.journal.compact(lambda _mark: ([self._entry(last)], None))
            self.journal.write_slice(self.clock)

    def _allowed(self, error: PenstockError) -> None:
        """Without faults, only this is refused: to reserve offsets while a thread writes topic.json."""
        if not isinstance(error, LogError if self.faults else Refused):
            raise error

    def begin_work(self) -> None:
        if log := self._log():
            promised = self.known(log).deferred
            if work := log.work():
                self.pending.append(Pending(work, lambda: self._worked(log, promised)))

    def _worked(self, log: TopicLog, promised: frozenset[bytes]) -> None:
        if log.flushed == log.end and not log.timetable.dirty:
            self.tell(log.birth.folder, "safe", promised)

    def run_work(self) -> None:
        for pending in self.pending:
            if not pending.ran:
                pending.ran = True
                self.files.before = self._meanwhile
                try:
                    pending.work.run()
                finally:
                    self.files.before = _nothing
                return

    def _meanwhile(self, _call: Call) -> None:
        """The loop goes on while a thread waits for the system."""
        if not self._inside and self.rng.random() < 0.1:
            self._inside = True
            self._do(self.rng.choice(_MEANWHILE))
            self.observe()
            self._inside = False

    def finish_work(self) -> None:
        for pending in self.pending:
            if pending.ran:
                self.pending.remove(pending)
                pending.work.finish()
                if pending.work.error is None:
                    pending.done()
                return

    def flush(self) -> None:
        self.begin_work()
        self.run_work()
        self.finish_work()

    def roll(self) -> None:
        if (log := self._log()) and log.birth.folder not in self.writing:
            log.chain.roll()

    def hold(self) -> None:
        """Of what nobody asked to delete yet: what is in the middle of that is not held in time."""
        if (log := self._log()) is None:
            return
        known = self.known(log)
        there = sorted(offset for offset in known.alive if known.wished <= offset < log.committed)
        some = frozenset(self.rng.sample(there, min(len(there), self.rng.choice((1, 3)))))
        log.hold(some, self._now())
        self.tell(log.birth.folder, "held", known.held | some)

    def keep(self) -> None:
        if log := self._log():
            held = sorted(self.known(log).held)
            wanted = frozenset(self.rng.sample(held, len(held) * self.rng.randrange(3) // 2))
            self.tell(log.birth.folder, "held", wanted)
            log.held.keep(wanted)

    def delete_below(self) -> None:
        if log := self._log():
            offset = self.rng.randint(log.earliest, log.committed)
            self.tell(log.birth.folder, "wished", offset)
            log.delete_below(offset)

    def read(self) -> None:
        if log := self._log():
            check_topics([log], {log.birth.folder: self.known(log)}, self.book, cut=False)

    def relax(self) -> None:
        if log := self._log():
            log.relax()

    def create(self) -> None:
        if len(self.data.logs) < 3:
            self.tell(NEW, "there", There.MADE)
            log = self.data.create(self.rng.choice("tu"))
            self.tell(log.birth.folder, "there", There.MADE)

    def delete(self) -> None:
        if (log := self._log()) is None or self.rng.random() < 0.7 or log.birth.folder in self.writing:
            return
        folder = log.birth.folder
        self.tell(folder, "there", There.GOING)
        work = self.data.delete(log)
        self.tell(folder, "there", There.GONE)
        self.pending.append(Pending(work, lambda: self.tell(folder, "there", There.ERASED)))

    def close(self) -> None:
        """Stop in order and start again."""
        if self.faults:
            return
        while self.pending:
            self.run_work()
            self.finish_work()
        while work := self.journal.flush_work():
            work()
            self._noted()
        self.data.close()
        for log in self.data.logs:
            self.tell(log.birth.folder, "safe", self.known(log).deferred)
            self.tell(log.birth.folder, "flushed", log.end)
            self.tell(log.birth.folder, "there", There.SURE)
        assert not self.disk.opened(), f"left open: {self.disk.opened()}"
        self.boot += self.rng.randrange(2)
        self._open()


def _settle(known: dict[str, Known], logs: list[TopicLog], *, cut: bool) -> None:
    """What a cut took is gone for good, and what it left is on the device; after a kill neither is sure."""
    for folder in known.keys() - {log.birth.folder for log in logs} - {NEW, JOURNAL}:
        if cut:
            del known[folder]
        else:
            known[folder].there = There.GONE
    for log in logs:
        topic = known.setdefault(log.birth.folder, Known())
        found = messages(log)
        topic.alive = frozenset(found)
        if cut:
            topic.there = There.SURE
            there = waiting(log) | {message.body for message in found.values()}
            topic.deferred = topic.safe = (topic.deferred & there) | topic.safe
            topic.held = frozenset(offset for offset in topic.held & topic.alive if offset < log.earliest)
        elif topic.there is not There.SURE:
            topic.there = There.MADE


def waiting(log: TopicLog) -> set[bytes]:
    """What is in the timetable."""
    return {entry.body for entry in log.timetable.entries(1 << 30)}


def work_off(log: TopicLog) -> None:
    while work := log.work():
        work()


def _nothing(_call: Call) -> None:
    pass


def _nothing_more() -> None:
    pass


_WEIGHED: dict[Callable[[History], None], int] = {
    History.append: 26,
    History.append_apart: 6,
    History.defer: 8,
    History.move_due: 10,
    History.note: 4,
    History.flush_notes: 3,
    History.compact: 1,
    History.begin_work: 8,
    History.run_work: 8,
    History.finish_work: 8,
    History.flush: 6,
    History.roll: 2,
    History.hold: 3,
    History.keep: 1,
    History.delete_below: 3,
    History.read: 2,
    History.relax: 1,
    History.create: 3,
    History.delete: 1,
    History.close: 1,
}
_MEANWHILE = (History.append, History.append, History.hold, History.delete_below, History.defer, History.move_due)
_OPERATIONS, _WEIGHTS = list(_WEIGHED), list(_WEIGHED.values())
