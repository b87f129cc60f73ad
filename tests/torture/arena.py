"""Where an episode takes place: a node on its disk, an nsqlookupd, the clients; and all that may be done to the node.

Knows no nemesis. What is done goes into the history by itself: deaths, troubles, harm.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.protocol.batch import records
from tests.integration.daemon import Daemon, Nsqd, Nsqlookupd
from tests.integration.http_client import Http
from tests.torture import bodies
from tests.torture.device import DATA, Device
from tests.torture.history import (
    Bounds,
    Died,
    Figures,
    Harmed,
    History,
    Hole,
    Kept,
    Promise,
    Reported,
    Trouble,
    Wrong,
)
from tests.torture.ledger import SLACK
from tests.torture.load import ORDERED, TOPIC, Load, Ports
from tests.torture.preload import Preload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from random import Random

CHANNELS: Final = ("archive", "billing", ORDERED)
PATIENCE: Final = 90.0
_DAMAGE: Final = re.compile(r"damage|missing|lost|cannot be read|is bad")
_RAISED: Final = re.compile(r"Traceback|Exception|never retrieved")


@dataclass(frozen=True)
class Plan:
    """What an episode is like: where its node's bytes are, and its flags."""

    disk: str = "folder"  # or "small", a tmpfs; or "device", whose power can be cut
    sync_every: int = 2500
    sync_timeout: float = 0.5
    max_bytes_per_file: int = 200_000
    rate: int = 600  # messages a second, about
    lookupd: bool = False
    program: str = ""  # another nsqd, for comparison

    def flags(self) -> tuple[str, ...]:
        ours = ("--retention-bytes=1073741824", "--min-free=0")
        return (
            f"--sync-every={self.sync_every}",
            f"--sync-timeout={int(self.sync_timeout * 1000)}ms",
            f"--max-bytes-per-file={self.max_bytes_per_file}",
            "--msg-timeout=2s",
            *(() if self.program else ours),
        )


class OnDevice(Nsqd):
    module = "tests.torture.on_device"


class Over(Exception):
    """The node does not live any more: the episode ends here, and is judged."""


