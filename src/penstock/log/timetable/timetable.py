"""The timetable of a topic: messages that wait for their time, until they are moved into its log. Knows no log.

    put --> bucket files by due time --prepare--> narrower ones --prepare--> memory --due--> slice --moved--> gone
                   far ahead                        soon              very soon      |<-- give_back --|

Rules
- `put` returns when its batch is written to the operating system: a process kill loses nothing of it.
- Buckets far ahead are wide and only on the device. As one comes near it is split, by a thread and never as a whole in
  memory, until what comes next can be loaded. So memory is bounded, however many messages wait, and for whatever time.
- What was put under a key is due when it is flushed, so that it is never in the log while its key may be lost.
- `due` never gives out what is not due. What was read together comes in order of due time; between buckets, and with
  what is put while a bucket is in memory, order is kept to within 20 ms.
- A slice becomes one batch of the log, under the slice's key. Behind the flush of the log and before its index marks,
  `settle` notes what was moved; recovery is given the keys of the batches behind the last mark. So a message is either
  in the timetable or in the log, whatever crash comes between.
- A bucket all of which was moved is unlinked. After a restart no file is written on: entries put then go to new ones.

The wall clock is an argument, in ns. Slow things come out as `Work`.
"""

from __future__ import annotations

import contextlib
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.errors import LogError
from penstock.log.keyed import Keyed, keyed
from penstock.log.timetable.agenda import LEAD, Agenda
from penstock.log.timetable.bucket import DAY, HOUR, MINUTE, SECOND, Bucket, Home, Limits, Name, State
from penstock.log.timetable.load import Loading
from penstock.log.timetable.recovery import Found, moved_keys
from penstock.log.timetable.run import GRAIN, Memory, Slice, unpack
from penstock.log.timetable.split import RANGES, Split
from penstock.log.work import Work

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

    from penstock.log.disk import Disk
    from penstock.log.timetable.run import Entry

FOLDER: Final = "timetable"
SLICE: Final = 256 << 10  # about how many bytes one slice has
_RETRY: Final = SECOND

Place: TypeAlias = tuple[int, int, bool]  # width, which of that width, whether for what has a key


