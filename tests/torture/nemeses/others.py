"""What happens around the node: nsqlookupd, the clock, a backup, somebody who rewinds a channel."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http
from tests.torture import bodies
from tests.torture.arena import penstock
from tests.torture.copied import missing_in_copy
from tests.torture.history import Harmed, Jumped, Rewound
from tests.torture.load import TOPIC
from tests.torture.nemeses.base import Nemesis
from tests.torture.wire import MESSAGE, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.torture.arena import Arena

HOUR: Final = 3600


class LookupGone(Nemesis):
    """nsqlookupd is killed, and comes back on its ports."""

    name, lasts = "lookupd-gone", True

    @contextmanager
    def harm(self, arena: Arena, random: Random) -> Iterator[None]:
        if arena.lookupd is None:
            raise AssertionError("no nsqlookupd")
        arena.lookupd.kill()
        yield
        arena.lookupd.start_again()


class Clock(Nemesis):
    """The wall clock jumps by up to an hour, for a life that goes on and for those that begin meanwhile; and back."""

    name, lasts = "clock", True
    costs = "nothing; what is deferred over a restart is due by the wall clock: as far off as that has jumped"

    @contextmanager
    def harm(self, arena: Arena, random: Random) -> Iterator[None]:
        seconds = random.choice((-HOUR, -600, -2, 2, 600, HOUR))
        self._set(arena, seconds)
        try:
            yield
        finally:
            self._set(arena, -seconds)
            with arena.down("stop"):  # so that nothing waits for an hour
                pass

    def _set(self, arena: Arena, seconds: int) -> None:
        arena.history.append(Jumped(time.monotonic(), seconds))
        arena.preload.set(clock=arena.preload.get("clock") + seconds * 10**9)


class Backup(Nemesis):
    """The folder is copied while the node runs, and a node on the copy delivers what was there to be delivered."""

    name, disks = "backup", ("folder",)
    costs = "nothing; the copy has what was answered before it began, and of the rest a part"

    def strike(self, arena: Arena, random: Random) -> None:
        arena.copies += 1
        target = arena.place / f"copy{arena.copies}"
        began = time.monotonic()
        made = penstock("log", "backup", str(arena.folder), str(target))
        ended = time.monotonic()
        if made.returncode and not any(isinstance(event, Harmed) for event in list(arena.history)):
            arena.wrong(f"backup: {made.stdout}{made.stderr}")
            return
        copy = Nsqd(target, *arena.plan.flags())
        try:
            numbers = self._delivered(copy)
        finally:
            copy.kill()
        if made.returncode:
            return  # it says what is damaged, and copies that as it is
        for what in missing_in_copy(arena.history, "archive", numbers, began, ended):
            arena.wrong(f"a node on a backup: {what}")

    def _delivered(self, copy: Nsqd) -> list[int]:
        """Until its channel is empty."""
        numbers = []
        with Wire(copy.tcp) as wire:
            wire.send(f"SUB {TOPIC} archive\nRDY 2500\n".encode())
            while True:
                frames = [data for kind, data in wire.frames(0.3) if kind == MESSAGE]
                numbers += [bodies.read(data[26:])[0] for data in frames]
                wire.send(b"".join(b"FIN " + data[10:26] + b"\n" for data in frames))
                row = copy.channel(TOPIC, "archive")
                if not frames and not row["depth"] + row["in_flight_count"] + row["deferred_count"]:
                    return numbers


class Rewind(Nemesis):
    """A channel goes back to the beginning of the log, its consumers connected."""

    name, costs = "rewind", "nothing; all comes again on the channel"

    def strike(self, arena: Arena, random: Random) -> None:
        with suppress(OSError), closing(Http(arena.ports.http)) as http:
            arena.history.append(Rewound("billing", time.monotonic()))
            http.post(f"/channel/rewind?topic={TOPIC}&channel=billing&to=earliest")
            arena.history.append(Rewound("billing", time.monotonic()))
