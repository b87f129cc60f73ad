"""A backup of a node that is busy: a start on the copy delivers what was answered and not finished, once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

import pytest

from penstock.log.files import Files
from penstock.log.tools.backup import backup
from penstock.log.tools.verify import verify
from tests.integration.client import Client
from tests.integration.daemon import Nsqd

COPIES: Final = 3
DELAY: Final = 1000  # ms, at most


class Load:
    """Publishes, deferred and not, and finishes some of it, until it is told to stop."""

    def __init__(self, nsqd: Nsqd, seed: int) -> None:
        self.answered: dict[bytes, float] = {}
        self.finished: dict[bytes, float] = {}
        self.busy = threading.Event()  # set when there is something to copy
        self._random = Random(seed)
        self._stopped = threading.Event()
        self._consumer = nsqd.client()
        self._consumer.subscribe("orders", "billing", 100)
        self._publisher = nsqd.client()
        self._threads = [threading.Thread(target=self._publish), threading.Thread(target=self._consume)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        publishing, consuming = self._threads
        publishing.join()
        self._publisher.publish("orders", b"the last")  # somebody may be waiting for one
        consuming.join()
        self._publisher.close()
        self._consumer.close()

    def _publish(self) -> None:
        count = 0
        while not self._stopped.is_set():
            names = [b"%d " % number for number in range(count, count + 20)]
            assert self._publisher.publish("orders", *names) == b"OK"
            later = b"later %d" % count
            assert self._publisher.ask(f"DPUB orders {self._random.randrange(DELAY)}", later) == b"OK"
            now = time.monotonic()
            self.answered.update(dict.fromkeys([*names, later], now))
            count += len(names)
            if count > 10_000:
                self.busy.set()

    def _consume(self) -> None:
        while not self._stopped.is_set():
            message = self._consumer.message()
            if self._random.random() < 0.3:
                self._consumer.send(b"REQ " + message.id + b" 0\n")
            else:
                self.finished[message.body] = time.monotonic()
                self._consumer.finish(message)

    def wanted(self, begin: float, end: float) -> set[bytes]:
        """What a copy made between these times has to deliver; asked when the load is over."""
        before = {name for name, at in self.answered.items() if at < begin}
        return {name for name in before if self.finished.get(name, end) >= end}


def delivered(nsqd: Nsqd, wanted: set[bytes]) -> Counter[bytes]:
    """What comes, finished, until all that is wanted is there and the channel is empty."""
    found: Counter[bytes] = Counter()
    with nsqd.client() as client:
        client.subscribe("orders", "billing", 2500)
        while not wanted <= found.keys() or left(nsqd, client):
            for _ in range(left(nsqd, client)):
                message = client.message()
                found[message.body] += 1
                client.finish(message)
    return found


def left(nsqd: Nsqd, client: Client) -> int:
    """How many messages the channel has, when every FIN has arrived."""
    assert client.ask("FIN 0000000000000000").startswith(b"E_FIN_FAILED")
    channel = nsqd.channel("orders", "billing")
    return int(channel["depth"]) + int(channel["in_flight_count"])


@pytest.mark.parametrize("seed", [pytest.param(1), *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 7))])
def test_a_copy_of_a_busy_node_delivers_what_was_not_finished_once(tmp_path: Path, seed: int) -> None:
    # given a node that publishes, moves what is due, and finishes
    (tmp_path / "node").mkdir()
    nsqd = Nsqd(tmp_path / "node", "--max-bytes-per-file=50000", "--sync-timeout=50ms")
    load = Load(nsqd, seed)
    copies = []
    try:
        assert load.busy.wait(30)
        # when it is copied meanwhile
        for number in range(COPIES):
            begin = time.monotonic()
            copied = backup(Files(), f"{tmp_path}/node", f"{tmp_path}/copy{number}")
            copies.append((tmp_path / f"copy{number}", begin, time.monotonic()))
            assert copied.damage == []
    finally:
        load.stop()
        nsqd.kill()
    # then each copy is whole, and delivers what the node still had to deliver
    for path, begin, end in copies:
        wanted = load.wanted(begin, end)
        assert wanted
        assert verify(Files(), str(path)).clean
        copy = Nsqd(path)
        try:
            found = delivered(copy, wanted)
            assert wanted <= found.keys() <= load.answered.keys()
            assert [name for name, count in found.items() if count > 1] == []
        finally:
            copy.kill()
        copy.assert_calm()
