"""A `penstock` command as a user runs it, in a process group of its own, with a state folder of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE = 150.0


class Command:
    """`state` is where it keeps checkpoints and Spark's log; `java` is JAVA_HOME, where it needs one."""

    def __init__(self, state: Path, java: str, *words: str) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}
        environment |= {"XDG_STATE_HOME": str(state), **({"JAVA_HOME": java} if java else {})}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli.main", *words],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def end(self) -> subprocess.CompletedProcess[str]:
        """When it has done what it should."""
        try:
            out, err = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)

    def wait_until(self, happened: Callable[[], bool]) -> None:
        """It is still running then."""
        deadline = time.monotonic() + PATIENCE
        while not happened():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline, "nothing happens"
            time.sleep(0.02)

    def kill(self) -> None:
        """kill -9, with the JVM."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def run(state: Path, java: str, *words: str) -> subprocess.CompletedProcess[str]:
    return Command(state, java, *words).end()
