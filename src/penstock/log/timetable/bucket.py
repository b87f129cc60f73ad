"""A bucket: the deferred entries of one stretch of due times, in files of its own. Knows its files; knows no clock.

    <name>_<first entry>.log      batches of records: entries, numbered from 0; a second file only after a failed flush
    <name>_<first entry>.index    see log/index.py
    <name>_<number>.moved         which entries stand in the topic's log, see notes.py

    <name> is <start, 20 digits>-<width>-<serial, 20 digits>-<parent's serial, 20 digits>

It is there as long as its file of entry 0 is: to unlink that one is what ends it. A bucket with a parent came from its
split, and counts only once the parent is gone.
"""

from __future__ import annotations

import contextlib
import re
from array import array
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import TooLarge
from penstock.log.chain import Chain
from penstock.log.rescue import Rescue
from penstock.log.timetable.notes import Notes
from penstock.log.timetable.run import Entry, Memory, Run, entry, pack
from penstock.protocol.batch import HEADER, KEYED, MAX_BATCH, first_at, positions, put_records, seal, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

    from penstock.log.disk import Disk
    from penstock.log.files import Files
    from penstock.log.keyed import Keyed
    from penstock.log.work import Work

SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

_INDEXED: Final = 1 << 20  # smaller files are as quickly read whole
_LOOK: Final = 64 << 10
_SCANNED: Final = 256 << 10
_MAX_ENTRIES: Final = 1 << 32
_UNBOUNDED: Final = 1 << 62

_NAME: Final = re.compile(r"(\d{20})-(\d{1,20})-(\d{20})-(\d{20})_(\d+)\.(log|index|moved|rescue)")


class Name(NamedTuple):
    """What a bucket's files say in their names."""

    start: int  # ns: what it was made for is due in [start, start + width)
    width: int
    serial: int  # never used again for another bucket of the timetable
    parent: int = 0  # the serial of the bucket it was split from

    @property
    def prefix(self) -> str:
        return f"{self.start:020d}-{self.width}-{self.serial:020d}-{self.parent:020d}_"


def parse(file: str) -> tuple[Name, int, str] | None:
    """(bucket, number, kind) of a file's name."""
    if match := _NAME.fullmatch(file):
        start, width, serial, parent, number = map(int, match.groups()[:5])
        return Name(start, width, serial, parent), number, match[6]
    return None


class Limits(NamedTuple):
    """What bounds a timetable's memory."""

    load: int = 4 << 20  # bytes: what is larger is not loaded but split, or streamed in windows of this size
    entries: int = 1 << 15  # and so is what has more of them
    held: int = 16 << 20  # bytes in memory beyond which only what is due is loaded


class Home(NamedTuple):
    """What all buckets of a timetable share."""

    disk: Disk
    directory: str
    seed: int
    limits: Limits


class State(Enum):
    """far --load--> loading --> near --all moved--> gone;   far --split--> splitting --> gone.

    Near again becomes loading where the next window is read. What fails goes back.
    """

    FAR = "on the device only"
    LOADING = "a thread reads it, or its next window"
    NEAR = "in memory, all or the window that comes next"
    SPLITTING = "a thread deals it out to narrower ones"
    GONE = "its files are to be removed, or are"


