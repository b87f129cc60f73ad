"""Memory and its collector, under the names that Go's runtime has for them. Knows the process, and no node."""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from typing import Final

from penstock.daemon.process import memory

PAUSES: Final = 256  # the last ones, as Go keeps them


class Garbage:
    """From now on the collector's pauses are measured."""

    def __init__(self) -> None:
        self._pauses: deque[int] = deque(maxlen=PAUSES)
        self._begun = 0
        gc.callbacks.append(self._collecting)

    def _collecting(self, phase: str, _info: object) -> None:
        if phase == "start":
            self._begun = time.monotonic_ns()
        else:
            self._pauses.append(time.monotonic_ns() - self._begun)

    def memory(self) -> dict[str, int]:
        """What is in use is what the process holds; Python knows of none that is idle, and plans no next collection."""
        pauses = sorted(self._pauses)
        return {
            "heap_objects": sys.getallocatedblocks(),
            "heap_idle_bytes": 0,
            "heap_in_use_bytes": memory()[1],
            "heap_released_bytes": 0,
            "gc_pause_usec_100": _percentile(100, pauses) // 1000,
            "gc_pause_usec_99": _percentile(99, pauses) // 1000,
            "gc_pause_usec_95": _percentile(95, pauses) // 1000,
            "next_gc_bytes": 0,
            "gc_total_runs": sum(each["collections"] for each in gc.get_stats()),
        }


def _percentile(percent: int, values: list[int]) -> int:
    """Of sorted values; 0 where there are none."""
    return values[max(0, -(-len(values) * percent // 100) - 1)] if values else 0
