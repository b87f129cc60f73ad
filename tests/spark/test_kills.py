"""kill -9, of the driver with its JVM and of nsqd, at random moments: a parquet sink holds each message once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from http.client import HTTPException
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

ROUNDS = 10
PATIENCE = 120.0

pytestmark = pytest.mark.slow


class Driver:
    """A query with all that belongs to it, in a process group of its own; `by` is what runs it, if not Python."""

    def __init__(self, settings: dict[str, object], *by: str) -> None:
        command = [*(by or (sys.executable, "-m", "tests.spark.driver")), json.dumps(settings)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, text=True)

    def wait_until_started(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "started\n"

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=20)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.kill()

    def finish(self) -> None:
        out, _ = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, out


class Publisher:
    """Numbers, in order, as long as it is let; what was not answered OK is sent again."""

    def __init__(self, nsqd: Nsqd, topic: str) -> None:
        self.published = 0
        self._nsqd = nsqd
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            bodies = b"\n".join(b"%d" % number for number in range(self.published, self.published + 50))
            with suppress(OSError, HTTPException), closing(Http(self._nsqd.http)) as web:
                if web.post(f"/mpub?topic={self._topic}", bodies).body == b"OK":
                    self.published += 50

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def batches(checkpoint: Path) -> int:
    """How many the query has finished."""
    return len(list(checkpoint.glob("commits/[0-9]*")))


def wait_for_a_batch(checkpoint: Path, *, before: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while batches(checkpoint) == before:
        assert time.monotonic() < deadline, "no batch comes to its end"
        time.sleep(0.05)


@pytest.fixture
def nsqd(tmp_path: Path) -> Iterator[Nsqd]:
    (tmp_path / "data").mkdir()
    found = Nsqd(tmp_path / "data", "--max-bytes-per-file=200000")
    yield found
    found.stop()
    found.assert_calm()


def test_each_message_is_in_the_files_once(spark: SparkSession, nsqd: Nsqd, tmp_path: Path) -> None:
    # given a topic that is published to all the time, and a query in small batches
    seed = random.randrange(1 << 32)
    print("seed", seed)
    moments = random.Random(seed)
    fixed = f"--http-address=127.0.0.1:{nsqd.http}", f"--tcp-address=127.0.0.1:{nsqd.tcp}"
    options = {
        "nsqd": f"127.0.0.1:{nsqd.http}",
        "topic": "t",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "1000",
        "maxRecordsPerPartition": "300",
    }
    path, checkpoint = str(tmp_path / "out"), tmp_path / "checkpoint"
    settings = {
        "options": options,
        "path": path,
        "checkpoint": str(checkpoint),
        "conf": {"spark.ui.enabled": "false"},
        "columns": ["offset", "CAST(CAST(body AS STRING) AS INT) AS body"],
    }
    # when the driver is killed ten times, and nsqd every third time, each time with another number of cores
    with Publisher(nsqd, "t") as publisher:
        for number in range(ROUNDS):
            committed = batches(checkpoint)
            with Driver({**settings, "master": f"local[{1 + number % 3},4]", "seconds": 0.2}) as driver:
                driver.wait_until_started()
                wait_for_a_batch(checkpoint, before=committed)
                time.sleep(moments.uniform(0, 2))  # the moment is what is tested
                if number % 3 == 0:
                    nsqd.kill()
                    time.sleep(moments.uniform(0, 1))
                    nsqd.start(*fixed)
    options |= {"maxOffsetsPerTrigger": "1000000", "maxRecordsPerPartition": "100000"}
    with Driver({**settings, "master": "local[2]"}) as last:
        last.finish()
    # then each offset is in the files once, and each message that was answered
    with closing(Http(nsqd.http)) as web:
        end = web.get("/log?topic=t").json()["committed"]
    found = spark.read.parquet(path).agg(
        F.count("*").alias("rows"),
        F.count_distinct("offset").alias("offsets"),
        F.min("offset").alias("first"),
        F.max("offset").alias("last"),
        F.count_distinct("body").alias("bodies"),
        F.max("body").alias("body"),
    )
    row = found.collect()[0]
    assert (row.rows, row.offsets, row.first, row.last) == (end, end, 0, end - 1)
    assert row.bodies == row.body + 1 >= publisher.published
