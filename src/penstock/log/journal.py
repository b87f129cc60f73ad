"""The node's journal: entries written a block at a time, replayed at start, compacted in slices. Knows no topic.

    <ordinal of its first entry, 20 digits>.log      a segment whose batches are blocks of entries; see entries.py

    slicing --all said--> said --flushed--> safe --"complete" written--> complete --flushed--> the older files go
       any of them --a flush fails, or the file takes no more--> another file begins; compaction has to begin again

Rules
- A block is replayed whole or not at all: what belongs together goes into one `append`.
- What comes in goes to the last file, also while that is made whole by a compaction: each slice says anew how some
  things are, in whatever the files before say of them. Until the last file is complete all are replayed, in order;
  then it alone is.
- A block says that the file is complete when every slice is on the device, never before.
- A file whose flush failed is not flushed again. Another one begins, and nothing counts as flushed until that is
  complete. So it is, too, where a start finds several files or damage, or follows a kill: a flush may have failed then.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from penstock.errors import CorruptLog, DataPathError, FlushFailed, LogError, TooLarge, log_error
from penstock.log.entries import Complete, Entry, decode, encode
from penstock.log.scan import Reader
from penstock.log.segment import Segment
from penstock.log.work import Work
from penstock.protocol import batch

if TYPE_CHECKING:
    from penstock.log.disk import Disk, OpenFile

SEED: Final = 0x4A524E4C
MAX_BLOCK: Final = 64 << 20
SUFFIX: Final = ".log"
_SIZE: Final = struct.Struct(">Q")  # the key of the block that says "complete": the bytes before it

Source: TypeAlias = Callable[[Any], tuple[Sequence[Entry], Any]]
"""Entries that say from a mark on how things are now, a few milliseconds' worth, and the mark behind them.

Begins with None and ends with None. Asked again for a mark whose entries could not be written.
"""


class _Phase(Enum):
    SLICING = "slices are missing"
    SAID = "all slices are written"
    SAFE = "all slices are flushed"
    COMPLETE = "the file says so"


class _Compaction:
    """Of the last file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.mark: Any = None
        self.phase = _Phase.SLICING
        self.size = 0  # bytes of the file when it was complete