class Arena:
    """One node, life after life, and everybody around it; `close` ends all processes."""

    def __init__(self, place: Path, plan: Plan, random: Random) -> None:
        self.place, self.plan, self.random = place, plan, random
        self.folder = place / "data"
        self.folder.mkdir(exist_ok=True)
        self.history = History(Promise(plan.sync_every, plan.sync_timeout), CHANNELS)
        self.troubles: list[str] = []
        self.copies = 0
        self._well_since = 0.0  # what failed in between heals
        self._stack = ExitStack()
        try:
            self._begin()
        except BaseException:
            self._stack.close()
            raise

    def _begin(self) -> None:
        self.preload = Preload(self.place, self.folder)
        flags = self.plan.flags()
        self.lookupd: Nsqlookupd | None = None
        if self.plan.lookupd:
            self.lookupd = Nsqlookupd()
            self._stack.callback(lambda: _end(self.lookupd))
            flags += (f"--lookupd-tcp-address=127.0.0.1:{self.lookupd.tcp}", "--broadcast-address=127.0.0.1")
        self.device: Device | None = None
        kind, folder = Nsqd, str(self.folder)
        if self.plan.disk == "device":
            self.device = Device(self.place)
            self._stack.callback(self.device.close)
            kind, folder = OnDevice, DATA
        environment = self._environment()
        node = type("Node", (kind,), {"environment": environment, "program": tuple(self.plan.program.split())})
        self.environment = environment
        self.nsqd: Nsqd = node(folder, *flags)
        self._stack.callback(lambda: _end(self.nsqd))
        self.ports = Ports()
        self._listens()
        with closing(Http(self.nsqd.http)) as http:
            http.post(f"/topic/create?topic={TOPIC}")
            for channel in CHANNELS:
                http.post(f"/channel/create?topic={TOPIC}&channel={channel}")
        self.load = Load(self.history, self.ports, self.random.getrandbits(32), self.plan.rate)
        self._stack.callback(self.load.stop)

    def _environment(self) -> dict[str, str]:
        if self.device is None:
            return dict(self.preload.environment)
        return {**self.preload.environment, "TORTURE_DEVICE": self.device.socket, "TORTURE_BOOT": "1"}

    def close(self) -> None:
        self._stack.close()

    # --- lives

    def _listens(self) -> None:
        self.ports.tcp, self.ports.http = self.nsqd.tcp, self.nsqd.http

    def kill(self) -> None:
        self._dies("kill", self.nsqd.kill)

    def stop(self) -> None:
        self._dies("stop", self._terminate)

    def _terminate(self) -> None:
        try:
            code = self.nsqd.stop()
        except subprocess.TimeoutExpired:
            self.nsqd.kill()
            self.wrong("it did not stop within 20 s")
            return
        healing = time.monotonic() - self._well_since < self.plan.sync_timeout + SLACK
        if code and not self.troubles and not healing:
            self.wrong(f"it stopped with code {code}")

    def died(self) -> None:
        """By itself; it is started again."""
        self.kill()
        self.start()

    def cut(self) -> None:
        self._dies("cut", self.nsqd.kill)

    def _dies(self, how: str, end: Callable[[], None]) -> None:
        began = time.monotonic()
        end()
        self._death = (how, time.monotonic() if how != "stop" else began)
        if self.device is not None:
            if how == "cut":
                self.device.cut(self.random.getrandbits(32))
            else:
                self.device.kill()
            self.environment["TORTURE_BOOT"] = str(self.device.boot)

    def start(self) -> None:
        """The next life; where trouble keeps it from starting, that ends first."""
        try:
            try:
                self.nsqd.start()
            except AssertionError:
                if not self.troubles:
                    raise
                self.preload.set(write_error=0, flush_error=0, open_error=0, read_error=0, short_writes=0)
                if self.device is not None:
                    self.device.kill()
                self.nsqd.start()
        except AssertionError as error:
            self.wrong(f"it does not start: {str(error)[-800:]}")
            raise Over from error
        finally:
            how, at = self._death
            self.history.append(Died(how, at, time.monotonic()))
        self._listens()

    @contextmanager
    def down(self, how: str = "kill") -> Iterator[None]:
        """Between two lives."""
        self.kill() if how == "kill" else self.stop()
        yield
        self.start()

    # --- what is noted down

    @contextmanager
    def trouble(self, what: str, *, deaf: bool) -> Iterator[None]:
        began = time.monotonic()
        self.troubles.append(what)
        try:
            yield
        finally:
            self.troubles.remove(what)
            self._well_since = time.monotonic()
            self.history.append(Trouble(what, began, time.monotonic(), deaf))

    def harmed(self, kind: str, what: str) -> None:
        self.history.append(Harmed(time.monotonic(), kind, what))

    def wrong(self, what: str) -> None:
        self.history.append(Wrong(time.monotonic(), what))

    def figures(self, *, final: bool) -> list[Figures]:
        """What /stats says while nobody does anything."""
        with self.load.quiet():
            topic = self.nsqd.stats(f"&topic={TOPIC}&include_clients=false")["topics"][0]
            at = time.monotonic()
        found = [Figures(at, "", topic["depth"], topic["message_count"], 0, final)]
        for row in topic["channels"]:
            waiting = row["depth"] + row["in_flight_count"] + row["deferred_count"]
            found.append(Figures(at, row["channel_name"], waiting, row["message_count"], row["requeue_count"], final))
        return found

    def look(self) -> None:
        """Note down what /stats says now."""
        self.history.extend(self.figures(final=False))

    # --- the end

    def end(self) -> None:
        """All is well again: producers stop, channels run empty, and what the log holds is noted down."""
        try:
            self.load.publish_no_more()
            deadline = time.monotonic() + PATIENCE
            last = self.figures(final=True)
            while any(figures.waiting for figures in last) and time.monotonic() < deadline:
                self.load.pause(0.3)
                last = self.figures(final=True)
            self.history.extend(last)
            if not self.plan.program:
                self._read_log()
            if self.lookupd is not None:
                self.lookupd.wait_for_producers(TOPIC, self.nsqd.tcp)
        except (OSError, AssertionError) as error:
            self.wrong(f"at the end: {error!r}")
        self.load.stop()
        self._terminate()
        self._read_lines()

    def _read_log(self) -> None:
        with closing(Http(self.nsqd.http)) as http:
            log = http.get(f"/log?topic={TOPIC}").json()
            self.history.append(Bounds(log["earliest"], log["committed"], log["base"]))
            at = log["earliest"]
            while at < log["committed"]:
                answer = http.get(f"/log/read?topic={TOPIC}&offset={at}&max_bytes=1000000")
                if answer.status != 200:
                    raise AssertionError(answer)
                found = [record for record in records(answer.body) if record.offset >= at]
                self.history.extend(Kept(record.offset, bodies.read(record.body)[0]) for record in found)
                at = int(answer.headers["x-penstock-next"])
            holes = http.get(f"/log?topic={TOPIC}").json()["holes"]  # damage is known when it was read
            self.history.extend(Hole(*hole) for hole in holes)

    def _read_lines(self) -> None:
        for line in self.nsqd.log:
            if _RAISED.search(line):
                self.wrong(line.strip())
            elif " ERROR" in line and _DAMAGE.search(line):
                self.history.append(Reported(line.strip()))


def _end(daemon: Daemon | None) -> None:
    if daemon is not None and daemon.process.poll() is None:
        daemon.kill()


def penstock(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, as an operator has it."""
    command = [sys.executable, "-m", "penstock.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
