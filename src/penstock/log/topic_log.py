# cython: annotation_typing=False
"""A topic's log: offsets, what is answered, what is flushed, and what is done when a flush fails. Knows no channel.

    earliest          flushed                   end
       | segment | segment | segment ...         |       the last part also in memory: the tail
    ---+-------------------+---------------------+--------------------+-----> offsets
       below: deleted, or  up to here            next offset          reserved: none beyond is given out
       held for stragglers on the device

Rules
- `append` returns when the batch is written to the operating system: a process kill loses nothing of it.
- `committed` is what may be answered OK and read: the end, or with sync_every=1 what is flushed.
- `work` gives what a thread has to do, one at a time: a flush takes all that waits for it.
- A flush that fails is not tried again on the same file: the log refuses appends, copies what was not flushed to new
  files, flushes those, and heals; nothing that is read changes.
- After a power cut it goes on at the reserved bound; what lies between is a hole.
"""

from __future__ import annotations

import errno
from bisect import insort
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from penstock.errors import CorruptLog, FlushFailed, LogError, NotRetained, Refused, TooLarge, log_error
from penstock.log import birth as birth_file
from penstock.log.birth import JUMP, RESERVE, Birth
from penstock.log.chain import Chain, Hole, unlink_steps
from penstock.log.disk import Damage
from penstock.log.held import Held
from penstock.log.keyed import Keyed, keyed
from penstock.log.rescue import Rescue
from penstock.log.tail import PAYLOAD, Tail
from penstock.log.timetable import Timetable, is_moved
from penstock.log.work import Work
from penstock.protocol.batch import KEYED, MOVED, RECORD, records, size_of

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable, Iterator, Sequence

    from typing_extensions import Buffer

    from penstock.log.disk import Disk
    from penstock.log.segment import Block, Segment
    from penstock.log.timetable.run import Entry

BLOCK: Final = 256 << 10  # about how much one read gives
_FAR: Final = 1 << 40  # beyond what sixteen thousand power cuts may have reserved
_AT_MOST: Final = 16  # segments that one flush takes: a log recovered without its indexes may have hundreds


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What NSQ's flags of these names mean."""

    max_bytes_per_file: int = 100 << 20
    sync_every: int = 2500


