"""The real file system, whose flushes are timed on whatever thread they are made."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from penstock.log.files import Files

if TYPE_CHECKING:
    from penstock.nsqd.meters import Histogram


class TimedFiles(Files):
    def __init__(self, flushes: Histogram) -> None:
        self._flushes = flushes
        self._lock = threading.Lock()

    def flush(self, fd: int) -> None:
        begun = time.monotonic_ns()
        super().flush(fd)
        self._took(begun)

    def flush_all(self, path: str) -> None:
        begun = time.monotonic_ns()
        super().flush_all(path)
        self._took(begun)

    def _took(self, begun: int) -> None:
        with self._lock:
            self._flushes.add(time.monotonic_ns() - begun)
