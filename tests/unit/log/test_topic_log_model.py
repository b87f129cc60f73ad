"""Random histories of a topic's log beside a plain list: appends, reads, flushes, deletions, kills, faults."""

from __future__ import annotations

import contextlib
import errno
import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.errors import DiskFailed, DiskFull, LogError, NotRetained, Refused
from penstock.log.chain import Hole
from penstock.log.work import Work
from penstock.protocol.batch import check, header, records
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.log.builders import SEED, flush_log, new_log, open_log, texts

SEGMENT = 900

SIZES = st.lists(st.integers(0, 120) | st.sampled_from([SEGMENT - 70, SEGMENT]), min_size=1, max_size=4)
PART = st.floats(0, 1)


class LikeAList(RuleBasedStateMachine):
    """What is known of the log without asking it, and the checks that it is so."""

    sync_every = 2500

    def __init__(self) -> None:
        super().__init__()
        self.files = FailingFiles(MemoryFiles())
        self.bodies: dict[int, bytes] = {}  # every record ever appended
        self.batches: list[tuple[int, int, int]] = []  # first, next, time
        self.end = 0
        self.time = 0
        self.flushed = 0  # at least so far
        self.asked = 0  # what lies below may be deleted
        self.held: set[int] = set()
        self.holes: list[Hole] = []
        self.under_way: tuple[Work, int] | None = None
        self.handed: list[tuple[memoryview, bytes]] = []

    @initialize()
    def begin(self) -> None:
        self.log = new_log(self.files, max_bytes_per_file=SEGMENT, sync_every=self.sync_every)

    # --- what is known

    @property
    def committed(self) -> int:
        return self.log.flushed if self.sync_every == 1 else self.end

    def readable(self, start: int) -> list[tuple[int, bytes]]:
        """What a reader from `start` on must get."""
        return self.known(start, self.committed)

    def known(self, start: int, end: int) -> list[tuple[int, bytes]]:
        """What is there between these, be it committed or not."""
        return [
            (offset, body)
            for offset, body in self.bodies.items()
            if start <= offset < end
            and not any(hole.first <= offset < hole.next for hole in self.holes)
            and (offset >= self.log.earliest or offset in self.held)
        ]

    def pick(self, part: float) -> int:
        """An offset: any, from 0 to beyond the end."""
        return int(part * (self.end + 2))

    # --- what is done

    @rule(sizes=SIZES, later=st.integers(-1, 3), puts=st.booleans())
    def append(self, sizes: list[int], later: int, puts: bool) -> None:
        rng = random.Random(self.end)
        bodies = [rng.randbytes(size) for size in sizes]
        now = max(0, self.time + later)
        if self.log.refused:
            with pytest.raises(Refused):
                self.log.append(bodies, now)
            return
        if puts:
            for body in bodies[1:]:
                self.log.put([body], now)
            bodies = [*bodies[1:], bodies[0]]
        first = self.log.append(bodies if not puts else bodies[-1:], now)
        assert first == self.end
        self.bodies.update(enumerate(bodies, first))
        self.time = max(self.time, now)
        self.end = first + len(bodies)
        self.batches.append((first, self.end, self.time))

    @precondition(lambda self: not self.log.refused)
    @rule(written=st.integers(0, 118), error=st.sampled_from([errno.ENOSPC, errno.EIO]), cut=st.booleans())
    def append_that_fails(self, written: int, error: int, cut: bool) -> None:
        self.files.fail(error, on="write", path="*.log", written=written)
        if not cut:
            self.files.fail(errno.EIO, on="truncate", path="*.log")
        with pytest.raises((DiskFull, DiskFailed)):
            self.log.append([b"never there", b"nor this"], self.time)
        self.files.heal()

    @rule(part=PART, size=st.sampled_from([1, 200, 1 << 20]))
    def read(self, part: float, size: int) -> None:
        offset = start = self.pick(part)
        seen: list[tuple[int, bytes]] = []
        with contextlib.suppress(NotRetained):
            while block := self.log.read(offset, size):
                assert check(block.data, 0, SEED) > 0
                assert offset < block.next <= self.committed
                seen += [pair for pair in texts(list(records(block.data))) if pair[0] >= offset]
                offset = block.next
                data = memoryview(block.data)
                assert data.nbytes <= size or header(data).end == data.nbytes
                self.handed.append((data, bytes(data)))
        assert seen == self.readable(start)

    @rule(part=PART)
    def find_time(self, part: float) -> None:
        time = int(part * (self.time + 2))
        kept = [first for first, _, when in self.batches if first >= self.log.earliest and when >= time]
        assert self.log.at_time(time) == min([*kept, self.committed])

    @rule()
    def relax(self) -> None:
        self.log.relax()

    # --- flushing

    @precondition(lambda self: self.under_way is None)
    @rule()
    def begin_work(self) -> None:
        work = self.log.work()
        if work:
            self.under_way = work, self.end
            assert self.log.work() is None

    @precondition(lambda self: self.under_way is not None)
    @rule(fails=st.sampled_from([0, 0, 0, errno.EIO]), on=st.sampled_from(["flush", "flush_directory", "unlink"]))
    def end_work(self, fails: int, on: str) -> None:
        assert self.under_way is not None
        work, _ = self.under_way
        self.under_way = None
        if fails:
            self.files.fail(fails, on=on)
        work.run()
        self.files.heal()
        work.finish()

    @precondition(lambda self: self.under_way is None)
    @rule()
    def flush(self) -> None:
        flush_log(self.log)
        assert self.log.refused is None
        assert self.log.flushed == self.end
        self.flushed = self.end

    # --- deleting

    @rule(part=PART)
    def delete(self, part: float) -> None:
        self.asked = max(self.asked, min(self.end, int(part * (self.end + 1))))
        self.log.delete_below(self.asked)

    @rule(parts=st.lists(PART, max_size=3))
    def hold(self, parts: list[float]) -> None:
        wanted = {self.pick(part) for part in parts}
        self.log.hold(wanted, self.time)
        self.held |= wanted & {offset for offset, _ in self.known(0, self.end)}

    @rule(part=PART)
    def finish_some(self, part: float) -> None:
        self.held = {offset for offset in self.held if offset >= self.pick(part)}
        self.log.held.keep(self.held)

    @rule(part=PART, other=PART)
    def empty(self, part: float, other: float) -> None:
        ends = sorted({0, *(next_ for _, next_, _ in self.batches)})
        first, next_ = sorted((ends[int(part * (len(ends) - 1))], ends[int(other * (len(ends) - 1))]))
        if first < next_ and len(self.holes) < 3:
            self.holes.append(Hole(first, next_, "emptied"))
            self.log.add_hole(self.holes[-1])

    # --- stopping

    def reopen(self, *, after_power_cut: bool = False) -> None:
        """As a daemon does: it knows what is unfinished, and what was emptied."""
        self.under_way = None
        self.log = open_log(
            self.files, max_bytes_per_file=SEGMENT, sync_every=self.sync_every, after_power_cut=after_power_cut
        )
        self.log.held.keep(self.held)
        for hole in self.holes:
            self.log.add_hole(hole)
        assert self.log.disk.damages == []
        if not any(next_ > self.log.chain.first(self.end) for _, next_, _ in self.batches):
            self.time = 0  # with the last batch went how late it was
        if self.sync_every == 1:
            flush_log(self.log)

    @rule()
    def kill(self) -> None:
        self.reopen()
        assert self.log.end == self.end

    @precondition(lambda self: self.under_way is None and not self.log.refused)
    @rule()
    def stop(self) -> None:
        self.log.close()
        assert len(self.log.disk) == 0
        self.reopen()
        assert self.log.end == self.log.flushed == self.end

    @rule()
    def power_cut_that_takes_nothing(self) -> None:
        self.reopen(after_power_cut=True)
        assert self.log.end > self.end
        self.end = self.log.end

    # --- always

    @invariant()
    def the_numbers_are_right(self) -> None:
        assert self.log.end == self.end
        assert self.log.earliest <= self.asked
        assert self.log.flushed <= self.log.end
        assert self.log.committed == self.committed

    @invariant()
    def nothing_that_was_handed_out_changes(self) -> None:
        assert all(data == before for data, before in self.handed[-10:])

    def teardown(self) -> None:
        self.files.heal()
        if hasattr(self, "log"):
            with contextlib.suppress(LogError):
                flush_log(self.log)
            self.read(0, 1 << 20)
            self.kill()
            self.read(0, 1)


class FlushedFirst(LikeAList):
    """The same where nothing is answered before it is flushed."""

    sync_every = 1


TestLikeAList = LikeAList.TestCase
TestFlushedFirst = FlushedFirst.TestCase
TestLikeAList.settings = settings(max_examples=60, stateful_step_count=40)
TestFlushedFirst.settings = settings(max_examples=30, stateful_step_count=40)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [LikeAList, FlushedFirst])
def test_long_histories(machine: type[LikeAList]) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(machine, settings=settings(max_examples=1000, stateful_step_count=80))
