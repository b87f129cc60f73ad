"""Other people's clients against nsqd: nothing is lost, each channel is complete, whatever happens to consumers."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration import foreign
from tests.integration.daemon import Nsqd

PROGRAM = Path(foreign.__file__)
TOPIC = "numbers"
PATIENCE = 20.0


def started(*arguments: object, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), *map(str, arguments)]
    return subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL, text=True)


class Group:
    """The consumers of one channel, each a process, and what they say that they finished."""

    def __init__(self, client: str, nsqd: Nsqd, channel: str) -> None:
        self.channel = channel
        self._nsqd = nsqd
        self._command = ("consume", client, nsqd.tcp, TOPIC, channel)
        self._changed = threading.Condition()
        self.seen: dict[int, int] = {}  # by number: its attempts, where it was finished first
        self._processes: list[tuple[subprocess.Popen[str], threading.Thread]] = []

    def add(self) -> None:
        process = started(*self._command, stdout=subprocess.PIPE)
        reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        reader.start()
        self._processes.append((process, reader))

    def _read(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            number, attempts = map(int, line.split())
            with self._changed:
                self.seen.setdefault(number, attempts)
                self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.seen) >= count, PATIENCE):
                found = self._nsqd.channel(TOPIC, self.channel)
                raise AssertionError(f"{len(self.seen)} messages came, not {count}: {found}")

    def kill_one(self) -> None:
        """As `kill -9`, in the middle of whatever the oldest does."""
        process, reader = self._processes.pop(0)
        process.kill()
        process.wait(timeout=10)
        reader.join(timeout=10)
        if process.stdout:
            process.stdout.close()

    def close(self) -> None:
        while self._processes:
            self.kill_one()


@pytest.fixture
def nsqd(tmp_path: Path) -> Iterator[Nsqd]:
    daemon = Nsqd(tmp_path)
    yield daemon
    if daemon.process.poll() is None:
        assert daemon.stop() == 0
    daemon.assert_calm()


def test_other_clients_get_everything_on_each_channel_though_consumers_are_killed(nsqd: Nsqd) -> None:
    # given a channel for each client, with two consumers that requeue some messages and let others time out
    count = 20_000
    with ExitStack() as stack:
        groups = [Group(client, nsqd, client) for client in ("pynsq", "ansq")]
        for group in groups:
            with nsqd.client() as client:
                client.subscribe(TOPIC, group.channel, 0)
            stack.callback(group.close)
            group.add()
            group.add()
        # when both clients publish, and consumers are killed and come back
        producers = [
            started("produce", "pynsq", nsqd.tcp, TOPIC, 0, count // 2),
            started("produce", "ansq", nsqd.tcp, TOPIC, count // 2, count),
        ]
        for so_far in range(1, 5):
            for group in groups:
                group.wait_for(so_far * count // 6)
                group.add()
                group.kill_one()
        # then all is answered, and all of it is finished on each channel
        for producer in producers:
            assert producer.wait(timeout=PATIENCE) == 0
        for group in groups:
            group.wait_for(count)
            assert set(group.seen) == set(range(count))
            again = {number for number, attempts in group.seen.items() if attempts > 1}
            assert again >= {n for n in range(count) if foreign.is_requeued(n) or foreign.is_left(n)}
