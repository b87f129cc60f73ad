"""The real file system, whose writes and flushes are timed on whatever thread they are made."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from penstock.log.files import Files

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from penstock.nsqd.meters import Histogram

SLOW: Final = 2 * 10**6  # ns: a write that takes longer was held up, by the device or by the kernel


class TimedFiles(Files):
    def __init__(self, flushes: Histogram) -> None:
        self._flushes = flushes
        self._lock = threading.Lock()

    def write(self, fd: int, data: Buffer, position: int) -> int:
        begun = time.monotonic_ns()
        done = super().write(fd, data, position)
        self.slow = time.monotonic_ns() - begun > SLOW
        return done

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
