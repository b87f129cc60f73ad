"""What the machine gives the node's process is used up."""

from __future__ import annotations

import os
import resource
import socket
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.torture.nemeses.base import Nemesis

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.torture.arena import Arena


@contextmanager
def limit(process: int, what: int, value: int) -> Iterator[None]:
    before = resource.prlimit(process, what)
    resource.prlimit(process, what, (value, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # it was killed meanwhile
            resource.prlimit(process, what, before)


class Descriptors(Nemesis):
    """RLIMIT_NOFILE a few above what is open, and more connections than that."""

    name, lasts = "descriptors", True
    costs = "nothing that was answered OK; no new connections, E_PUB_FAILED: unknown"

    @contextmanager
    def harm(self, arena: Arena, random: Random) -> Iterator[None]:
        process = arena.nsqd.process.pid
        highest = max(int(name) for name in os.listdir(f"/proc/{process}/fd"))
        with ExitStack() as stack, arena.trouble(self.name, deaf=True):
            stack.enter_context(limit(process, resource.RLIMIT_NOFILE, highest + 1 + random.randrange(4)))
            for _ in range(20):
                guest = stack.enter_context(socket.socket())
                guest.settimeout(0.2)
                with suppress(OSError):
                    guest.connect(("127.0.0.1", arena.ports.tcp))
            yield


class Memory(Nemesis):
    """RLIMIT_AS a little above what it has: it may end by that."""

    name, lasts, disks = "memory", True, ("folder", "small")
    costs = "nothing that was answered OK; it may end, and what consumers did last is forgotten as by a kill"

    @contextmanager
    def harm(self, arena: Arena, random: Random) -> Iterator[None]:
        process = arena.nsqd.process
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[0])
        room = random.choice((0, 200_000, 2_000_000, 8_000_000))
        with arena.trouble(self.name, deaf=True):
            with limit(process.pid, resource.RLIMIT_AS, pages * resource.getpagesize() + room):
                yield
            if process is arena.nsqd.process and process.poll() is not None:
                arena.died()
