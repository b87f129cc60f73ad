"""Index files held against the batches of their segment, and made anew from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.log.files import replace
from penstock.log.index import ENTRY, SEAL, Gap, Index, Mark, decode, encode_entry, seed_of_index
from penstock.log.scan import scan
from penstock.log.tools.looking import opened, read_file
from penstock.protocol.batch import first_at, header

if TYPE_CHECKING:
    from penstock.log.files import Files
    from penstock.log.tools.looking import End, Run

SUFFIX: Final = ".index"

_ANY_SIZE: Final = 1 << 62


def index_path(segment: str) -> str:
    return segment.removesuffix(".log") + SUFFIX


class IndexCheck:
    """What an index file says, beside the batches as they come by. Made before the segment is looked at: all that a
    running node had marked by then is there to be found."""

    def __init__(self, files: Files, segment: str, first: int, seed: int) -> None:
        data = read_file(files, index_path(segment))
        self.missing = data is None
        data = (data or b"")[: len(data or b"") // ENTRY * ENTRY]  # one more may be being written
        self.index, believed = decode(data, first, seed_of_index(first, seed), _ANY_SIZE)
        self.damaged = believed < len(data)
        self.wrong = False  # it says what the batches do not
        self._next = 0
        self._time = 0  # of the last good batch before the run

    @property
    def reach(self) -> int:
        """The offset up to which it knows of batches."""
        last = self.index.sealed or self.index.last()
        return last.offset if last else 0

    def run(self, run: Run) -> None:
        """These are good batches."""
        positions = self.index.positions
        while self._next < len(positions) and positions[self._next] < run.stop:
            mark = self.index.at(self._next)
            if mark.position >= run.position and not self._stands(mark, run):
                self.wrong = True
            self._next += 1
        self._time = run.time

    def _stands(self, mark: Mark, run: Run) -> bool:
        """A mark that was made at the end of the file, by a clean stop, has the time of the batch before it."""
        at = mark.position - run.position
        try:
            head = header(run.data, at)
        except ValueError:
            return False
        if head.first != mark.offset or mark.time > head.appended:
            return False
        return mark.time == head.appended or mark.time >= self._time_before(at, run)

    def _time_before(self, at: int, run: Run) -> int:
        time = self._time
        position = 0
        while position < at:
            head = header(run.data, position)
            time, position = head.appended, head.end
        return time

    def end(self, tail: End, gaps: list[Gap]) -> int:
        """The file ends so, and is bad there; up to which offset it once went."""
        ends = [self.index.at(number) for number in range(self._next, len(self.index))]
        sealed = self.index.sealed
        if sealed is not None:
            ends.append(sealed)
            self.wrong |= sealed.position < tail.position
        self.wrong |= any(mark.position == tail.position and mark.offset != tail.offset for mark in ends)
        found = {(gap.position, gap.stop) for gap in gaps}
        self.wrong |= any((gap.position, gap.stop) not in found for gap in self.index.gaps)
        return max((mark.offset for mark in ends if mark.position > tail.position), default=tail.offset)

    @property
    def state(self) -> str:
        if self.missing:
            return "missing"
        if self.damaged:
            return "damaged"
        return "wrong" if self.wrong else "good"


def is_sealed(data: bytes, first: int, seed: int) -> bool:
    """Whether the index says that its segment is closed, and all that it holds noted."""
    index, _ = decode(data, first, seed_of_index(first, seed), _ANY_SIZE)
    return index.sealed is not None


def make(files: Files, segment: str, first: int, seed: int, sealed: bool) -> bytes:
    """What the index of the segment has to hold, every CRC checked; `sealed` where another one follows it.

    No mark stands behind a batch with a key: a start has to find it, if it is noted nowhere else.
    """
    index = Index()
    keyed: list[bytes] = []
    with opened(files, segment) as reader:
        tail = scan(reader, Mark(first, 0, 0), seed, index, keyed)
    own = seed_of_index(first, seed)
    if keyed:
        mark = index.before_offset(first_at(keyed[0], 0))
        index.cut(mark.position if mark else 0)
        return index.unwritten(tail.position, own)
    if sealed and tail.torn:
        return index.unwritten(tail.position, own) + encode_entry(SEAL, tail.offset, tail.time, tail.position, own)
    if tail.position > index.positions[-1]:
        index.add(tail.offset, tail.time, tail.position)
    return index.unwritten(tail.position, own)


def write(files: Files, segment: str, entries: bytes) -> None:
    """Flushes the segment first, since a mark says that what lies before it is on the device."""
    fd = files.open(segment)
    try:
        files.flush(fd)
    finally:
        files.close(fd)
    replace(files, index_path(segment), entries)
