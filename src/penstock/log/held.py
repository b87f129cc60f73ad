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

FOLDER: Final = "held"
SALT: Final = 0x48454C44
_FILE: Final = 16 << 20


class Held:
    """Records by offset, below a log's earliest."""

    __slots__ = ("_chain", "_disk", "_folder", "_next", "_offsets", "_ordinals", "birth")

    def __init__(self, disk: Disk, directory: str, birth: Birth) -> None:
        self.birth = birth
        self._disk = disk
        self._folder = f"{directory}/{FOLDER}"
        self._chain: Chain | None = None
        self._next = 0
        self._ordinals: dict[int, int] = {}  # offset -> ordinal
        self._offsets: list[int] = []  # the same offsets, in order

    def __len__(self) -> int:
        return len(self._ordinals)

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
        self._next = chain.segments[-1].end if chain.segments else 0
        chain.roll()

    def _note(self, offset: int, ordinal: int) -> None:
        if offset not in self._ordinals:
            insort(self._offsets, offset)
        self._ordinals[offset] = ordinal

    def put(self, found: list[Record], time: int) -> None:
        """Copy records here; they are safe after the next flush."""
        if self._disk.ensure_directory(self._folder):
            self._files().directory_dirty = True
        chain = self._files()
        batch = encode(self._next, len(found), time, self._payload(found), chain.seed)
        chain.append(batch, self._next, len(found), time)
        for ordinal, record in enumerate(found, self._next):
            self._note(record.offset, ordinal)
        self._next += len(found)

    def keep(self, wanted: Iterable[int]) -> None:
        """Forget all but these offsets."""
        kept = set(wanted) & self._ordinals.keys()
        if len(kept) < len(self._ordinals):
            self._ordinals = {offset: self._ordinals[offset] for offset in kept}
            self._offsets = sorted(kept)

    def work(self, time: int) -> Work | None:
        """Flush what is not flushed, and delete the files that hold nothing wanted."""
        chain = self._chain
        if chain is None:
            return None
        self._gather(chain, time)
        work = Work()
        chain.flush(work)
        work.otherwise(lambda _error: self._again(time))
        dropped = chain.drop(min(self._ordinals.values(), default=self._next))
        if not self._ordinals:
            dropped += chain.segments
            self._chain = None
            work = Work()
        unlink_steps(work, self._disk, dropped)
        return work or None

    def _gather(self, chain: Chain, time: int) -> None:
        """Copy the few that are wanted of the oldest file behind the newest, so that one alone keeps no others."""
        if len(chain.segments) < 3:
            return
        oldest = chain.segments[0]
        wanted = [offset for offset, ordinal in self._ordinals.items() if ordinal < oldest.end]
        self._copy(wanted, time)

    def _again(self, time: int) -> None:
        """The flush failed: to a new file with all of them."""
        if self._chain is not None:
            self._chain.roll()
            self._copy(list(self._ordinals), time)

    def _copy(self, offsets: list[int], time: int) -> None:
        found = [record for offset in sorted(offsets) if (record := self._record(offset))]
        if found:
            self.put(found, time)

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
        if self._chain is not None:
            self._chain.close()

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
