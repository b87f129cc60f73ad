"""An nsqd as a process of its own, on a port that is free, killed when it is left."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final, TextIO, cast

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from types import TracebackType

_LISTENING: Final = re.compile(r"TCP: listening on 127\.0\.0\.1:(\d+)")


class DidNotStart(PenstockError):
    """It ended before it listened; the text is all that it said."""


class Process:
    """It listens on `port` when this is made."""

    def __init__(self, data_path: str) -> None:
        command = [sys.executable, "-m", "penstock.nsqd.main", f"--data-path={data_path}"]
        command += ["--tcp-address=127.0.0.1:0", "--http-address=127.0.0.1:0"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self._said = cast("TextIO", self._process.stderr)
        self._reader = threading.Thread(target=self._read_on, daemon=True)
        self.pid = self._process.pid
        self.port = self._wait()

    def _wait(self) -> int:
        said = []
        for line in self._said:
            said.append(line)
            if found := _LISTENING.search(line):
                self._reader.start()
                return int(found[1])
        self._process.wait()
        self._said.close()
        raise DidNotStart("".join(["nsqd did not start:\n", *said]))

    def _read_on(self) -> None:
        """What it says later nobody wants to know, but the pipe must not be full."""
        with self._said:
            for _ in self._said:
                pass

    def kill(self) -> None:
        """SIGKILL: it can do nothing more, as when a machine's memory is used up."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
