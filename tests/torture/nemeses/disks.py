"""A disk that is full, fails, is slow, or loses its power."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from tests.torture.nemeses.base import Nemesis

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.torture.arena import Arena

UNKNOWN = "nothing that was answered OK; publishes fail with E_PUB_FAILED: unknown"


class FullDisk(Nemesis):
    """A file takes all room of a small disk, to the last bytes, and goes again."""

    name, costs, disks, lasts = "full-disk", UNKNOWN, ("small",), True

    @contextmanager
    def harm(self, arena: Arena, random: Random) -> Iterator[None]:
        ballast = arena.folder.parent / "data" / "ballast"
        with arena.trouble(self.name, deaf=True):
            leave = random.choice((0, 1, 4096, 20_000))
            try:
                with ballast.open("wb", buffering=0) as file:
                    room = os.statvfs(arena.folder)
                    size = max(0, room.f_bavail * room.f_frsize - leave)
                    written = 0
                    while written < size and (step := file.write(bytes(min(size - written, 1 << 20)))):
                        written += step
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
            try:
                yield
            finally:
                ballast.unlink()


class _Calls(Nemesis):
    """System calls on the node's files fail, some or all."""

    disks = ("folder", "small")
    lasts = True
    costs = UNKNOWN
    fields: ClassVar[dict[str, tuple[int, ...]]]

    @contextmanager
    def harm(self, arena: Arena, random: Random) -> Iterator[None]:
        chosen = {name: random.choice(values) for name, values in self.fields.items()}
        with arena.trouble(self.name, deaf=True), arena.preload.failing(**chosen):
            yield


class FailingWrites(_Calls):
    """EIO, ENOSPC or EDQUOT of pwrite."""

    name = "failing-writes"
    fields: ClassVar = {"write_error": (errno.EIO, errno.ENOSPC, errno.EDQUOT), "often": (50, 300, 1000)}


class ShortWrites(_Calls):
    """pwrite does half of what it is asked to do."""

    name, costs = "short-writes", "nothing"
    fields: ClassVar = {"short_writes": (100, 500, 900)}


class FailingFlushes(_Calls):
    """EIO of fdatasync and fsync."""

    name = "failing-flushes"
    fields: ClassVar = {"flush_error": (errno.EIO,), "often": (100, 500, 1000)}


class SlowFlushes(_Calls):
    """Each flush takes up to half a second."""

    name, costs = "slow-flushes", "nothing"
    fields: ClassVar = {"flush_delay": (20_000, 100_000, 500_000)}


class FailingOpens(_Calls):
    """EIO or EACCES of open and rename."""

    name = "failing-opens"
    fields: ClassVar = {"open_error": (errno.EIO, errno.EACCES, errno.ENOSPC), "often": (300, 1000)}


class FailingReads(_Calls):
    """EIO of pread."""

    name = "failing-reads"
    fields: ClassVar = {"read_error": (errno.EIO,), "often": (300, 1000)}


class PowerCut(Nemesis):
    """The power goes: of what was not flushed each write, truncation and name may be there, lost, or torn."""

    name, disks = "power-cut", ("device",)
    costs = "with --sync-every=1 nothing; else messages of the last --sync-timeout, in a hole that readers are told of"

    def strike(self, arena: Arena, random: Random) -> None:
        arena.cut()
        arena.start()


class FailingDevice(Nemesis):
    """Calls fail now and then on the disk whose power may go: also flushes, which lose what they had to bring there."""

    name, costs, disks, lasts = "failing-device", UNKNOWN, ("device",), True

    @contextmanager
    def harm(self, arena: Arena, random: Random) -> Iterator[None]:
        device = arena.device
        if device is None:
            raise AssertionError("no device")
        with arena.trouble(self.name, deaf=True):
            for _ in range(random.randint(1, 6)):
                on = random.choice((("write",), ("flush",), ("flush_directory",), ("open", "rename"), ()))
                error = random.choice((errno.EIO, errno.ENOSPC))
                device.fail(error, on, random.randrange(60), random.randint(1, 3), random.randrange(200))
            yield
            device.heal()
