"""Signals to the node's process."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

from tests.torture.nemeses.base import Nemesis

if TYPE_CHECKING:
    from random import Random

    from tests.torture.arena import Arena

FORGETS = "no message; what consumers did in the last --sync-timeout may be forgotten, and comes again"


class Kill(Nemesis):
    """SIGKILL, at any moment of its life."""

    name, costs = "kill", FORGETS

    def strike(self, arena: Arena, random: Random) -> None:
        with arena.down():
            pass


class KillStart(Nemesis):
    """SIGKILL, and again while it starts."""

    name, costs = "kill-start", FORGETS

    def strike(self, arena: Arena, random: Random) -> None:
        with arena.down():
            before = arena.nsqd.process
            killer = threading.Timer(random.random(), lambda: arena.nsqd.process.kill())  # noqa: PLW0108 - the new one
            killer.start()
            try:
                arena.nsqd.start()
            except AssertionError:
                return  # it was killed before it listened
            finally:
                killer.join()
                if arena.nsqd.process is not before:
                    arena.nsqd.kill()
                if arena.device is not None:
                    arena.device.kill()


class Stop(Nemesis):
    """SIGTERM under load."""

    name = "stop"

    def strike(self, arena: Arena, random: Random) -> None:
        with arena.down("stop"):
            pass


class Freeze(Nemesis):
    """SIGSTOP, and SIGCONT up to four seconds later: message timeouts run out, clients wait. Or it is killed frozen."""

    name, costs = "freeze", FORGETS

    def strike(self, arena: Arena, random: Random) -> None:
        process = arena.nsqd.process
        with arena.trouble(self.name, deaf=True):
            process.send_signal(signal.SIGSTOP)
            arena.load.pause(random.random() * 4)
            if random.random() < 0.2:
                with arena.down():
                    pass
            else:
                process.send_signal(signal.SIGCONT)
