"""`penstock up`, as a process: where its nodes are, and one of them killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType

PATIENCE: Final = 60.0  # seconds
LOOK: Final = 0.02
PENSTOCK = [sys.executable, "-m", "penstock.cli.main"]


class DidNotStart(PenstockError):
    """The nodes are not up; why was said on standard error."""


class Node(NamedTuple):
    name: str
    tcp: str
    http: str
    pid: int


class Nodes:
    """nsqlookupd and `count` nsqd, up while this is entered."""

    def __init__(self, folder: Path, count: int) -> None:
        command = [*PENSTOCK, "up", "--free-ports", "--json", f"--nodes={count}", f"--data={folder}"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise DidNotStart(f"penstock up: see the logs in {folder}")
        self.lookupd, *self.nsqd = (Node(**each) for each in json.loads(line)["daemons"])

    def kill(self, node: Node) -> None:
        """SIGKILL: it can do nothing more, as when a machine's memory is used up. It is started again by itself."""
        os.kill(node.pid, signal.SIGKILL)

    def wait_for(self, node: Node) -> None:
        """Until it answers; one that was killed, for the first time again."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                _get(f"http://{node.http}/info")
            except OSError:
                time.sleep(LOOK)
            else:
                return
        raise DidNotStart(f"{node.name} does not come back")

    def create(self, topic: str, channels: Iterable[str]) -> None:
        """On each node: a channel gets what is published once it is there."""
        for node in self.nsqd:
            _post(f"http://{node.http}/topic/create?topic={topic}")
            for channel in channels:
                _post(f"http://{node.http}/channel/create?topic={topic}&channel={channel}")

    def messages(self, topic: str) -> int:
        """In the logs of all nodes."""
        return sum(self._log(node, topic) for node in self.nsqd)

    def _log(self, node: Node, topic: str) -> int:
        found = _get(f"http://{node.http}/stats?format=json&include_clients=false")
        if all(each["topic_name"] != topic for each in found["topics"]):
            return 0
        log = _get(f"http://{node.http}/log?topic={topic}")
        return int(log["committed"]) - int(log["earliest"])

    def __enter__(self) -> Nodes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.communicate()


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def _post(url: str) -> None:
    with urllib.request.urlopen(url, b"", timeout=30):
        pass
