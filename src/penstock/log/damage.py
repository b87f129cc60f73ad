"""What happens to bytes that should have been batches: a copy is set aside and somebody is told. Nothing is changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.log.disk import Damage
from penstock.log.files import write_whole
from penstock.log.scan import WINDOW, Reader

if TYPE_CHECKING:
    from penstock.log.disk import Disk
    from penstock.log.index import Gap

FOLDER = "damage"


def report(disk: Disk, path: str, reader: Reader, gap: Gap) -> None:
    """Copy the bad bytes to the folder `damage` beside the file and tell of them; a copy that fails is told of too."""
    try:
        copy = _set_aside(disk, path, reader, gap)
    except OSError:
        copy = ""
    disk.damaged(Damage(path, gap.position, gap.stop - gap.position, gap.first, gap.next, copy))


def _set_aside(disk: Disk, path: str, reader: Reader, gap: Gap) -> str:
    folder = os.path.join(os.path.dirname(path), FOLDER)
    copy = os.path.join(folder, f"{os.path.basename(path)}-{gap.position}-{gap.stop - gap.position}.bad")
    if disk.files.exists(copy):
        return copy
    disk.ensure_directory(folder)
    fd = disk.files.open(copy, create=True, truncate=True)
    try:
        for position in range(gap.position, gap.stop, WINDOW):
            part = reader.read(position, min(WINDOW, gap.stop - position))
            write_whole(disk.files, fd, part, position - gap.position)
    finally:
        disk.files.close(fd)
    return copy
