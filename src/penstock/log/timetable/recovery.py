"""Finding the buckets in a timetable's folder, and what of them was moved. Knows files and keys; knows no log."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from penstock.errors import log_error
from penstock.log.timetable.bucket import Bucket, Home, Name, parse, unlink
from penstock.log.timetable.notes import key_of
from penstock.log.timetable.run import unpack
from penstock.protocol.batch import MOVED, first_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Found:
    """What stands in the folder; files that mean nothing are removed."""

    def __init__(self, home: Home) -> None:
        self.exists = False  # the folder
        self.serial = 0  # the highest one in any name
        self._home = home
        self._files: dict[Name, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._litter: list[str] = []
        self._doubtful = False  # a bucket has ended, or one began to count, and that may not be flushed

    def buckets(self) -> list[Bucket]:
        """Every bucket that counts, recovered, with what its notes say is moved."""
        try:
            self.exists = self._home.disk.files.exists(self._home.directory)
            if not self.exists:
                return []
            self._list()
            self._drop_what_does_not_count()
            buckets = [self._recover(name, self._files[name]) for name in sorted(self._files)]
            self._clean()
        except OSError as error:
            raise log_error(error, f"recovering {self._home.directory}") from error
        return [bucket for bucket in buckets if bucket]

    def _list(self) -> None:
        for file, folder in self._home.disk.files.list(self._home.directory):
            found = parse(file)
            if folder or found is None:
                continue
            name, number, kind = found
            self._files[name][kind].append(number)
            self.serial = max(self.serial, name.serial)

    def _drop_what_does_not_count(self) -> None:
        alive = {name.serial for name, files in self._files.items() if 0 in files["log"]}
        for name in list(self._files):
            files = self._files[name]
            self._doubtful |= name.serial not in alive or name.parent > 0
            if name.serial not in alive or name.parent in alive:
                self._drop(name)
            elif "rescue" in files:
                self._litter += [self._path(name, number, "rescue") for number in files["rescue"]]

    def _clean(self) -> None:
        """Nothing goes that would be missed if a power cut brought back a bucket, nor stays to count one day."""
        files, directory = self._home.disk.files, self._home.directory
        if self._doubtful:
            files.flush_directory(directory)
        unlink(files, self._litter)
        if self._doubtful:
            files.flush_directory(directory)

    def _drop(self, name: Name) -> None:
        files = self._files.pop(name)
        self._litter += [self._path(name, number, kind) for kind in files for number in files[kind]]

    def _path(self, name: Name, number: int, kind: str) -> str:
        digits = 6 if kind == "moved" else 20
        return f"{self._home.directory}/{name.prefix}{number:0{digits}d}.{kind}"

    def _recover(self, name: Name, files: dict[str, list[int]]) -> Bucket | None:
        bucket = Bucket(self._home, name)
        notes = bucket.notes.read(self._home.disk, sorted(files["moved"]))
        bucket.recover(sorted(files["log"]))
        if not bucket.end:
            bucket.end_it()
            self._drop(name)
            return None
        for key in notes:
            bucket.mark_moved(unpack(key)[1])
        return bucket


def is_moved(head: bytes) -> bool:
    """Whether the batch of this header came from a timetable."""
    return bool(int.from_bytes(head[32:36], "big") & MOVED)


def moved_keys(headers: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Offset and key of the batches that were moved into a log, of all that recovery found published under a key."""
    for head in headers:
        if is_moved(head):
            yield first_at(head, 0), key_of(head)