class Bucket:
    """Its files, what of it is in memory, and what of it was moved."""

    __slots__ = (
        "chain", "closed", "count", "earliest", "end", "failed", "flushing", "home", "keys", "litter", "memory",
        "moved", "name", "not_before", "noted", "notes", "out", "state", "time", "unread", "unsettled",
    )  # fmt: skip

    def __init__(self, home: Home, name: Name) -> None:
        seed = (home.seed + name.serial) & 0xFFFFFFFF
        self.home = home
        self.name = name
        self.chain = Chain(home.disk, home.directory, seed, _UNBOUNDED, name.prefix)
        self.chain.index_from = _INDEXED
        self.notes = Notes(home.disk.files, home.directory, name.prefix, seed)
        self.state = State.FAR
        self.memory: Memory | None = None
        self.count = 0  # entries that are not moved
        self.end = 0  # the number of the next entry
        self.earliest = name.start  # nothing is due before; made exact while entries are put
        self.time = 0
        self.closed = False  # takes no more entries
        self.unread = 0  # entries from here on are not in memory
        self.moved: bytearray | None = None  # by number, 1 for those that recovery found moved; until they were read
        self.out = 0  # handed out, neither moved nor given back
        self.unsettled: list[tuple[int, array[int]]] = []  # offset of the batch, and what was moved: not noted yet
        self.not_before = 0  # when to try again what failed
        self.noted: tuple[bool, int] | None = None  # what stands about it in the agenda: to be split or not, and when
        self.flushing = False
        self.failed = False  # a flush failed: the next one goes to a new file
        self.keys = 0  # batches whose keys only they say
        self.litter: list[str] = []  # children's files that a failed split left and could not remove

    # --- what it is

    @property
    def stop(self) -> int:
        return self.name.start + self.name.width

    @property
    def size(self) -> int:
        """In bytes, on the device."""
        return self.chain.bytes

    @property
    def loads(self) -> float:
        """How many times what may be loaded at once; a wide one may stay in memory for long, so less of it."""
        limits = self.home.limits
        bound = limits.load if self.name.width <= MINUTE else limits.load // 16
        return max(self.size / bound, self.end / limits.entries)

    @property
    def streamed(self) -> bool:
        """Too large to be loaded, too narrow to be split: read in windows, in the order of the file."""
        return self.name.width == 1 and self.loads > 1

    @property
    def to_split(self) -> bool:
        return self.loads > 1 and self.name.width > 1 and self.moved is None and not self.keys

    @property
    def to_load(self) -> int:
        """How many bytes loading it takes."""
        return min(self.size, self.home.limits.load) if self.streamed else self.size

    @property
    def waits(self) -> bool:
        """Whether a thread has to load or split it, or to read its next window."""
        if not self.count or (self.failed and (self.flushing or self.to_split)):
            return False
        if self.state is State.NEAR and self.memory is not None:
            return self.unread < self.end and len(self.memory.runs) < 2
        return self.state is State.FAR

    def takes(self, count: int) -> bool:
        """Whether `count` more entries may be put."""
        if self.closed or self.end + count >= _MAX_ENTRIES:
            return False
        return self.memory is None or self.loads < 1

    # --- putting and flushing

    def put(self, bodies: Sequence[bytes], due: int, timestamp: int, key: bytes) -> None:
        """Write one batch, all of it due then; after an error it never was."""
        start = HEADER + len(key)
        size = start + size_of(bodies)
        if size > MAX_BATCH:
            raise TooLarge(f"{self.home.directory}: {size} bytes are more than one batch can hold")
        batch = bytearray(size)
        batch[HEADER:start] = key
        put_records(batch, start, bodies, timestamp, due, 0)
        time = max(timestamp, self.time)
        seal(batch, 0, size, self.end, len(bodies), time, KEYED if key else 0, len(key), self.chain.seed)
        self.chain.append(batch, self.end, len(bodies), time)
        if key:
            self.keep_key(self.end)
        self.time = time
        self.earliest = min(self.earliest, due) if self.count else due
        if self.memory is not None:
            self.memory.join(due, self.end, len(bodies), batch)
            self.unread = self.end + len(bodies)
        self.end += len(bodies)
        self.count += len(bodies)

    @property
    def matters(self) -> bool:
        """Something is in it that a power cut must not take."""
        return bool(self.count or self.keys)

    @property
    def dirty(self) -> bool:
        return self.chain.directory_dirty or bool(self.chain.dirty())

    def flush(self, work: Work) -> None:
        """Add the flush of what was put; where one failed before, its copy to a new file instead."""
        files = [segment.open() for segment in self.chain.dirty()]

        def failed(_error: OSError) -> None:
            self._let_go()
            if any(file.error for file in files):
                self.failed = self.closed = True
                self.chain.roll()

        self.flushing = True
        if self.failed:
            rescue = Rescue(self.chain)
            work.step(rescue.copy)
            work.then(rescue.adopt)
            work.otherwise(lambda _error: rescue.give_up())
        else:
            self.chain.flush(work)
        work.then(self._flushed)
        work.otherwise(failed)

    def _flushed(self) -> None:
        self.failed = False
        self._let_go()

    def _let_go(self) -> None:
        self.flushing = False
        if self.state is State.GONE:
            self.chain.close()

    def seal(self) -> None:
        """For a clean stop, after the flush: the next start need not read it."""
        self.chain.roll()
        for segment in self.chain.segments:
            if segment.position >= self.chain.index_from and not segment.dirty:
                segment.write_index(segment.flushed_to(segment.flushed, self.chain.settled))
        self.chain.close()

    # --- reading

    def recover(self, firsts: list[int]) -> None:
        """Find what these files hold. Nothing is put any more: power may have gone with numbers that were moved."""
        self.chain.recover_segments(firsts)
        self.chain.roll()
        self.chain.directory_dirty = bool(self.chain.dirty())  # a process that was killed may not have flushed names
        for segment in self.chain.segments:
            for head in segment.keyed:
                self.keep_key(first_at(head, 0))
        self.closed = True
        self.end = self.count = max(segment.end for segment in self.chain.segments)

    def entries(self, limit: int) -> list[Entry]:
        """Some that wait, in order of due time: the first ones where they are in memory, else those that came first."""
        found = self.memory.entries(limit) if self.memory else []
        number = self.unread
        while len(found) < limit and number < self.end and (block := self.chain.read(number, _LOOK)):
            for number, place in enumerate(positions(block.data, 0, len(block.data)), block.first):
                if self.moved is None or not self.moved[number]:
                    found.append(entry(block.data, place))
            number = block.next
        return sorted(found)[:limit]

    def scan(self) -> Iterator[tuple[Buffer, list[int]]]:
        """All that waits, a block at a time and where its entries begin; for a bucket of which nothing was loaded."""
        moved = self.moved or bytes(self.end)
        number = 0
        while number < self.end and (block := self.chain.read(number, _SCANNED)):
            places = positions(block.data, 0, len(block.data))
            yield block.data, [place for each, place in enumerate(places, block.first) if not moved[each]]
            number = block.next

    def begin_loading(self) -> None:
        self.state = State.LOADING
        self.noted = None
        self.memory = self.memory or Memory()

    def loaded(self, run: Run, reached: int, lost: int) -> None:
        """A thread has read the entries up to `reached`; `lost` of those that counted were not there."""
        if self.memory is not None:
            self.memory.add(run)
        self.unread = reached if self.streamed else self.end
        self.count -= lost
        self.state = State.NEAR
        if self.unread == self.end:
            self.moved = None
        if self.streamed:
            self.closed = True

    def not_loaded(self, retry: int) -> None:
        """The thread could not: what joined meanwhile is in the file as well. Others take what is put from now on."""
        self.closed = True
        self.not_before = retry
        if self.streamed and self.unread:
            self.state = State.NEAR
        else:
            self.state = State.FAR
            self.memory = None
            self.unread = 0

    def adopt(self, home: Home) -> None:
        """What a thread wrote through files of its own belongs to the disk of all from now on."""
        self.home = home
        self.chain.disk = disk = home.disk
        for segment in self.chain.segments:
            segment.disk = disk

    # --- moving and ending

    def take(self, until: int, room: int) -> Run:
        """The first entries in memory that are due by `until` and fit `room` bytes; one at least must be due."""
        if self.memory is None:
            raise ValueError("nothing is in memory")
        run = self.memory.take(until, room)
        self.out += len(run)
        return run

    def mark_moved(self, numbers: array[int]) -> None:
        """Recovery found these in the topic's log, or noted; as often as it likes."""
        self.moved = self.moved or bytearray(self.end)
        for number in numbers:
            if number < self.end:
                self.moved[number] = 1
        self.count = self.end - self.moved.count(1)

    def take_unsettled(self, end: int) -> list[tuple[int, array[int]]]:
        """What was moved to below this offset, and is to be noted."""
        moved = [each for each in self.unsettled if each[0] < end]
        self.unsettled = [each for each in self.unsettled if each[0] >= end]
        return moved

    def note(self, work: Work, moved: list[tuple[int, array[int]]]) -> bool:
        """Add a note that these are moved; True where the directory has to be flushed as well."""
        numbers = array("I")
        for _, more in moved:
            numbers.extend(more)
        return self.notes.add(work, pack(self.name.serial, numbers))

    def keep_key(self, first: int) -> None:
        """The batch that begins with this entry has a key that only it says: it stays where recovery finds it."""
        self.chain.unsettle(first)
        self.keys += 1

    def key_known(self, keyed: Keyed) -> None:
        """And now somebody else says it."""
        self.chain.settle(keyed.end)
        self.keys -= 1

    @property
    def finished(self) -> bool:
        """All of it is in the topic's log, and nothing has to be kept: it may end."""
        rescuing = self.failed and self.flushing  # which would put the file back
        return not (self.count or self.out or self.unsettled or self.keys or rescuing or self._damage_unsaved())

    def _damage_unsaved(self) -> bool:
        paths = {segment.path for segment in self.chain.segments}
        return any(damage.path in paths and not damage.copy for damage in self.home.disk.damages)

    def end_it(self) -> None:
        """No files are opened for it any more."""
        self.state = State.GONE
        self.noted = None
        self.closed = True
        self.memory = None
        for segment in self.chain.segments:
            segment.doubtful = True  # no index is written for it
        if not self.flushing:
            self.chain.close()

    def unlink_first(self) -> None:
        """On a thread: what ends it, once the directory is flushed."""
        files = self.home.disk.files
        if self.litter:
            unlink(files, self.litter)
            files.flush_directory(self.home.directory)
        unlink(files, [self.chain.segment(0).path])

    def unlink_rest(self) -> None:
        """On a thread, after that: what means nothing without it."""
        paths = [path for segment in self.chain.segments for path in (segment.path, segment.index_path)]
        unlink(self.home.disk.files, [*paths, *self.notes.paths])


def unlink(files: Files, paths: list[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            files.unlink(path)
