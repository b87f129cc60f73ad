"""From topic to topic under kill -9, of the driver with its JVM and of nsqd, at random moments: each message once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from penstock.protocol.batch import records
from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http

ROUNDS = 10
PATIENCE = 180.0
MESSAGES = 60_000

pytestmark = pytest.mark.slow


class Copying:
    """The query with all that belongs to it, in a process group of its own."""

    def __init__(self, cores: int, nsqd: Nsqd, checkpoint: Path, seconds: float) -> None:
        command = [sys.executable, "-m", "tests.spark.copying", str(cores), f"127.0.0.1:{nsqd.http}"]
        self.process = subprocess.Popen(
            [*command, str(checkpoint), str(seconds)], stdout=subprocess.PIPE, start_new_session=True, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "started\n"

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self._ended()

    def finish(self) -> int:
        self.process.wait(timeout=PATIENCE)
        return self._ended()

    def _ended(self) -> int:
        code = self.process.wait(timeout=20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def content(nsqd: Nsqd, topic: str) -> Counter[bytes]:
    web, offset = Http(nsqd.http), 0
    found: Counter[bytes] = Counter()
    while (answer := web.get(f"/log/read?topic={topic}&offset={offset}")).status == 200 and answer.body:
        found.update(record.body for record in records(answer.body))
        offset = int(answer.headers["x-penstock-next"])
    web.close()
    return found


def wait_for_more(nsqd: Nsqd, before: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while content(nsqd, "out").total() <= before:
        assert time.monotonic() < deadline, "nothing is published"
        time.sleep(0.05)


def test_each_message_is_copied_once(java: str, tmp_path: Path) -> None:
    # given a topic of numbers, and a query that publishes them to another one in small batches and chunks
    if java:
        os.environ["JAVA_HOME"] = java
    os.environ["PYSPARK_PYTHON"] = sys.executable
    seed = random.randrange(1 << 32)
    print("seed", seed)
    moments = random.Random(seed)
    (tmp_path / "data").mkdir()
    nsqd = Nsqd(tmp_path / "data")
    nsqd.flags = (*nsqd.flags, f"--http-address=127.0.0.1:{nsqd.http}", f"--tcp-address=127.0.0.1:{nsqd.tcp}")
    web = Http(nsqd.http)
    numbers = [b"%d" % number for number in range(MESSAGES)]
    for at in range(0, MESSAGES, 1000):
        assert web.post("/mpub?topic=in", b"\n".join(numbers[at : at + 1000])).body == b"OK"
    web.close()
    # when the driver is killed ten times, and nsqd every third time, each time with another number of cores
    for number in range(ROUNDS):
        before = content(nsqd, "out").total()
        query = Copying(1 + number % 3, nsqd, tmp_path / "checkpoint", 0.2)
        if before < MESSAGES:
            wait_for_more(nsqd, before)
        time.sleep(moments.random())
        if number % 3 == 2:
            nsqd.kill()
            nsqd.start()
            time.sleep(moments.random())
        query.kill()
    # then what is there at the end is each of them once
    assert Copying(2, nsqd, tmp_path / "checkpoint", 0).finish() == 0
    assert content(nsqd, "out") == Counter(numbers)
    assert nsqd.stop() == 0
    nsqd.assert_calm()
