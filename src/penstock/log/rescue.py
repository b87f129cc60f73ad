"""After a failed flush: what was not flushed, copied to new files and flushed there. Knows a chain's segments.

Linux tells of a failed flush once and then calls the lost bytes clean, so the same file is never flushed again. For
each segment, oldest first, the part behind its last flushed byte is copied under a name that recovery ignores, flushed
and renamed to its first offset: in place of the segment where nothing of it was flushed, else beside it, where the
newer file is the one that is read. Each step leaves a log that recovers.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from penstock.log.chain import SUFFIX
from penstock.log.files import write_whole
from penstock.log.scan import WINDOW, Reader

if TYPE_CHECKING:
    from penstock.log.chain import Chain
    from penstock.log.disk import OpenFile
    from penstock.log.segment import Segment

RESCUED = ".rescue"


class _Part:
    """What of one segment was not flushed."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.file: OpenFile = segment.open()
        self.file.pins += 1
        self.start = segment.flushed
        self.stop = segment.position
        self.first: int | None = None  # offset of the first batch copied; None where there is none
        self.first_time = 0
        self.gaps = {gap.position: gap.stop for gap in segment.index.gaps}


class Rescue:
    """Made and adopted where the log lives; `copy` runs on a thread."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._parts = [_Part(segment) for segment in chain.dirty()]

    def copy(self) -> None:
        files = self._chain.disk.files
        for part in self._parts:
            self._copy_part(part)
        files.flush_directory(self._chain.directory)

    def _copy_part(self, part: _Part) -> None:
        files = self._chain.disk.files
        reader = Reader(files, part.file.fd, part.stop)
        partial = part.segment.path.removesuffix(SUFFIX) + RESCUED
        fd = files.open(partial, create=True, truncate=True)
        try:
            part.first = None
            position = part.start
            while position < part.stop:
                position = self._copy_batch(part, reader, fd, position)
            files.flush(fd)
        finally:
            files.close(fd)
        if part.first is None:  # nothing but damage
            files.unlink(partial)
        else:
            files.rename(partial, self._chain.segment(part.first).path)

    def _copy_batch(self, part: _Part, reader: Reader, fd: int, position: int) -> int:
        """Copy what begins at `position`, a good batch or known damage; where that ends."""
        if (stop := part.gaps.get(position)) is not None and stop > position:
            for at in range(position, stop, WINDOW):
                data = reader.read(at, min(WINDOW, stop - at))
                write_whole(self._chain.disk.files, fd, data, at - part.start)
            return stop
        found = reader.batch(position, part.segment.seed)
        if found is None:
            raise OSError(errno.EIO, "what was not flushed cannot be read back either")
        head, data = found
        write_whole(self._chain.disk.files, fd, data, position - part.start)
        if part.first is None:
            part.first, part.first_time = head.first, head.appended
        return position + len(data)

    def adopt(self) -> None:
        """The new files take the place of what was not flushed; nothing is read for that, so nothing can fail."""
        chain = self._chain
        for part in self._parts:
            self._let_go(part)
            chain.disk.close(part.segment.path)
            if part.first is None:
                part.segment.flushed_to(part.stop)
                continue
            if part.first == part.segment.first:
                part.segment.rebuild_later()
            new = chain.segment(part.first)
            new.take_over(part.segment, part.start, part.first_time)
            part.segment.cut_at(part.first, part.start, part.first_time)
            chain.replace(part.segment, new)

    def give_up(self) -> None:
        """It will be tried again, with a copy of its own."""
        for part in self._parts:
            self._let_go(part)

    def _let_go(self, part: _Part) -> None:
        part.file.pins -= 1
