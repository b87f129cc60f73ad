"""A disk that is full ends an archive with a sentence; when there is room it goes on, and has each message once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.kit.small_disk import small_disk
from tests.spark.command import run
from tests.spark.test_source import Node

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MESSAGES = 4000
SIZE = 500  # bytes of a message, that nothing makes smaller

pytestmark = pytest.mark.slow


def test_an_archive_on_a_full_disk(spark: SparkSession, java: str, tmp_path: Path) -> None:
    # given a topic, and a disk on which there is room for half of it
    (tmp_path / "data").mkdir()
    node = Node(tmp_path / "data")
    bodies = [os.urandom(SIZE // 2).hex().encode() for _ in range(MESSAGES)]
    for first in range(0, MESSAGES, 1000):
        node.publish("t", *bodies[first : first + 1000])
    with small_disk(tmp_path, 4 * MESSAGES * SIZE) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(7 * MESSAGES * SIZE // 2))
        words = ["archive", f"--nsqd={node.address}", "--topic=t", f"--to={disk / 'files'}"]
        words += ["--max-offsets-per-trigger=500"]
        # when it is archived, then that fails, and says why
        failed = run(tmp_path / "state", java, *words)
        assert failed.returncode == 1
        assert "No space left on device" in failed.stderr.splitlines()[0]
        # and when there is room, the same call does what is left
        ballast.unlink()
        done = run(tmp_path / "state", java, *words)
        assert done.returncode == 0, done.stderr
        assert 0 < int(done.stdout.splitlines()[-1].split(": ")[1].split()[0].replace(",", "")) < MESSAGES
        found = spark.read.parquet(str(disk / "files")).collect()
        assert sorted(bytes(row.body) for row in found) == sorted(bodies)
    node.web.close()
    assert node.nsqd.stop() == 0
