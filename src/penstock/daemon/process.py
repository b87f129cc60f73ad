"""The process, under the names that every Prometheus client has for it. Knows Linux's /proc, and no node."""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_STATM: Final = "/proc/self/statm"
_DESCRIPTORS: Final = "/proc/self/fd"


def memory() -> tuple[int, int]:
    """Bytes of address space, and of them those in memory; 0 where no /proc says how many."""
    with suppress(OSError), open(_STATM, "rb") as file:
        size, resident = file.read().split()[:2]
        return int(size) * _PAGE, int(resident) * _PAGE
    return 0, 0


def samples(started: int) -> Iterator[tuple[str, str, str, float]]:
    """Name, kind, help and value of each; `started` is in ns of the wall."""
    size, resident = memory()
    yield "process_cpu_seconds_total", "counter", "User and system CPU time.", time.process_time()
    yield "process_virtual_memory_bytes", "gauge", "Address space.", size
    yield "process_resident_memory_bytes", "gauge", "Memory in use.", resident
    yield "process_start_time_seconds", "gauge", "When the process began, since the epoch.", started / 1e9
    yield "process_open_fds", "gauge", "Open file descriptors.", _descriptors()
    yield "process_max_fds", "gauge", "The most that may be open.", resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _descriptors() -> int:
    """Linux 6.2 says it as a size; before, they are counted."""
    with suppress(OSError):
        return os.stat(_DESCRIPTORS).st_size or len(os.listdir(_DESCRIPTORS))
    return 0
