"""50 million messages over three nodes: each is read, and no process grows with them."""

from __future__ import annotations

import os
import re
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.protocol.batch import RECORD
from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES = int(os.environ.get("MESSAGES", "50_000_000"))
BATCH = 10_000
ON_DISK = 24 + RECORD  # bytes
WORKER = 500 << 20  # bytes that a Python worker may have had at most

pytestmark = pytest.mark.slow


def publish(nsqd: Nsqd, count: int) -> None:
    """Bodies of 24 bytes, all alike in a batch."""
    web = Http(nsqd.http)
    for first in range(0, count, BATCH):
        size = min(BATCH, count - first)
        body = struct.pack(">I", size) + (struct.pack(">I", 24) + b"%024d" % first) * size
        assert web.post("/mpub?topic=t&binary=true", body).body == b"OK"
    web.close()


def peak(status: Path) -> int:
    """The most memory that a process ever had."""
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
    return int(found[1]) << 10 if found else 0


def workers() -> list[Path]:
    """Python workers of this session's Spark."""
    return [status for status in Path("/proc").glob("[0-9]*/status") if is_ours(status)]


def is_ours(status: Path) -> bool:
    try:
        is_worker = b"pyspark.daemon" in status.with_name("cmdline").read_bytes()
        while is_worker and (parent := re.search(r"PPid:\s+(\d+)", status.read_text())) and parent[1] != "0":
            if int(parent[1]) == os.getpid():
                return True
            status = Path("/proc", parent[1], "status")
    except OSError:  # it ended meanwhile
        pass
    return False


def test_all_of_many_messages_in_little_memory(spark: SparkSession, tmp_path: Path) -> None:
    needed, free = MESSAGES * ON_DISK, shutil.disk_usage(tmp_path).free
    if free < 2 * needed:
        pytest.skip(f"{MESSAGES:,} messages are {needed >> 20:,} MiB, and half of {free >> 20:,} MiB may be used")
    # given three nodes with a third of them each
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    nodes = [Nsqd(folder) for folder in folders]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda nsqd: publish(nsqd, MESSAGES // 3), nodes))
    resident = [nsqd.resident() for nsqd in nodes]
    # when a stream reads them
    addresses = ",".join(f"127.0.0.1:{nsqd.http}" for nsqd in nodes)
    stream = spark.readStream.format("nsq").options(nsqd=addresses, topic="t", startingOffsets="earliest").load()
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    progress: list[Any] = list(query.recentProgress)
    end = progress[-1]["sources"][0]["endOffset"]
    peaks = [peak(status) for status in workers()]
    grown = [nsqd.resident() - before for nsqd, before in zip(nodes, resident, strict=True)]
    print("MiB, of workers at most and more of nsqd:", [each >> 20 for each in peaks], [each >> 20 for each in grown])
    # then each came, in batches of a million, and nobody grew
    assert end.count(f", {MESSAGES // 3}]") == 3
    assert {each["numInputRows"] for each in progress[:-1] if each["numInputRows"]} == {1_000_000}
    assert peaks
    assert max(peaks) < WORKER
    assert max(grown) < 100 << 20
    for nsqd in nodes:
        assert nsqd.stop() == 0
