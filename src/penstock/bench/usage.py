"""What a server's process has used, by its pid. Knows /proc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from penstock.errors import BenchFailed


class Usage(NamedTuple):
    """At one moment."""

    cpu: float  # seconds, of all its threads
    user: float  # of these, outside the kernel
    resident: int  # bytes


def usage(pid: int) -> Usage:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError as error:
        raise BenchFailed(f"there is no process {pid} to look at") from error
    tick = os.sysconf("SC_CLK_TCK")
    user, system = int(fields[11]), int(fields[12])
    return Usage((user + system) / tick, user / tick, int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
