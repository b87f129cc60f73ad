# cython: annotation_typing=False
"""A segment: one append-only file of batches, and its index. Knows files; knows no topic and no other segment.

    <first offset, 20 digits>.log      batch | batch | batch | ...      each begins where the last one's offsets end
    <first offset, 20 digits>.index    see index.py

Promises
- `append` writes a batch whole or leaves the file as it was; where even that fails, the segment is `closed` and the
  half batch behind its end is nobody's.
- What a kill left unfinished at the end was never answered: `recover` cuts it, unless the index knows of more.
- Bad bytes before good batches are damage: copied aside, reported, stepped over as a gap; never cut, never read.
- The index only saves looking: lost or wrong, it is made again from the batches.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import log_error
from penstock.log.damage import report
from penstock.log.files import write_whole
from penstock.log.index import END, ENTRY, SEAL, STEP, Gap, Index, Mark, decode, encode_entry, seed_of_index
from penstock.log.scan import Reader, Tail, find_good, scan
from penstock.log.work import Work
from penstock.protocol.batch import MAX_ID, header, length_at, seek, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

    from penstock.log.disk import Disk, OpenFile

_MARKED: Final = 1 << 20  # bytes flushed that are worth a write to the index, while more are written
_HINTS: Final = 32  # places remembered for readers that go on where they stopped


class Block(NamedTuple):
    """Whole batches as they stand in the log; `first` is the offset of the first record in `data`."""

    first: int
    next: int
    data: bytes | bytearray | memoryview

    def until(self, offset: int) -> Block:
        """The batches that begin below `offset`, which lies in the block."""
        stop, next_ = seek(self.data, 0, offset), offset
        if (head := header(self.data, stop)).first < offset:
            stop, next_ = head.end, head.next
        return Block(self.first, next_, memoryview(self.data)[:stop])


class Segment:
    """Append-only file of batches, named after the offset of its first record."""

    __slots__ = (
        "_file", "_gaps", "_hints", "_index", "_name", "closed", "disk", "doubtful", "end", "first", "first_time",
        "flushed", "flushed_end", "keyed", "last_time", "position", "seed", "tail_bad",
    )  # fmt: skip

    def __init__(self, disk: Disk, directory: str, first: int, seed: int, prefix: str = "") -> None:
        """A segment without batches; `recover` finds those that its file has. `prefix` begins its files' names."""
        self.disk = disk
        self.seed = seed
        self._name = f"{directory}/{prefix}{first:020d}"
        self.first = first  # the first offset it may hold
        self.end = first  # the offset after its last record
        self.position = 0  # the byte after its last batch
        self.flushed = 0  # up to this byte it is known to be on the device
        self.flushed_end = first  # and at least up to this offset
        self.first_time = 0
        self.last_time = 0
        self.closed = False  # takes no more batches
        self.tail_bad = False  # ends in bytes that may have been answered batches
        self.doubtful = False  # parts could not be read: nothing about it may be written down
        self.keyed: list[bytes] = []  # headers found while recovering whose batches carry a key
        self._index: Index | None = Index()
        self._gaps: Sequence[Gap] = ()
        self._hints: dict[int, int] = {}
        self._file: OpenFile | None = None

    @property
    def path(self) -> str:
        return self._name + ".log"

    @property
    def index_path(self) -> str:
        return self._name + ".index"

    @property
    def index(self) -> Index:
        """Read again from its file when it was let go."""
        if self._index is None:
            try:
                self._index = index = self._read_index()
            except OSError as error:
                raise log_error(error, f"reading the index of {self.path}") from error
            index.gaps += [gap for gap in self._gaps if gap not in index.gaps]  # met after it was sealed
        return self._index

    def _read_index(self) -> Index:
        index, _ = self._load_index(self.position)
        if index.sealed is None:  # lost or damaged meanwhile
            index = Index()
            reader = Reader(self.disk.files, self.open().fd, self.position)
            scan(reader, Mark(self.first, 0, 0), self.seed, index)
            reader.must_have_all()
        return index

    @property
    def gaps(self) -> Sequence[Gap]:
        """The damage that was met, also while the index is let go."""
        return self._gaps if self._index is None else self._index.gaps

    def forget_index(self) -> None:
        """Let go of the index of a segment that is sealed and whole in its file."""
        if self._index is not None and self._index.sealed is not None:
            self._gaps = tuple(self._index.gaps)
            self._index = None
        self._hints.clear()

    # --- writing

    def open(self, *, create: bool = False) -> OpenFile:
        file = self._file
        if file is None or file.fd < 0:
            try:
                file = self._file = self.disk.open(self.path, create=create)
            except OSError as error:
                raise log_error(error, f"opening {self.path}") from error
        else:
            self.disk.used(file)
        return file

    def append(self, batch: Buffer, count: int, time: int) -> None:
        """Write a whole batch that begins at `end`; after an error the segment is as it was, or closed."""
        file = self.open(create=True)
        try:
            self._write(file, batch)
        except OSError as error:
            self._cut(file)
            raise log_error(error, f"writing {self.path}") from error
        file.unflushed = True
        self.appended(memoryview(batch).nbytes, count, time)

    def append_apart(self, batch: Buffer, count: int, time: int) -> Work:
        """As `append`, on a thread; nothing else is written to it until that is through."""
        file = self.open(create=True)
        file.pins += 1
        work = Work()
        work.step(lambda: self._write(file, batch))

        def done() -> None:
            file.pins -= 1
            file.unflushed = True
            self.appended(memoryview(batch).nbytes, count, time)

        def failed(_error: OSError) -> None:
            file.pins -= 1
            self._cut(file)

        work.then(done)
        work.otherwise(failed)
        return work

    def _write(self, file: OpenFile, batch: Buffer) -> None:
        if not self.position and self.disk.files.size(file.fd):
            self.disk.files.truncate(file.fd, 0)  # what an append that failed left there
        write_whole(self.disk.files, file.fd, batch, self.position)

    def appended(self, size: int, count: int, time: int) -> None:
        """Take note of a batch that now stands at the end."""
        index = self.index
        if not self.position:
            self.first_time = time
        if not index.positions or self.position - index.positions[-1] >= STEP:
            index.add(self.end, time, self.position)
        self.position += size
        self.end += count
        self.last_time = time

    def _cut(self, file: OpenFile) -> None:
        """Back to whole batches; closed where the file cannot even be cut."""
        try:
            self.disk.files.truncate(file.fd, self.position)
        except OSError:
            self.closed = True

    def cut_view(self, end: int) -> None:
        """From `end` on another segment holds the batches: what this one has of them is not looked at any more."""
        _, time, position = self.index.before_offset(end - 1) or Mark(self.first, 0, 0)
        reader = Reader(self.disk.files, self.open().fd, self.position)
        while True:
            if (gap := self.index.gap_at(position)) and gap.next <= end:
                position = gap.stop
            found = reader.batch(position, self.seed)
            if found is None or found[0].first >= end:
                break
            position += found[0].end
            time = found[0].appended
        self.cut_at(end, position, time)

    def cut_at(self, end: int, position: int, time: int) -> None:
        """As `cut_view`, where it is known where that is, and the time of what was there (or of what comes next)."""
        self.end, self.position, self.last_time = end, position, time
        self.flushed = min(self.flushed, position)
        self.flushed_end = min(self.flushed_end, end)
        self.index.cut(position)
        self._hints.clear()

    def take_over(self, old: Segment, start: int, first_time: int) -> None:
        """The file holds what `old` has from byte `start` on, and all of it is on the device."""
        self.end, self.position, self.closed = old.end, old.position - start, old.closed
        self.first_time, self.last_time = first_time, old.last_time
        self.flushed, self.flushed_end = self.position, self.end
        self.doubtful = old.doubtful
        self._index = old.index.behind(start)

    # --- flushing: what the device has

    @property
    def dirty(self) -> bool:
        return self.flushed < self.position

    @property
    def flush_failed(self) -> bool:
        """Linux may have forgotten what was not on the device then."""
        return self._file is not None and self._file.fd >= 0 and self._file.error is not None

    def flushed_to(self, position: int, until: int = MAX_ID) -> bytes:
        """The bytes up to `position` are on the device: the index entries that may be written now.

        None behind the offset `until`: from there on a recovery has to look. And none yet where it is busy and they
        would save a recovery little.
        """
        self.flushed = max(self.flushed, position)
        if self.flushed == self.position:
            self.flushed_end = self.end
            if self._file is not None:
                self._file.unflushed = False
        index = self.index
        if self.dirty and index.written and self.flushed - index.positions[index.written - 1] < _MARKED:
            return b""
        entries = index.unwritten(self.flushed, self.seed_of_index, until)
        whole = self.closed and self.position and not self.dirty and self.end <= until
        if whole and index.sealed is None and not self.tail_bad:
            index.sealed = Mark(self.end, self.last_time, self.position)
            entries += encode_entry(SEAL, *index.sealed, self.seed_of_index)
        return entries

    def mark_end(self, until: int = MAX_ID) -> None:
        """The next recovery may begin at the end, or at `until`; for a clean stop, after the flush."""
        index = self.index
        if self.position and not self.closed and self.position not in index.positions[-1:]:
            index.add(self.end, self.last_time, self.position)
        entries = self.flushed_to(self.flushed, until)
        if until < self.end and not self.dirty:
            entries += encode_entry(END, self.end, self.last_time, self.position, self.seed_of_index)
        self.write_index(entries)

    def write_index(self, entries: bytes) -> None:
        """Add entries to the index file. What fails here costs the next start a longer look, and nothing else."""
        if not entries or self.doubtful:
            return
        try:
            file = self.disk.open(self.index_path, create=True)
            write_whole(self.disk.files, file.fd, entries, self.disk.files.size(file.fd) // ENTRY * ENTRY)
        except OSError:
            self.rebuild_later()

    def rebuild_later(self) -> None:
        """The index file is not to be trusted any more: the next recovery makes it anew."""
        self.disk.close(self.index_path)
        try:
            self.disk.files.unlink(self.index_path)
        except FileNotFoundError:
            pass
        except OSError:
            return
        self.index.written = 0

    @property
    def seed_of_index(self) -> int:
        return seed_of_index(self.first, self.seed)

    # --- reading

    def read(self, offset: int, size: int, *, now: bool = False) -> Block | None:
        """Whole batches from the one that holds `offset`, or the first one behind it; about `size` bytes, one at least.

        None at the end; with `now`, BlockingIOError where the device would have to be waited for.
        """
        if offset >= self.end:
            return None
        try:
            block = self._read_straight(offset, size, now)
            if block is None and now:
                raise BlockingIOError  # looking over damage takes as long as it takes
            return block or self._read_carefully(offset)
        except BlockingIOError:
            raise
        except OSError as error:
            raise log_error(error, f"reading {self.path}") from error

    def _bytes(self, position: int, size: int, now: bool) -> bytes | memoryview:
        size = min(size, self.position - position)
        fd = self.open().fd
        data = self.disk.files.read_now(fd, size, position) if now else self.disk.files.read(fd, size, position)
        if data is None:
            raise BlockingIOError
        return data

    def _read_straight(self, offset: int, size: int, now: bool) -> Block | None:
        """By headers to the batch, then by CRC; None where that does not lead to `offset`."""
        position = self._start(offset)
        wanted = max(size, STEP)
        while position < self.position:
            data = self._bytes(position, wanted, now)
            at = seek(data, 0, offset)
            length = length_at(data, at)
            if 0 < length <= len(data) - at:
                return self._good_block(data, at, offset, size, position)
            if length < 0 or (not at and length <= wanted):
                return None
            position += at
            wanted = max(wanted, length)
        return None

    def _start(self, offset: int) -> int:
        """Where to begin to look for the batch that holds `offset`."""
        position = self._hints.get(offset)
        if position is None:
            mark = self.index.before_offset(offset)
            position = mark.position if mark else 0
        return position

    def warm(self, work: Work, offset: int, size: int) -> None:
        """Add a step that reads the bytes at `offset` and drops them: the page cache has them then."""
        position = self._start(offset)
        file = self.open()
        file.pins += 1

        def unpin(_error: OSError | None = None) -> None:
            file.pins -= 1

        work.step(lambda: _drop(self.disk.files.read(file.fd, size + STEP, position)))
        work.then(unpin)
        work.otherwise(unpin)

    def _good_block(self, data: bytes | memoryview, at: int, offset: int, size: int, position: int) -> Block | None:
        head = header(data, at)
        stop, next_, last, _ = walk(data, at, self.seed, head.first, max(size, 1))
        if last < 0 or not head.first <= offset < head.next:
            return None
        if stop - at > size and last > at:  # the last one went beyond the size
            stop, next_ = last, header(data, last).first
        self._remember(next_, position + stop)
        return Block(head.first, next_, memoryview(data)[at:stop])

    def _remember(self, offset: int, position: int) -> None:
        if len(self._hints) >= _HINTS:
            self._hints.clear()
        self._hints[offset] = position

    def _read_carefully(self, offset: int) -> Block | None:
        """Batch by batch from a mark, each CRC checked, stepping over what is bad."""
        expected, _, position = self.index.before_offset(offset) or Mark(self.first, 0, 0)
        reader = Reader(self.disk.files, self.open().fd, self.position)
        while position < self.position:
            found = reader.batch(position, self.seed)
            reader.must_have_all()
            if found is None or found[0].first != expected:
                gap = self._gap_at(position, expected, reader)
                position, expected = gap.stop, gap.next
                continue
            head, data = found
            position += head.end
            expected = head.next
            if head.next > offset:
                self._remember(expected, position)
                return Block(head.first, head.next, data)
        return None

    def _gap_at(self, position: int, expected: int, reader: Reader) -> Gap:
        """The gap that begins at `position`: known, or found now and reported."""
        gap = self.index.gap_at(position)
        if gap is None:
            stop, next_ = find_good(reader, position, expected, self.seed) or (self.position, self.end)
            reader.must_have_all()
            gap = Gap(expected, next_, position, stop)
            self.index.gaps.append(gap)
            report(self.disk, self.path, reader, gap)
        return gap

    def reach(self, offset: int, size: int) -> tuple[int, int]:
        """Where a batch begins that is about `size` bytes behind `offset`, or the end; and how many are left then."""
        stop = self._start(offset) + size
        if stop >= self.position:
            return self.end, stop - self.position
        mark = self.index.before_position(stop)
        return max(offset, mark.offset if mark else self.first), 0

    def near(self, time: int) -> int:
        """The offset from which on `at_time` looks."""
        mark = self.index.before_time(time)
        return mark.offset if mark else self.first

    def at_time(self, time: int) -> int:
        """The first offset of the first batch appended at `time` or later; `end` where there is none."""
        offset = self.near(time)
        while block := self.read(offset, STEP):
            at = 0
            while at < len(block.data):
                head = header(block.data, at)
                if head.appended >= time:
                    return head.first
                at = head.end
            offset = block.next
        return self.end

    # --- recovery

    def recover(self) -> Tail:
        """Find what the file holds: by its seal, or by checking each batch behind the last flushed mark."""
        try:
            size = self.disk.files.size(self.open().fd)
            self._index, believed = self._load_index(size)
            tail = self._recover_sealed() or self._recover_open(self.open(), size)
        except OSError as error:
            raise log_error(error, f"recovering {self.path}") from error
        if believed < 0 and self.index.reach <= self.end:
            self.rebuild_later()
        return tail

    def _load_index(self, size: int) -> tuple[Index, int]:
        """The index in the file; -1 where more stands there than can be believed."""
        try:
            file = self.disk.open(self.index_path)
            data = self.disk.files.read(file.fd, self.disk.files.size(file.fd), 0)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EIO):
                raise
            return Index(), 0
        index, believed = decode(data, self.first, self.seed_of_index, size)
        return index, believed if believed == len(data) else -1

    def _recover_sealed(self) -> Tail | None:
        seal = self.index.sealed
        if seal is None:
            return None
        self.end, self.last_time, self.position = seal
        self.flushed, self.flushed_end = self.position, self.end
        self.first_time = self.index.times[0] if len(self.index) else 0
        self.closed = True
        return Tail(self.position, self.end, self.last_time, True)

    def _recover_open(self, file: OpenFile, size: int) -> Tail:
        index = self.index
        start = index.last() or Mark(self.first, 0, 0)
        reader = Reader(self.disk.files, file.fd, size)
        known = len(index.gaps)
        tail = scan(reader, start, self.seed, index, self.keyed)
        self.flushed, self.flushed_end = start.position, start.offset
        self.position, self.end, self.last_time = tail.position, tail.offset, tail.time
        self.first_time = index.times[0] if len(index) else 0
        self.doubtful = bool(reader.unreadable)
        for gap in index.gaps[known:]:
            report(self.disk, self.path, reader, gap)
        left = size > self.position
        if index.reach > self.end or not tail.torn or (left and (self.doubtful or self.disk.clean)):
            report(self.disk, self.path, reader, Gap(self.end, max(self.end, index.reach), self.position, size))
            self.tail_bad = self.closed = True
        elif left:
            self._cut(file)
        return tail


def _drop(_data: bytes) -> None:
    pass
