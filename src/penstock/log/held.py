"""Stragglers: records copied out of segments that were released, until they are finished too. Knows one topic's folder.

    held/<ordinal, 20 digits>.log      the records as they were, with their ids, numbered in the order they were copied

Which of them are still wanted is the broker's to say (`keep`): the files only hold them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Final

from penstock.log.chain import Chain, unlink_steps
from penstock.log.segment import Block
from penstock.log.work import Work
from penstock.protocol.batch import RECORD, Record, encode, put_record, records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.log.birth import Birth
    from penstock.log.disk import Disk
    from penstock.log.segment import Segment

FOLDER: Final = "held"
SALT: Final = 0x48454C44
_FILE: Final = 16 << 20
_BATCH: Final = 1 << 20  # bytes of bodies in a batch, about


class Held:
    """Records by offset, below a log's earliest."""

    __slots__ = (
        "_chain", "_changed", "_disk", "_doomed", "_folder", "_folder_unsure", "_next", "_offsets", "_ordinals",
        "_unsafe", "birth",
    )  # fmt: skip

    def __init__(self, disk: Disk, directory: str, birth: Birth) -> None:
        self.birth = birth
        self._disk = disk
        self._folder = f"{directory}/{FOLDER}"
        self._folder_unsure = False  # a power cut could still take its name
        self._chain: Chain | None = None
        self._next = 0
        self._ordinals: dict[int, int] = {}  # offset -> ordinal
        self._offsets: list[int] = []  # the same offsets, in order
        self._changed = False  # what is wanted, since the files were last gone through
        self._unsafe = False  # a flush failed: all is to be copied to a new file
        self._doomed: list[Segment] = []  # nothing of theirs is wanted, their files are still there

    def __len__(self) -> int:
        return len(self._ordinals)

    def __contains__(self, offset: int) -> bool:
        return offset in self._ordinals

    def between(self, first: int, next_: int) -> list[int]:
        """The offsets in `[first, next_)`."""
        return self._offsets[bisect_left(self._offsets, first) : bisect_left(self._offsets, next_)]

    def _files(self) -> Chain:
        if self._chain is None:
            self._chain = Chain(self._disk, self._folder, self.birth.seed ^ SALT, _FILE)
        return self._chain

    def recover(self) -> None:
        if not self._disk.files.exists(self._folder):
            return
        chain = self._files()
        chain.recover(0)
        ordinal = 0
        while block := chain.read(ordinal, 1 << 20):
            for record in records(block.data):
                self._note(int(record.id, 16) - self.birth.base, record.offset)
            ordinal = block.next
        if chain.segments:
            last = chain.segments[-1]
            # a file of its own, not the one with the bad end, nor an empty one that is to be removed
            self._next = max(last.end + last.tail_bad, last.first + 1)
        chain.roll()
        self._changed = self._folder_unsure = True

    def _note(self, offset: int, ordinal: int) -> None:
        if offset not in self._ordinals:
            insort(self._offsets, offset)
        self._ordinals[offset] = ordinal

    def put(self, found: Iterable[Record], time: int) -> None:
        """Copy records here; they are safe after the next `work`."""
        part: list[Record] = []
        size = 0
        for record in found:
            part.append(record)
            size += len(record.body)
            if size >= _BATCH:
                self._put_batch(part, time)
                part, size = [], 0
        if part:
            self._put_batch(part, time)

    def _put_batch(self, found: list[Record], time: int) -> None:
        chain = self._files()
        self._folder_unsure |= self._disk.ensure_directory(self._folder)
        batch = encode(self._next, len(found), time, self._payload(found), chain.seed)
        chain.append(batch, self._next, len(found), time)
        for ordinal, record in enumerate(found, self._next):
            self._note(record.offset, ordinal)
        self._next += len(found)
        self._changed = True

    def keep(self, wanted: Iterable[int]) -> None:
        """Forget all but these offsets."""
        kept = set(wanted) & self._ordinals.keys()
        if len(kept) < len(self._ordinals):
            self._ordinals = {offset: self._ordinals[offset] for offset in kept}
            self._offsets = sorted(kept)
            self._changed = True

    def work(self, time: int) -> Work | None:
        """Flush what is not flushed, and delete the files that hold nothing wanted."""
        chain = self._chain
        if chain is None:
            return None
        if self._unsafe:
            chain.roll()
            self._copy(self._offsets, time)
            self._unsafe = False
        if self._changed:
            self._changed = self._gather(chain, time)
            self._doomed += chain.drop(min(self._ordinals.values(), default=self._next))
            if not self._ordinals:
                self._doomed += chain.segments
                self._chain = chain = None
        work = Work()
        if chain is not None:
            chain.flush(work)
            work.otherwise(self._flush_failed)
            if self._folder_unsure:
                work.step(lambda: self._disk.files.flush_directory(self._folder.rpartition("/")[0]))
                work.then(self._folder_flushed)
        doomed, self._doomed = self._doomed, []
        unlink_steps(work, self._disk, doomed)
        work.otherwise(lambda _error: self._doomed.extend(doomed))
        return work or None

    def _gather(self, chain: Chain, time: int) -> bool:
        """Where most of all files is not wanted, copy what is of the oldest behind the newest, so that it can go.

        Otherwise a few would keep everything that came after them. One file at a time: whether there is more to do.
        """
        if len(chain.segments) < 3 or 2 * len(self) > self._next - chain.segments[0].first:
            return False
        oldest = chain.segments[0]
        self._copy([offset for offset, ordinal in self._ordinals.items() if ordinal < oldest.end], time)
        return True

    def _flush_failed(self, _error: OSError) -> None:
        self._unsafe = self._changed = True

    def _folder_flushed(self) -> None:
        self._folder_unsure = False

    def _copy(self, offsets: list[int], time: int) -> None:
        self.put((record for offset in sorted(offsets) if (record := self._record(offset))), time)

    def read(self, offset: int, size: int) -> Block | None:
        """A batch of the first run of neighbours from `offset` on, made from their records; None above the last."""
        run: list[Record] = []
        room = size
        for at in self._offsets[bisect_left(self._offsets, offset) :]:
            if run and (at != run[-1].offset + 1 or room <= 0):
                break
            if record := self._record(at):
                run.append(record)
                room -= len(record.body)
        if not run:
            return None
        first = run[0].offset
        return Block(first, first + len(run), encode(first, len(run), 0, self._payload(run), self.birth.seed))

    def close(self) -> None:
        for segment in [*self._doomed, *(self._chain.segments if self._chain else [])]:
            self._disk.close(segment.path)
            self._disk.close(segment.index_path)

    def _record(self, offset: int) -> Record | None:
        """As it was in the log; None where its file is damaged."""
        ordinal = self._ordinals[offset]
        block = self._files().read(ordinal, 1)
        found = next((r for r in records(block.data) if r.offset == ordinal), None) if block else None
        return found._replace(offset=offset) if found else None

    def _payload(self, found: list[Record]) -> bytearray:
        payload = bytearray(sum(RECORD + len(record.body) for record in found))
        at = 0
        for record in found:
            id_value = self.birth.base + record.offset
            at = put_record(payload, at, record.body, record.timestamp, id_value, record.attempts)
        return payload