class Timetable:
    """The deferred messages of one incarnation of a topic. Without any it has no files, and no folder is made."""

    __slots__ = (
        "_agenda", "_buckets", "_closed", "_current", "_directory_dirty", "_dirty", "_folder_dirty", "_home", "_made",
        "_near", "_serial", "_spent", "_splitting", "_unsettled", "count", "directory", "disk", "folder",
    )  # fmt: skip

    def __init__(self, disk: Disk, folder: str, seed: int, limits: Limits | None = None) -> None:
        """The timetable below a topic's folder; `recover` finds what it holds."""
        self.disk = disk
        self.folder = folder
        self.directory = f"{folder}/{FOLDER}"
        self.count = 0  # messages that wait, or are handed out
        self._home = Home(disk, self.directory, seed, limits or Limits())
        self._serial = 0
        self._buckets: dict[int, Bucket] = {}  # by serial
        self._current: dict[Place, Bucket] = {}  # that take what is put
        self._near: list[Bucket] = []  # that have something in memory
        self._dirty: dict[int, Bucket] = {}  # with something to flush
        self._unsettled: dict[int, Bucket] = {}  # with something to note, or at their end
        self._splitting = False
        self._spent: list[int] = []  # descriptors of what was split, for a thread to close
        self._agenda = Agenda()
        self._made = self._closed = False
        self._folder_dirty = self._directory_dirty = False

    def recover(self, keyed: Sequence[bytes] = ()) -> None:
        """Find what the folder holds; `keyed` are headers that the log's recovery met, of batches with a key."""
        found = Found(self._home)
        self._buckets = {bucket.name.serial: bucket for bucket in found.buckets()}
        # a process that was killed may have made the folder and ended buckets, and not have flushed that
        self._made = self._folder_dirty = self._directory_dirty = found.exists
        self._serial = found.serial
        for offset, key in moved_keys(keyed):
            serial, numbers = unpack(key)
            self._serial = max(self._serial, serial)
            if bucket := self._buckets.get(serial):
                bucket.mark_moved(numbers)
                bucket.unsettled.append((offset, numbers))
                self._unsettled[serial] = bucket
        for serial, bucket in self._buckets.items():
            self.count += bucket.count
            self._agenda.add(bucket)
            if not bucket.count:
                self._unsettled[serial] = bucket
            if bucket.dirty:
                self._dirty[serial] = bucket

    def close(self) -> None:
        """Leave marks for a quick start; after the last `flush` and `settle`."""
        self._close_spent()
        for bucket in self._buckets.values():
            bucket.seal()
        if not self._buckets and self._made:
            with contextlib.suppress(OSError):  # what was damaged may be kept there
                self.disk.files.remove_directory(self.directory)

    def close_files(self) -> None:
        """As it is: for a topic that is deleted."""
        self._closed = True
        for bucket in self._buckets.values():
            bucket.chain.close()
        self._close_spent()

    def entries(self, limit: int) -> list[Entry]:
        """Some that wait, in order of due time as far as they are in memory; reads a little from the device."""
        found: list[Entry] = []
        for bucket in sorted(self._buckets.values(), key=lambda bucket: bucket.earliest):
            if len(found) >= limit:
                break
            found += bucket.entries(limit - len(found))
        return found

    def scan(self) -> Iterator[tuple[Buffer, list[int]]]:
        """All that waits, about in order of due time: blocks, and where its entries begin in them; after `recover`."""
        for bucket in sorted(self._buckets.values(), key=lambda bucket: bucket.earliest):
            yield from bucket.scan()

    # --- putting

    def put(self, bodies: Sequence[bytes], due: int, timestamp: int, *, key: bytes = b"") -> Keyed | None:
        """Defer messages published at `timestamp` until `due`: one batch and one write, all or nothing.

        With a key, the batch, until `key_known`.
        """
        bucket = self._bucket_for(max(due, timestamp), timestamp, len(bodies), bool(key))
        first = bucket.end
        try:
            bucket.put(bodies, due, timestamp, key)
        except BaseException:
            self._unsettled[bucket.name.serial] = bucket  # ends there if it stays empty
            raise
        self.count += len(bodies)
        self._dirty[bucket.name.serial] = bucket
        if bucket.memory is None:
            self._agenda.add(bucket)
        return Keyed(first, bucket.end, bucket.time, key, bucket) if key else None

    def keyed(self) -> list[Keyed]:
        """What recovery found of batches with a key, each until `key_known`."""
        found = []
        for bucket in self._buckets.values():
            for segment in bucket.chain.segments:
                found += [keyed(head, bucket) for head in segment.keyed]
                segment.keyed = []
        return found

    def key_known(self, keyed: Keyed) -> None:
        """The key of a batch in a bucket is on the device elsewhere too: the bucket may end, or be split."""
        if (bucket := keyed.bucket) is not None:
            bucket.key_known(keyed)
            self._agenda.add(bucket)

    def _bucket_for(self, at: int, now: int, count: int, keyed: bool) -> Bucket:
        """What has a key waits for a flush before it is due, so it has buckets of its own."""
        width = MINUTE if at - now < HOUR else HOUR if at - now < 2 * DAY else DAY
        bucket = self._current.get((width, at // width, keyed))
        if bucket is not None and not bucket.takes(count) and width == MINUTE:
            width = SECOND
            bucket = self._current.get((width, at // width, keyed))
        if bucket is None or not bucket.takes(count):
            bucket = self._current[width, at // width, keyed] = self._make(at // width * width, width, at, now)
        return bucket

    def _make(self, start: int, width: int, at: int, now: int) -> Bucket:
        if not self._made:
            self._folder_dirty |= self.disk.ensure_directory(self.directory)
            self._made = True
        self._serial = max(self._serial + 1, now)
        bucket = Bucket(self._home, Name(start, width, self._serial))
        if at - now < LEAD:
            bucket.state, bucket.memory = State.NEAR, Memory()
            self._near.append(bucket)
        self._buckets[self._serial] = bucket
        return bucket

    # --- what is due

    def due(self, now: int, max_bytes: int = SLICE) -> Slice | None:
        """The next entries that are due, about `max_bytes` of them; theirs until `moved` or `give_back`."""
        heads = sorted(self._heads(), key=itemgetter(0))[:2]
        if not heads or heads[0][0] > now:
            return None
        bucket = heads[0][1]
        run = bucket.take(min([now, *(head + GRAIN for head, _ in heads[1:])]), max_bytes)
        if bucket.streamed:
            self._agenda.add(bucket)
        return Slice(bucket, run)

    def moved(self, slice_: Slice, offset: int) -> None:
        """It stands in the topic's log, as the batch that begins with this offset."""
        bucket = slice_.bucket
        bucket.out -= len(slice_)
        bucket.count -= len(slice_)
        self.count -= len(slice_)
        bucket.unsettled.append((offset, slice_.numbers))
        self._unsettled[bucket.name.serial] = bucket

    def give_back(self, slice_: Slice) -> None:
        """It could not be appended: its entries are due again."""
        slice_.bucket.out -= len(slice_)
        if slice_.bucket.memory is not None:
            slice_.bucket.memory.put_back(slice_.run)

    # --- looking ahead

    @property
    def next_look(self) -> int | None:
        """When there is something to do: `prepare`, or `due`. None while there is not."""
        if not self._near and not self._agenda:
            return None  # most topics, at each turn
        times = [head for head, _ in self._heads()]
        if found := self._agenda.load():
            time, bucket = found
            times.append(time - LEAD if self._has_room(bucket) else time)
        if not self._splitting and (found := self._agenda.split()):
            times.append(found[0])
        return min(times, default=None)

    def _heads(self) -> Iterator[tuple[int, Bucket]]:
        """When the first entry in memory is due that nobody has, for each bucket."""
        for bucket in self._near:
            whole = bucket.state is State.NEAR or bucket.streamed
            if bucket.keys and bucket.dirty:
                continue
            if whole and bucket.memory is not None and (head := bucket.memory.head) is not None:
                yield head, bucket

    def _has_room(self, bucket: Bucket) -> bool:
        """Whether it may be loaded before it is due."""
        held = bucket.to_load
        for near in self._near:
            held += near.memory.size if near.memory is not None else 0
            held += near.to_load if near.state is State.LOADING else 0
        return held <= self._home.limits.held

    def prepare(self, now: int) -> Work | None:
        """What a thread has to do for what is due soon; ask until there is nothing more. Several may be under way."""
        if (found := self._agenda.load()) and self._may_load(*found, now):
            return self._load(found[1], now)
        if not self._splitting and (found := self._agenda.split()) and found[0] <= now:
            return self._split(found[1], now)
        return None

    def _may_load(self, time: int, bucket: Bucket, now: int) -> bool:
        """Soon before it is due, if there is room; else then, when nothing else that is due is left in memory."""
        if time - LEAD <= now and self._has_room(bucket):
            return True
        return time <= now and not any(head <= now for head, _ in self._heads())

    def _load(self, bucket: Bucket, now: int) -> Work:
        loading = Loading(bucket, now + _RETRY)
        if bucket not in self._near:
            self._near.append(bucket)
        work = Work()
        work.step(loading.run)
        work.then(lambda: self._loaded(bucket, loading))
        work.otherwise(lambda _error: self._not_loaded(bucket, loading))
        return work

    def _loaded(self, bucket: Bucket, loading: Loading) -> None:
        before = bucket.count
        loading.finish()
        self.count -= before - bucket.count
        if not bucket.count:
            self._unsettled[bucket.name.serial] = bucket
        self._agenda.add(bucket)

    def _not_loaded(self, bucket: Bucket, loading: Loading) -> None:
        loading.fail()
        if bucket.memory is None:
            self._near.remove(bucket)
        self._agenda.add(bucket)

    def _split(self, bucket: Bucket, now: int) -> Work:
        bucket.state = State.SPLITTING
        bucket.noted = None
        bucket.closed = self._splitting = True
        split = Split(bucket, self._serial + 1, now)
        self._serial += 2 * RANGES
        work = Work()
        work.step(split.run)
        work.then(lambda: self._split_done(bucket, split))
        work.otherwise(lambda _error: self._split_failed(bucket, split, now + _RETRY))
        return work

    def _split_done(self, bucket: Bucket, split: Split) -> None:
        children = split.finish()
        self._spent += split.spent
        if self._closed:  # nothing else will
            self._close_spent()
        self._end(bucket)
        self.count += sum(child.count for child in children) - bucket.count
        for child in children:
            self._buckets[child.name.serial] = child
            self._agenda.add(child)
        self._splitting = False

    def _split_failed(self, bucket: Bucket, split: Split, retry: int) -> None:
        if split.over:
            self._directory_dirty = True
            self._split_done(bucket, split)
            return
        split.fail()
        bucket.state, bucket.not_before = State.FAR, retry
        self._agenda.add(bucket)
        self._splitting = False

    # --- what lasts

    @property
    def dirty(self) -> bool:
        """Whether `flush` has something to do."""
        return self._folder_dirty or any(bucket.matters for bucket in self._dirty.values())

    def flush(self, work: Work) -> None:
        """Add what makes all that waits survive a power cut; where it fails, the next call tries it otherwise."""
        files = self.disk.files
        if self._folder_dirty:
            work.step(lambda: files.flush_directory(self.folder))
            work.then(self._folder_flushed)
        for bucket in list(self._dirty.values()):
            if bucket.flushing or not bucket.matters or (bucket.failed and bucket.state is State.SPLITTING):
                continue
            try:
                bucket.flush(work)
            except LogError:
                if bucket.state is State.SPLITTING:
                    continue  # a thread has just put files that are flushed in its place
                raise
            work.then(lambda bucket=bucket: self._flushed(bucket))  # type: ignore[misc]
            work.otherwise(lambda _error, bucket=bucket: self._not_flushed(bucket))  # type: ignore[misc]

    def _folder_flushed(self) -> None:
        self._folder_dirty = False

    def _flushed(self, bucket: Bucket) -> None:
        if not bucket.dirty:
            self._dirty.pop(bucket.name.serial, None)
        self._agenda.add(bucket)

    def _not_flushed(self, bucket: Bucket) -> None:
        self._agenda.add(bucket)

    @property
    def unsettled_from(self) -> int | None:
        """The offset of the first moved batch of which only the log knows: from there on it may not be deleted."""
        return min((each[0] for bucket in self._unsettled.values() for each in bucket.unsettled), default=None)

    def settle(self, work: Work, end: int) -> None:
        """Add notes of what was moved below `end`, and the ends of what is moved wholly; one such work at a time.

        To be run behind the flush of the log up to `end`, and before its index marks are written.
        """
        ended = []
        flush_directory = self._directory_dirty
        for serial, bucket in list(self._unsettled.items()):
            moved = bucket.take_unsettled(end)
            if bucket.finished:
                self._end(bucket)
                ended.append(bucket)
                work.step(bucket.unlink_first)
            elif moved:
                flush_directory |= bucket.note(work, moved)
            if (bucket.count and not bucket.unsettled) or bucket.state is State.GONE:
                del self._unsettled[serial]
            work.otherwise(lambda _error, bucket=bucket, moved=moved: self._not_settled(bucket, moved))  # type: ignore[misc]
        if self._spent:
            work.step(self._close_spent)
        if ended or flush_directory:
            work.step(lambda: self.disk.files.flush_directory(self.directory))
            work.then(self._directory_flushed)
        for bucket in ended:
            work.step(bucket.unlink_rest)

    def _close_spent(self) -> None:
        while self._spent:
            with contextlib.suppress(OSError):  # the descriptor is gone
                self.disk.files.close(self._spent.pop())

    def _directory_flushed(self) -> None:
        self._directory_dirty = False

    def _not_settled(self, bucket: Bucket, moved: list[tuple[int, array[int]]]) -> None:
        bucket.unsettled = moved + bucket.unsettled
        self._unsettled[bucket.name.serial] = bucket

    def _end(self, bucket: Bucket) -> None:
        bucket.end_it()
        self._buckets.pop(bucket.name.serial, None)
        self._dirty.pop(bucket.name.serial, None)
        if bucket in self._near:
            self._near.remove(bucket)
        width, number = bucket.name.width, bucket.name.start // bucket.name.width
        for place in ((width, number, False), (width, number, True)):
            if self._current.get(place) is bucket:
                del self._current[place]

    @property
    def bytes(self) -> int:
        """On the device."""
        return sum(bucket.size for bucket in self._buckets.values())