class TopicLog:
    """The durable log of one incarnation of a topic."""

    __slots__ = (
        "_apart", "_birth_dirty", "_birth_unsure", "_deferred", "_delete_first", "_delete_to", "_doomed", "_flushed",
        "_holes", "_moving", "_work", "birth", "chain", "directory", "disk", "end", "held", "keyed", "last_time",
        "options", "refused", "tail", "timetable",
    )  # fmt: skip

    def __init__(self, disk: Disk, directory: str, birth: Birth, options: LogOptions | None = None) -> None:
        self.disk = disk
        self.directory = directory
        self.birth = birth
        self.options = options or LogOptions()
        self.chain = Chain(disk, directory, birth.seed, self.options.max_bytes_per_file)
        self.held = Held(disk, directory, birth)
        self.end = birth.resume  # the next offset
        self.last_time = 0
        self.tail = Tail(self.end)
        self.refused: FlushFailed | None = None  # why nothing is taken until what a flush lost is safe elsewhere
        self.timetable = Timetable(disk, directory, birth.seed)
        self.keyed: list[Keyed] = []  # batches that were published under a key, until `key_known`
        self._flushed = self.end
        self._apart: Work | None = None  # the batch that a thread writes
        self._deferred = 0  # messages, since the last flush began
        self._moving: list[tuple[int, int]] = []  # where what was due ends in the log, and how much it is
        self._birth_dirty = False  # topic.json is to be flushed soon
        self._birth_unsure = False  # or with the next flush: the last process may not have come to that
        self._delete_to = 0  # what lies wholly below may go
        self._delete_first = False  # deleting and flushing take turns
        self._doomed: list[Segment] = []  # deleted, their files not yet
        self._holes: list[Hole] = []  # emptied: kept by whoever asked for it
        self._work: Work | None = None

    # --- making, opening, closing

    @classmethod
    def create(cls, disk: Disk, directory: str, birth: Birth, options: LogOptions | None = None) -> TopicLog:
        """A new log in a new directory; safe from a power cut with its first flush."""
        log = cls(disk, directory, birth, options)
        try:
            disk.files.make_directory(directory)
            birth_file.write(disk.files, directory, birth, flush=False)
        except OSError as error:
            birth_file.take_back(disk.files, directory)
            raise log_error(error, f"making {directory}") from error
        log._birth_dirty = True
        return log

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        options: LogOptions | None = None,
        *,
        after_power_cut: bool = False,
        clean: bool = False,
    ) -> TopicLog:
        """Recover the log in the directory; after a power cut, or where answered batches may be gone, jump.

        `clean` where it was closed in order: then all of it is on the device.
        """
        try:
            log = cls(disk, directory, birth_file.read(disk.files, directory), options)
            log._recover()
            jump = after_power_cut
        except CorruptLog:
            log = cls._without_birth(disk, directory, options)
            jump = True
        except OSError as error:
            raise log_error(error, f"opening {directory}") from error
        log._tell_of_missing()
        if jump or log._ends_badly():
            log._jump()
        log._birth_unsure = not clean and not after_power_cut
        log._birth_dirty = log._birth_unsure and not log._was_flushed()
        return log

    def _was_flushed(self) -> bool:
        """Whether a flush is known to have been through: it left a mark in an index."""
        return any(segment.flushed or segment.index.written for segment in self.chain.segments)

    @classmethod
    def _without_birth(cls, disk: Disk, directory: str, options: LogOptions | None) -> TopicLog:
        """A log whose topic.json is damaged: the segments say nearly all of it again."""
        log = cls(disk, directory, birth_file.nameless(directory), options)
        log._recover()
        block = log.chain.read(0, 1)
        base = int(next(records(block.data)).id, 16) - block.first if block else birth_file.born("").base
        earliest = log.chain.first(0) if log._was_flushed() else 0  # nothing is deleted before the first flush
        log.birth = log.birth._replace(base=base, earliest=earliest, reserved=log.end + _FAR)
        log.held = Held(disk, directory, log.birth)
        log.held.recover()
        return log

    def _recover(self) -> None:
        for first in self.chain.recover(self.birth.earliest):
            self.chain.recover_lost(first)
        heads = []
        for segment in self.chain.segments:
            heads += segment.keyed
            segment.keyed = []
        if self.chain.segments:
            self.last_time = max(segment.last_time for segment in self.chain.segments)  # of an empty one it is 0
            self.end = max(self.end, self.chain.segments[-1].end)
        self.end = max(self.end, self.birth.earliest)
        self._flushed = self.chain.flushed_end(self.end)
        self.held.recover()
        self.timetable.recover(heads)
        published = [keyed(head) for head in heads if not is_moved(head)]
        for each in published:
            self.chain.unsettle(each.first)
        self.keyed = sorted([*published, *self.timetable.keyed()], key=attrgetter("time", "key"))
        self.tail.release(self.end)

    def _ends_badly(self) -> bool:
        if not self.chain.segments:
            return self.earliest > 0  # the last file is never deleted
        return self.chain.segments[-1].tail_bad

    def _tell_of_missing(self) -> None:
        """Of files that are gone, by the holes that they left; a wide one is where the log went on at its bound."""
        expected, told = self.earliest, False
        for segment in self.chain.segments:
            if expected < segment.first < expected + JUMP and not told:
                self._lost(expected, segment.first)
            expected, told = max(expected, segment.end), segment.tail_bad
        if expected and not self.chain.segments:
            self._lost(expected, expected)

    def _lost(self, first: int, next_: int) -> None:
        self.disk.damaged(Damage(self.directory, 0, 0, first, next_, ""))

    def go_on_behind(self, offset: int) -> None:
        """Somebody had what stood below `offset`: where the files end before it, none of it names another message."""
        if offset > self.end:
            self._lost(self.end, offset)
            self._jump()

    def _jump(self) -> None:
        """Go on where no offset was ever given out; durable when this returns.

        A killed process may have left a topic.json that was read and used, and was then lost: at most one step ahead.
        """
        resume = self.birth.reserved + RESERVE
        self._write_birth(self.birth._replace(resume=resume, reserved=resume + RESERVE))
        self.end = self.birth.resume
        self._flushed = self.chain.flushed_end(self.end)
        self.tail.release(self.end)

    def _write_birth(self, birth: Birth) -> None:
        try:
            birth_file.write(self.disk.files, self.directory, birth)
        except OSError as error:
            raise log_error(error, f"writing {self.directory}/{birth_file.NAME}") from error
        self.birth = birth

    def close(self) -> None:
        """Flush, and leave a mark for a quick start; errors are raised after all is closed that can be."""
        try:
            while work := self._delete():
                work()
                if work.error is not None:
                    break
            while self.refused is None and (work := self.flush()):
                work()
                if work.error is not None:
                    break
            if self.refused is not None:
                raise self.refused
            self.chain.mark_end()
        finally:
            self.timetable.close()
            self.close_files()

    def close_files(self) -> None:
        """As it is: for a log that is deleted."""
        self.chain.close()
        self.held.close()
        self.timetable.close_files()

    # --- appending

    def append(self, bodies: Sequence[bytes], now: int, *, flags: int = 0, key: bytes = b"") -> int:
        """Write the bodies as one batch and return the first one's offset; all or nothing."""
        self.put(bodies, now)
        return self.write(now, flags=flags, key=key)

    def put(self, bodies: Sequence[bytes], now: int) -> None:
        """Add to the batch that the next `write` writes."""
        self._check(size_of(bodies))
        self.tail.put(bodies, now, self.birth.base)

    def put_framed(self, data: Buffer, start: int, stop: int, count: int, now: int, *, skip: int = 0) -> None:
        """As `put`, for `count` bodies in `data[start:stop]`, each behind `skip` bytes and its size."""
        self._check(stop - start + (RECORD - 4 - skip) * count)
        self.tail.put_framed(data, start, stop, count, now, self.birth.base, skip)

    def put_moved(self, source: Buffer, places: array[int], size: int) -> None:
        """As `put`, for records as they stand in `source` at `places`, `size` bytes of them: their ids are new."""
        self._check(size)
        self.tail.put_moved(source, places, size, self.birth.base)

    @property
    def pending(self) -> int:
        """Bytes that were put and are not written."""
        return self.tail.pending

    def _check(self, size: int) -> None:
        if self.refused is not None:
            raise Refused(f"{self.birth.name}: {self.refused}") from self.refused
        if (size := size + self.tail.pending) > PAYLOAD:
            raise TooLarge(f"{self.birth.name}: {size} bytes are more than one batch can hold")

    def write(self, now: int, *, flags: int = 0, key: bytes = b"") -> int:
        """Write what was put as one batch; the offset of its first record. After an error it never was."""
        first, count = self.end, self.tail.count
        if not count:
            return first
        time = max(now, self.last_time)
        try:
            self.chain.append(self._seal(time, flags, key), first, count, time)
        except BaseException:
            self.tail.abandoned()
            raise
        self.tail.written()
        self._written(first + count, time, b"" if flags & MOVED else key)
        return first

    def write_apart(self, now: int, *, key: bytes = b"") -> Work:
        """As `write`, on a thread: what is put meanwhile goes into the next batch, and is gone too if this one fails.

        Until it is through, nothing else is written.
        """
        first, count = self.end, self.tail.count
        time = max(now, self.last_time)
        try:
            batch = self._seal(time, KEYED if key else 0, key)
            work = self.chain.append_apart(batch, first, count, time)
        except BaseException:
            self.tail.abandoned()
            raise
        self.tail.detach()
        work.then(lambda: self._written(first + count, time, key))
        work.otherwise(lambda _error: self._not_written(first))
        self._apart = work
        return work

    def _seal(self, time: int, flags: int, key: bytes) -> memoryview:
        """The batch that was put, whole."""
        if self._apart is not None:
            raise Refused(f"{self.birth.name}: a thread is writing")
        self._check(0)
        if (end := self.end + self.tail.count) > self.birth.reserved:
            self._reserve(end)
        return self.tail.seal(time, self.birth.seed, flags=flags, key=key)

    def _written(self, end: int, time: int, key: bytes) -> None:
        self._apart = None
        if key:
            self.chain.unsettle(self.end)
            self.keyed.append(Keyed(self.end, end, time, key))
        self.end = end
        self.last_time = time

    def _not_written(self, first: int) -> None:
        self._apart = None
        self.tail.abandoned()
        self.tail.release(first)

    def _reserve(self, end: int) -> None:
        """Seldom: flushes reserve ahead, unless they take longer than tens of millions of messages."""
        if self.under_way:
            raise Refused(f"{self.birth.name}: the device is too slow to reserve offsets ahead")
        self._write_birth(self.birth._replace(reserved=end + RESERVE))

    # --- what waits for its time

    def defer(self, bodies: Sequence[bytes], due: int, now: int, *, key: bytes = b"") -> None:
        """Keep the bodies in the timetable until `due` (wall ns): one batch, all or nothing."""
        self._check(0)
        if (put := self.timetable.put(bodies, due, now, key=key)) is not None:
            self.keyed.append(put)
            self._deferred += self.options.sync_every  # it is not due before it is flushed
        self._deferred += len(bodies)

    @property
    def deferred_count(self) -> int:
        """What waits in the timetable, and what left it and is not committed: nobody else counts that."""
        while self._moving and self._moving[0][0] <= self.committed:
            self._moving.pop(0)
        return self.timetable.count + sum(count for _, count in self._moving)

    def deferred(self, limit: int) -> list[Entry]:
        """Some that wait, about in order of due time."""
        return self.timetable.entries(limit)

    @property
    def next_due(self) -> int | None:
        """When the timetable wants `move_due`, or `prepare`."""
        return self.timetable.next_look

    def move_due(self, now: int) -> int:
        """Append a slice of what is due; how many that were, 0 when nothing is."""
        found = self.timetable.due(now)
        if found is None:
            return 0
        try:
            self.put_moved(found.source, found.places, found.size)
            offset = self.write(now, flags=KEYED | MOVED, key=found.key)
        except BaseException:
            self.tail.abandoned()
            self.timetable.give_back(found)
            raise
        self.timetable.moved(found, offset)
        if self.committed < self.end:
            self._moving.append((self.end, len(found)))
        return len(found)

    def relax(self) -> None:
        """Let go of the memory of a log that is idle; nothing, in the middle of a batch."""
        if not self.tail.count:
            self.tail.release()

    # --- producers' keys

    def flushed_keys(self) -> list[Keyed]:
        """Batches under a key that are on the device, in the order in which they came; each is told of once."""
        count = 0
        while count < len(self.keyed) and self._is_flushed(self.keyed[count]):
            count += 1
        found = self.keyed[:count]
        del self.keyed[:count]
        return found

    def _is_flushed(self, keyed: Keyed) -> bool:
        if keyed.bucket is not None:
            return keyed.bucket.chain.flushed_end(keyed.end) >= keyed.end
        return self._flushed >= keyed.end

    def key_known(self, keyed: Keyed) -> None:
        """The key is on the device elsewhere too: a recovery need not find it here."""
        if keyed.bucket is not None:
            self.timetable.key_known(keyed)
        else:
            self.chain.settle(keyed.end)

    # --- reading

    @property
    def earliest(self) -> int:
        """The first offset that was not deleted; where nothing is there either, it is a hole."""
        return self.birth.earliest

    @property
    def _begin(self) -> int:
        """Where the files begin: on a full disk they go before topic.json says so."""
        return max(self.earliest, self.chain.first(0))

    @property
    def kept_from(self) -> int:
        """The first offset that is neither deleted nor to be, as soon as all that holds it is settled."""
        return max(self.earliest, self.chain.kept_from(self._delete_to))

    @property
    def committed(self) -> int:
        """The end of what may be answered OK, and read."""
        return self._flushed if self.options.sync_every == 1 else self.end

    @property
    def flushed(self) -> int:
        return self._flushed

    @property
    def bytes(self) -> int:
        return self.chain.bytes

    def read(self, offset: int, size: int = BLOCK, *, now: bool = False) -> Block | None:
        """Whole batches from the one that holds `offset`, or the first one behind it; None at the committed end.

        The block's first record may lie before `offset` (it stood in the same batch) or behind it (behind a hole).
        With `now`, BlockingIOError where the device would have to be waited for: `warm` fetches the bytes.
        """
        if self._holes:
            return self._read_around_holes(offset, size, now)
        return self._read(offset, size, now)

    def _read(self, offset: int, size: int, now: bool) -> Block | None:
        if offset >= self.committed:
            return None
        block = self._find(offset, size, now)
        if block is None or block.next <= self.committed:
            return block
        return block.until(self.committed) if block.first < self.committed else None

    def _find(self, offset: int, size: int, now: bool) -> Block | None:
        """Whether it is committed or not."""
        block = self.tail.read(offset, size)
        if block is None:
            block = self._read_held(offset, size) or self.chain.read(offset, size, now=now)
        return block

    def _read_held(self, offset: int, size: int) -> Block | None:
        if offset >= (begin := self._begin):
            return None
        if (block := self.held.read(offset, size)) and block.first < begin:
            return block
        if not self.chain.segments:
            raise NotRetained(f"{self.birth.name}: {offset} is not kept any more", self.earliest)
        return None

    def _read_around_holes(self, offset: int, size: int, now: bool) -> Block | None:
        offset = self._behind_holes(offset)
        block = self._read(offset, size, now)
        while block is not None and (passed := self._behind_holes(block.first)) > max(block.first, offset):
            offset = passed
            block = self._read(offset, size, now)
        for hole in self._holes:
            if block is not None and block.first < hole.first < block.next:
                block = block.until(hole.first)
        return block

    def _behind_holes(self, offset: int) -> int:
        for hole in self._holes:
            if hole.first <= offset < hole.next:
                offset = hole.next
        return offset

    def warm(self, offset: int, size: int = BLOCK) -> Work:
        """The device's bytes at `offset` into memory, on a thread; then read without `now`."""
        work = Work()
        self.chain.warm(work, offset, size)
        return work

    def reach(self, offset: int, size: int) -> int:
        """Where a batch begins that is about `size` bytes behind `offset`, by the index alone; or the committed end."""
        return min(self.chain.reach(offset, size, self.end), self.committed)

    def near(self, time: int) -> int:
        """The offset from which on `at_time` looks."""
        offset = self.chain.near(time)
        return self.committed if offset is None else offset

    def at_time(self, time: int) -> int:
        """The first offset of the first batch appended at `time` or later; the committed end where there is none."""
        offset = self.chain.at_time(time)
        return self.committed if offset is None else min(offset, self.committed)

    def holes(self, first: int, end: int) -> list[Hole]:
        """What `[first, end)` lacks, in order; damage only as far as it was met."""
        emptied = [hole for hole in self._holes if hole.first < end and hole.next > first]
        lost = self.chain.holes(max(first, self.earliest), min(end, self.end))
        return sorted([*self._not_held(lost), *emptied])

    def _not_held(self, holes: Iterable[Hole]) -> Iterator[Hole]:
        """What the files lack and nobody copied aside before they went."""
        for hole in holes:
            at = hole.first
            for offset in self.held.between(hole.first, min(hole.next, self._begin)):
                if at < offset:
                    yield hole._replace(first=at, next=offset)
                at = offset + 1
            if at < hole.next:
                yield hole._replace(first=at)

    @property
    def emptied(self) -> list[Hole]:
        """What `add_hole` was told: not what the files lack, which they say themselves."""
        return self._holes

    def add_hole(self, hole: Hole) -> None:
        """Nobody reads these offsets any more; whoever asked for it remembers it over restarts."""
        insort(self._holes, hole)

    # --- flushing

    @property
    def flush_due(self) -> bool:
        waiting = self.end - self._flushed + self._deferred
        return 0 < self.options.sync_every <= waiting

    @property
    def unflushed(self) -> bool:
        """Something waits for a flush, or for what has to follow one that failed."""
        return self.refused is not None or self._flushed < self.end or self.birth_waits or self.timetable.dirty

    def busy_with(self, work: Work) -> None:
        """A thread has this to do for it, and for others: until then it wants nothing else."""
        self._work = work

    def work(self) -> Work | None:
        """What a thread has to do now: heal, delete, or flush all that is not flushed. None while one is under way."""
        if self.under_way:
            return None
        self._delete_first = not self._delete_first
        if self._delete_first:
            self._work = self._delete() or self._keep()
        else:
            self._work = self._keep() or self._delete()
        return self._work

    @property
    def under_way(self) -> bool:
        """A thread is at it."""
        return self._work is not None and not self._work.finished

    def _keep(self) -> Work | None:
        if self.refused:
            return None if self._apart else self._heal()
        return self.flush()

    def flush(self) -> Work | None:
        """Flush what is written so far, and reserve offsets ahead."""
        work = Work()
        self._keep_birth(work)
        end = self.chain.flush(work, self.end, at_most=_AT_MOST)
        through = [not work]  # what fails behind here is the timetable's, and the log is on the device
        if work:
            work.step(lambda: through.append(True))
        self._deferred = 0
        try:
            self.timetable.flush(work)
            self.timetable.settle(work, end)
        except LogError:
            work.drop()
            raise
        work.then(lambda: self._flushed_to(end))
        work.otherwise(lambda error: None if any(through) else self._flush_failed(error))
        if not work:
            work.finish()
            return None
        return work

    def _keep_birth(self, work: Work) -> None:
        """topic.json before anything that needs it counts as flushed; and the next reserve, well before it is used."""
        birth = self.birth
        if birth.reserved - self.end < RESERVE // 2:
            birth = birth._replace(reserved=self.end + RESERVE)
        elif not self.birth_waits:
            return
        parent = self.directory.rpartition("/")[0]
        work.step(lambda: birth_file.write(self.disk.files, self.directory, birth))
        work.step(lambda: self.disk.files.flush_directory(parent))
        work.then(lambda: self.birth_kept(birth))

    @property
    def birth_waits(self) -> bool:
        """topic.json is to be written with the next flush."""
        return self._birth_dirty or self._birth_unsure

    def birth_kept(self, birth: Birth) -> None:
        """topic.json, as it was then, is on the device."""
        self.birth = self.birth._replace(reserved=max(birth.reserved, self.birth.reserved))
        self._birth_dirty = self._birth_unsure = False

    def _flushed_to(self, end: int) -> None:
        self._flushed = max(self._flushed, end)

    def _flush_failed(self, error: OSError) -> None:
        self.refused = FlushFailed(f"flushing {self.directory}: {error.strerror or error}")

    def _heal(self) -> Work | None:
        if not any(segment.flush_failed for segment in self.chain.segments):
            return self._flush_again()
        rescue = Rescue(self.chain)
        work = Work()
        self._keep_birth(work)
        work.step(rescue.copy)
        end = self.end
        self.timetable.settle(work, end)
        work.then(rescue.adopt)
        work.otherwise(lambda _error: rescue.give_up())
        work.then(lambda: self._healed(end))
        return work

    def _flush_again(self) -> Work | None:
        """No batch was lost: topic.json had no room, or a directory failed. So nothing has to be copied either."""
        work = self.flush()
        if work is None:
            self._healed(self.end)
        else:
            work.then(lambda: self._healed(self._flushed))
        return work

    def _healed(self, end: int) -> None:
        self.refused = None
        self._flushed_to(end)

    # --- deleting

    def hold(self, offsets: Iterable[int], now: int) -> None:
        """Copy these records aside, because their segments are to be deleted before they are finished.

        What a restart found and nobody flushed yet is not committed, and may be unfinished all the same.
        """
        found = []
        for offset in sorted(offsets):
            block = self._find(offset, 1, now=False) if self._behind_holes(offset) == offset else None
            if block is not None and block.first <= offset:
                found += [record for record in records(block.data) if record.offset == offset]
        if found:
            self.held.put(found, now)

    def delete_below(self, offset: int) -> None:
        """Let the segments wholly below `offset` go, with the next turns of `work`; until then they are read."""
        self._delete_to = max(self._delete_to, offset)

    @property
    def deleting_below(self) -> int:
        """What lies wholly below is gone, or goes with the next work."""
        return self._delete_to

    @property
    def delete_due(self) -> bool:
        """Something is to go, with the next turns of `work`."""
        return bool(self._doomed) or self.chain.kept_from(self._deletable()) > self.birth.earliest

    def _delete(self) -> Work | None:
        """First what was held is safe, then it is written that the rest is gone; then nobody reads it, and it goes."""
        if self._doomed:
            return self._unlink()
        work = self.held.work(self.last_time) or Work()
        if (earliest := self.chain.kept_from(self._deletable())) > self.birth.earliest:
            birth = self.birth._replace(earliest=earliest)
            reached: list[bool] = []  # what was held is safe
            work.step(lambda: reached.append(True))
            work.step(lambda: birth_file.write(self.disk.files, self.directory, birth))
            work.then(lambda: self._deleted(birth))
            work.otherwise(lambda error: self._not_deleted(birth, error) if reached else None)
        return work or None

    def _deletable(self) -> int:
        """Not what alone says that a deferred message was moved, or that a producer's batch was published."""
        unsettled = self.timetable.unsettled_from
        delete_to = min(self._delete_to, self.chain.settled)
        return delete_to if unsettled is None else min(delete_to, unsettled)

    def _deleted(self, birth: Birth) -> None:
        self.birth = birth
        self._drop(birth.earliest)
        self._holes = [
            hole for hole in self._holes if hole.next > birth.earliest or self.held.between(hole.first, hole.next)
        ]

    def _not_deleted(self, birth: Birth, error: OSError) -> None:
        """Where there is no room even to write that: what nobody wants goes first, and it is written then."""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            self._drop(birth.earliest)

    def _drop(self, earliest: int) -> None:
        """Nobody reads what lies below from now on, not from memory either."""
        self._doomed = self.chain.drop(earliest)
        self.tail.drop(earliest)

    def _unlink(self) -> Work:
        doomed, self._doomed = self._doomed, []
        work = Work()
        unlink_steps(work, self.disk, doomed)
        work.otherwise(lambda _error: self._doomed.extend(doomed))
        return work
