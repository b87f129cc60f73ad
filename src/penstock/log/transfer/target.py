"""A folder that becomes a data path when an import is whole, and not before. Knows names; knows no topic.

    importing/       what is being built: a data path of its own
    journal/         moved up from there when all of it is on the device, counted and right,
    topics/          and node.json as the last: what has that is a data path
    node.json

While `importing` is there and node.json is not, nothing starts on the folder; a new import clears it and begins again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.errors import DataPathError, log_error
from penstock.log.data_path import IMPORTING, JOURNAL, NODE, TOPICS

if TYPE_CHECKING:
    from types import TracebackType

    from penstock.log.files import Files

_IGNORED: Final = {"lost+found"}  # on the root of a file system


class Target:
    """The folder, locked: use it with `with`, build in `building`, and `publish` it inside, else all is taken away."""

    def __init__(self, files: Files, path: str) -> None:
        self.path = path = os.path.abspath(path)
        self.building = f"{path}/{IMPORTING}"
        self._files = files
        self._made = False
        self._published = False
        self._lock = -1
        try:
            self._take()
        except BlockingIOError as error:
            raise DataPathError(f"{path} is in use by another process") from error
        except OSError as error:
            self._give_back()
            raise log_error(error, f"making {path}") from error
        except BaseException:
            self._give_back()
            raise

    def publish(self) -> None:
        """What was built is the data path, also after a power cut, when this returns."""
        files = self._files
        try:
            for name in (JOURNAL, TOPICS):
                files.rename(f"{self.building}/{name}", f"{self.path}/{name}")
            files.flush_directory(self.building)
            files.flush_directory(self.path)
            files.rename(f"{self.building}/{NODE}", f"{self.path}/{NODE}")
            files.flush_directory(self.path)
        except OSError as error:
            raise log_error(error, f"finishing {self.path}") from error
        self._published = True
        with suppress(OSError):  # nothing is in it, and nobody minds it
            files.remove_directory(self.building)

    def __enter__(self) -> Target:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._published:
            with suppress(OSError):
                self._clear()
        self._give_back()

    def _take(self) -> None:
        files = self._files
        if not files.exists(self.path):
            files.make_directory(self.path)
            self._made = True
            files.flush_directory(os.path.dirname(self.path))
        self._lock = files.lock_directory(self.path)
        names = {name for name, _ in files.list(self.path)} - _IGNORED
        if NODE in names:
            raise DataPathError(f"{self.path} is a data path already: an import needs a new one")
        if IMPORTING in names:
            names -= {IMPORTING, JOURNAL, TOPICS}
        if names:
            raise DataPathError(f"{self.path} is not empty ({min(names)})")
        self._clear()
        files.make_directory(self.building)
        files.flush_directory(self.path)

    def _clear(self) -> None:
        """Take away what an import left; the folder that says so goes last."""
        files = self._files
        if files.exists(f"{self.path}/{NODE}"):
            files.unlink(f"{self.path}/{NODE}")
            files.flush_directory(self.path)
        for name in (TOPICS, JOURNAL):
            remove(files, f"{self.path}/{name}")
        files.flush_directory(self.path)
        remove(files, self.building)

    def _give_back(self) -> None:
        """Unlock the folder, and remove it where it was made for nothing."""
        if self._made and not self._published:
            with suppress(OSError):
                self._files.remove_directory(self.path)
        if self._lock >= 0:
            self._files.close(self._lock)
            self._lock = -1


def remove(files: Files, folder: str) -> None:
    """The folder, if it is there, and all that is in it."""
    if not files.exists(folder):
        return
    for name, is_folder in list(files.list(folder)):
        path = f"{folder}/{name}"
        if is_folder:
            remove(files, path)
        else:
            files.unlink(path)
    files.remove_directory(folder)
