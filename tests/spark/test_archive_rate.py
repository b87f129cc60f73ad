"""How fast an archive of many messages is, beside Spark's own parquet to parquet of the same rows."""

from __future__ import annotations

import os
import struct
import time
from typing import TYPE_CHECKING

import pytest

from penstock.spark import session
from penstock.spark.jobs import archive
from penstock.spark.jobs.job import Job
from penstock.spark.jobs.options import Archive
from tests.spark.test_source import Node

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MESSAGES = int(os.environ.get("MESSAGES", "10_000_000"))
BATCH = 10_000
SIZE = 200
LEAST = 0.5  # of Spark's own rate: both write parquet, of which most of the time is

pytestmark = pytest.mark.slow


def publish(node: Node) -> None:
    """Bodies of which none is like another, as JSON's are: letters and numbers of which half can be guessed."""
    for first in range(0, MESSAGES, BATCH):
        size = struct.pack(">I", SIZE)
        noise = os.urandom(BATCH * SIZE // 4).hex()
        bodies = [noise[at : at + SIZE // 2].encode().ljust(SIZE) for at in range(0, BATCH * SIZE // 2, SIZE // 2)]
        body = struct.pack(">I", BATCH) + b"".join(size + each for each in bodies)
        assert node.web.post("/mpub?topic=many&binary=true", body).body == b"OK", first


def test_an_archive_keeps_up_with_parquet_to_parquet(spark: SparkSession, tmp_path: Path) -> None:
    # given a topic of many messages
    (tmp_path / "data").mkdir()
    node = Node(tmp_path / "data")
    publish(node)
    # when it is archived, in a session as the command's
    spark.conf.set(session.WRITERS, session.SETTINGS[session.WRITERS])
    options = Archive(nsqd=(f"http://{node.address}",), topic=("many",), to=str(tmp_path / "archive"))
    began = time.monotonic()
    (watch,) = archive.start(spark, Job("many", options, str(tmp_path / "checkpoint")))
    watch.query.awaitTermination()
    ours = time.monotonic() - began
    spark.conf.unset(session.WRITERS)
    assert watch.look().rows == MESSAGES
    # and when Spark writes the rows of that archive once more
    began = time.monotonic()
    rows = spark.read.parquet(str(tmp_path / "archive"))
    rows.write.partitionBy("topic", "date", "hour").option("maxRecordsPerFile", 2_000_000).parquet(
        str(tmp_path / "out")
    )
    theirs = time.monotonic() - began
    # then it had not much longer than this
    rate = f"{MESSAGES / ours:,.0f} messages a second; parquet to parquet {MESSAGES / theirs:,.0f}; {theirs / ours:.2f}"
    print(rate)
    assert theirs / ours > LEAST, rate
    node.web.close()
    assert node.nsqd.stop() == 0
