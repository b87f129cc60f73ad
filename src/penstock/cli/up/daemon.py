"""A daemon that is kept running: a process of its own, started again on its ports when it ends by itself.

    start --lines--> listens --ends--> start ...           until `stop`
             '--ends before it listened--> DidNotStart

Its log lines go to a file; those that a person should see are told as well. Knows processes; no nsqd.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import re
import signal
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOST: Final = "127.0.0.1"
PAUSE: Final = 1.0  # seconds until one that ended is started again
GRACE: Final = 15.0  # seconds to stop in
_LISTENING: Final = re.compile(rb"(TCP|HTTP): listening on \S+:(\d+)\s*$")
_BAD: Final = re.compile(rb" (WARNING|ERROR|FATAL): ")
_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


class DidNotStart(PenstockError):
    """It ended before it listened; the text is the last that it said."""


class Ports(NamedTuple):
    """Where a daemon listens; 0 for a port that is free."""

    tcp: int
    http: int


class Daemon:
    """`module` run as a program, with these flags and those of its addresses."""

    def __init__(
        self, name: str, module: str, flags: list[str], ports: Ports, log: Path, tell: Callable[[str], None]
    ) -> None:
        self.name = name
        self.ports = ports
        self.pid = 0
        self._module = module
        self._flags = flags
        self._log = log
        self._tell = tell
        self._stopping = False
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """It listens when this returns, and is kept running from then on."""
        await self._listen()
        self._keeping = asyncio.create_task(self._keep())

    async def _listen(self) -> None:
        """A process that listens, and whose lines are read until it ends."""
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self._module,
            f"--tcp-address={HOST}:{self.ports.tcp}",
            f"--http-address={HOST}:{self.ports.http}",
            *self._flags,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the one that stops it
            preexec_fn=_end_with_parent,
        )
        self.pid = process.pid
        ports: asyncio.Future[Ports] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read(process, ports))
        self.ports = await ports

    async def _read(self, process: asyncio.subprocess.Process, listens: asyncio.Future[Ports]) -> None:
        found: dict[bytes, int] = {}
        line = b""
        with self._log.open("ab", buffering=0) as log:
            while line_ := await _line(process):
                line = line_
                log.write(line)
                if match := _LISTENING.search(line):
                    found[match[1]] = int(match[2])
                    if len(found) == 2 and not listens.done():
                        listens.set_result(Ports(found[b"TCP"], found[b"HTTP"]))
                if _BAD.search(line) and listens.done():
                    self._tell(f"{self.name}: {_text(line)}")
        await process.wait()
        if not listens.done():
            listens.set_exception(DidNotStart(f"{self.name} did not start: {_text(line) or 'it said nothing'}"))

    async def _keep(self) -> None:
        """Start it again each time that it ends by itself."""
        while self._process is not None and self._reading is not None:
            await self._reading
            if self._stopping:
                return
            self._tell(f"{self.name} ended ({_how(self._process.returncode)}): it is started again")
            await asyncio.sleep(PAUSE)
            if self._stopping:
                return
            await self._listen()
            self._tell(f"{self.name} listens again")

    async def failed(self) -> None:
        """Raises when it cannot be kept running."""
        if self._keeping is not None:
            await asyncio.shield(self._keeping)

    async def stop(self) -> None:
        """As an operator does; SIGKILL where that takes too long."""
        self._stopping = True
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), GRACE)
        except TimeoutError:
            self._tell(f"{self.name} does not stop: it is killed")
            process.kill()
        tasks = [task for task in (self._reading, self._keeping) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)


async def _line(process: asyncio.subprocess.Process) -> bytes:
    if process.stderr is None:
        raise AssertionError("its standard error is a pipe")
    while True:
        try:
            return await process.stderr.readline()
        except ValueError:  # longer than anybody wants to read
            continue


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"


def _end_with_parent() -> None:
    """SIGTERM when whoever started it is gone, however that came: it would hold the ports and the data."""
    ctypes.CDLL(None).prctl(_WITH_PARENT, signal.SIGTERM)