class Journal:
    """Entries in the files of one directory, oldest first."""

    def __init__(
        self, disk: Disk, directory: str, *, seed: int = SEED, floor: int = 8 << 20, killed: bool = False
    ) -> None:
        """Recover what is there; below `floor` bytes no compaction is wanted, but where its last owner was killed."""
        self.disk = disk
        self.directory = directory
        self.failed: FlushFailed | None = None  # why nothing counts as flushed until a compaction is through
        self._seed = seed
        self._floor = floor
        self.damaged = False  # entries are gone that were on the device: no power cut explains that
        self._whole = True  # what is in the files counts as soon as it is flushed
        self._kept = 0  # bytes of the last file when it was complete
        self._compaction: _Compaction | None = None
        self._working = False
        self._obsolete: list[Segment] = []  # files before one that is complete
        self._doomed: list[Segment] = []  # and is so on the device
        self._unsure = [directory.rpartition("/")[0] or "/", directory]  # whose names a power cut could still take
        disk.ensure_directory(directory)
        self._segments = self._recover() or [self._segment(0)]
        self._whole = self._whole and not killed
        self.flushed = 0  # entries below this ordinal are on the device

    # --- opening

    def _segment(self, first: int) -> Segment:
        return Segment(self.disk, self.directory, first, self._seed)

    def _recover(self) -> list[Segment]:
        try:
            names = sorted(name for name, folder in self.disk.files.list(self.directory) if not folder)
        except OSError as error:
            raise log_error(error, f"listing {self.directory}") from error
        segments = [
            self._segment(int(name[:20]))
            for name in names
            if len(name) == 24 and name.endswith(SUFFIX) and name[:20].isdigit()
        ]
        for number in range(len(segments) - 1, -1, -1):
            segment = segments[number]
            segment.recover()
            self._whole = self._whole and not (segment.tail_bad or segment.doubtful or segment.index.gaps)
            if segment.keyed:  # "complete"
                self._kept = _SIZE.unpack(segment.keyed[-1][-_SIZE.size :])[0]
                self._obsolete = segments[:number]
                del segments[:number]
                break
        self._whole = self._whole and len(segments) < 2
        gaps = (gap.position for segment in segments for gap in segment.index.gaps)
        self.damaged = any(position < self._kept for position in gaps)
        return segments

    def replay(self) -> Iterator[Entry]:
        """Every entry that counts, in the order in which they were written."""
        for segment in self._segments:
            for block in self._blocks(segment):
                try:
                    yield from decode(block)
                except (CorruptLog, DataPathError) as error:
                    raise type(error)(f"{segment.path}: {error}") from error

    def _blocks(self, segment: Segment) -> Iterator[memoryview]:
        """The payloads of a file, over the gaps that recovery found."""
        if not segment.position:
            return
        gaps = {gap.position: gap.stop for gap in segment.index.gaps}
        reader = Reader(self.disk.files, segment.open().fd, segment.position)
        position = 0
        while position < segment.position:
            if position in gaps:
                position = gaps[position]
                continue
            found = reader.batch(position, self._seed)
            if found is None:
                raise CorruptLog(f"{segment.path} is damaged at byte {position} since it was opened")
            head, data = found
            position += head.end
            yield memoryview(data)[head.payload :]

    # --- writing

    @property
    def end(self) -> int:
        """The ordinal of the next entry."""
        return self._segments[-1].end

    @property
    def size(self) -> int:
        return sum(segment.position for segment in self._segments)

    def append(self, entries: Sequence[Entry], now: int) -> int:
        """Write the entries as one block, all or none; the ordinal behind them, which `flushed` reaches.

        After an error the same entries may be appended again.
        """
        if entries:
            self._roll_if_closed()
            self._write(entries, now)
        return self.end

    def _write(self, entries: Sequence[Entry], now: int, *, key: bytes = b"") -> None:
        payload = encode(entries)
        if len(payload) > MAX_BLOCK:
            raise TooLarge(f"{len(payload)} bytes are more than one block of the journal can hold")
        segment = self._segments[-1]
        if not segment.position and self.directory not in self._unsure:
            self._unsure.append(self.directory)
        flags = batch.KEYED if key else 0
        block = batch.encode(segment.end, len(entries), now, payload, self._seed, flags=flags, key=key)
        segment.append(block, len(entries), now)

    def _roll_if_closed(self) -> None:
        if self._segments[-1].closed:
            self._begin_file()

    def _begin_file(self) -> None:
        last = self._segments[-1]
        last.closed = True
        self._compaction = None
        self._segments.append(self._segment(max(last.end, last.first + 1)))

    # --- compaction

    @property
    def wants_compaction(self) -> bool:
        """Half of what a start would replay is out of date, or nothing counts as flushed without one."""
        if self.compacting:
            return False
        return not self._whole or self.size >= max(self._floor, 2 * self._kept)

    @property
    def compacting(self) -> bool:
        return self._compaction is not None

    @property
    def wants_slice(self) -> bool:
        return self._compaction is not None and self._compaction.phase is _Phase.SLICING

    def compact(self, source: Source) -> None:
        """Begin a file that will hold everything, told by `source` slice by slice; gives up one that is under way."""
        if self._segments[-1].position or self._segments[-1].closed:
            self._begin_file()
        self._compaction = _Compaction(source)

    def write_slice(self, now: int) -> bool:
        """Write the next slice, if one is missing; whether another one is. After an error the same one is next."""
        self._roll_if_closed()
        compaction = self._compaction
        if compaction is None or compaction.phase is not _Phase.SLICING:
            return False
        entries, mark = compaction.source(compaction.mark)
        if entries:
            self._write(entries, now)
        compaction.mark = mark
        if mark is None:
            compaction.phase = _Phase.SAID
        return mark is not None

    def _say_complete(self) -> None:
        self._roll_if_closed()
        compaction = self._compaction
        if compaction is None or compaction.phase is not _Phase.SAFE:
            return
        segment = self._segments[-1]
        with contextlib.suppress(LogError):  # the next flush tries again
            self._write([Complete()], segment.last_time, key=_SIZE.pack(segment.position))
            compaction.size = segment.position
            compaction.phase = _Phase.COMPLETE

    # --- flushing

    @property
    def wants_flush(self) -> bool:
        """There is something that `flush_work` would do."""
        moving = self._compaction is not None and self._compaction.phase is not _Phase.SLICING
        return bool(self._doomed) or moving or any(segment.dirty for segment in self._to_flush())

    def flush_work(self) -> Work | None:
        """What a thread has to do: flush what is written, or remove what is obsolete. None while one is under way."""
        if self._working:
            return None
        if self._doomed:
            work = self._removal()
        else:
            self._say_complete()
            work = self._flush()
        if not work:
            work()
            return None
        self._working = True
        return work

    def _to_flush(self) -> list[Segment]:
        return self._segments if self._whole else self._segments[-1:]

    def _flush(self) -> Work:
        work = Work()
        work.then(self._worked)
        work.otherwise(self._flush_failed)
        if dirty := [segment for segment in self._to_flush() if segment.dirty]:
            self._flush_segments(work, dirty)
            self._flush_names(work)
        end, compaction = self.end, self._compaction
        phase = compaction.phase if compaction else None
        work.then(lambda: self._flushed_to(end, compaction, phase))
        return work

    def _worked(self) -> None:
        self._working = False

    def _flush_segments(self, work: Work, segments: list[Segment]) -> None:
        positions = [segment.position for segment in segments]
        files: list[OpenFile] = []

        def unpin() -> None:
            for file in files:
                file.pins -= 1

        def done() -> None:
            for segment, position in zip(segments, positions, strict=True):
                segment.flushed_to(position)

        try:
            for segment in segments:
                files.append(segment.open())
                files[-1].pins += 1
        except LogError:
            unpin()
            raise
        for file in files:
            work.step(partial(self.disk.flush, file))
        work.then(unpin)
        work.then(done)
        work.otherwise(lambda _error: unpin())

    def _flush_names(self, work: Work) -> None:
        unsure, self._unsure = self._unsure, []
        for directory in unsure:
            work.step(partial(self.disk.files.flush_directory, directory))
        work.otherwise(lambda _error: self._unsure.extend(unsure))

    def _flushed_to(self, end: int, compaction: _Compaction | None, phase: _Phase | None) -> None:
        """All up to `end` is on the device, and so is what the compaction had then written, unless it was given up."""
        if compaction is not None and compaction is self._compaction:
            if phase is _Phase.SAID:
                compaction.phase = _Phase.SAFE
            elif phase is _Phase.COMPLETE:
                self._completed(compaction)
        if self._whole:
            self.flushed = max(self.flushed, end)
            self._doomed, self._obsolete = self._obsolete, []

    def _completed(self, compaction: _Compaction) -> None:
        self._obsolete += self._segments[:-1]
        del self._segments[:-1]
        self._kept = compaction.size
        self._compaction = None
        self._whole = True
        self.failed = None

    def _flush_failed(self, error: OSError) -> None:
        self._working = False
        self._whole = False
        self.failed = FlushFailed(f"flushing {self.directory}: {error.strerror or error}")
        self._begin_file()

    def _removal(self) -> Work:
        """What fails here is left to the next start."""
        doomed, self._doomed = self._doomed, []
        work = Work()
        for segment in doomed:
            with contextlib.suppress(OSError):
                self.disk.close(segment.path)
            work.step(partial(self._remove, segment.path))
        work.step(partial(self.disk.files.flush_directory, self.directory))
        work.then(self._worked)
        work.otherwise(lambda _error: self._worked())
        return work

    def _remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.disk.files.unlink(path)
