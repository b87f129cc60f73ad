"""What happens to bytes that should have been batches: a copy is set aside and somebody is told. Nothing is changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.errors import LogError
from penstock.log.disk import Damage
from penstock.log.files import write_whole
from penstock.log.scan import WINDOW, Reader

if TYPE_CHECKING:
    from penstock.log.disk import Disk
    from penstock.log.index import Gap

FOLDER = "damage"


def report(disk: Disk, path: str, reader: Reader, gap: Gap) -> None:
    """Copy the bad bytes to the folder `damage` beside the file and tell of them, once over all starts.

    A copy that fails is told of too, and tried again at the next start; of what the device does not give none is made.
    """
    copy = f"{os.path.basename(path)}-{gap.position}-{gap.stop - gap.position}.bad"
    copy = os.path.join(os.path.dirname(path), FOLDER, copy)
    if disk.files.exists(copy) or disk.knows(path, gap.position):
        return
    if reader.unreadable or not _set_aside(disk, copy, reader, gap):
        copy = ""
    disk.damaged(Damage(path, gap.position, gap.stop - gap.position, gap.first, gap.next, copy))


def _set_aside(disk: Disk, copy: str, reader: Reader, gap: Gap) -> bool:
    """Whether the copy could be made."""
    try:
        disk.ensure_directory(os.path.dirname(copy))
        _copy(disk, f"{copy}.partial", reader, gap)
        disk.files.rename(f"{copy}.partial", copy)  # it bears its name only when it is whole
    except (OSError, LogError):
        return False
    return True


def _copy(disk: Disk, path: str, reader: Reader, gap: Gap) -> None:
    fd = disk.files.open(path, create=True, truncate=True)
    try:
        for position in range(gap.position, gap.stop, WINDOW):
            part = reader.read(position, min(WINDOW, gap.stop - position))
            write_whole(disk.files, fd, part, position - gap.position)
    finally:
        disk.files.close(fd)
