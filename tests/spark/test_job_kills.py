"""kill -9 in the middle of each job, with its JVM: the same call goes on where it was, and has each message once."""

from __future__ import annotations

import json
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.integration.http_client import Http
from tests.spark.command import Command, run
from tests.spark.test_source import Node
from tests.spark.test_topic_to_topic import content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

MESSAGES = 60_000
KILLS = 2
SCHEMA = "n BIGINT, user STRING"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    found = Node(tmp_path_factory.mktemp("nsqd"))
    for first in range(0, MESSAGES, 1000):
        numbers = range(first, first + 1000)
        found.publish("orders", *(json.dumps({"n": n, "user": f"u{n % 7}"}).encode() for n in numbers), b"garbage")
    found.web.close()
    yield found
    assert found.nsqd.stop() == 0
    found.nsqd.assert_calm()


def killed_on_the_way(state: Path, java: str, words: list[str], done: Callable[[], int]) -> None:
    """Each time when it has done more than before; then it may end."""
    for _ in range(KILLS):
        before = done()
        command = Command(state, java, *words)
        command.wait_until(lambda before=before: done() > before)  # type: ignore[misc]
        command.kill()
        assert done() < MESSAGES, "it was done before it was killed"
    ended = run(state, java, *words)
    assert ended.returncode == 0, ended.stderr
    assert "goes on where it was" in ended.stdout


def messages(node: Node, topic: str) -> int:
    web = Http(node.nsqd.http)  # one that is kept would be closed while Spark starts
    answer = web.get(f"/log?topic={topic}")
    web.close()
    return int(answer.json()["committed"]) if answer.status == 200 else 0


def test_an_archive(spark: SparkSession, node: Node, java: str, tmp_path: Path) -> None:
    # given a job in small batches, when it is killed
    files = tmp_path / "files"
    listed = files / "_spark_metadata"
    words = ["archive", f"--nsqd={node.address}", "--topic=orders", f"--to={files}", f"--schema={SCHEMA}"]
    killed_on_the_way(
        tmp_path / "state", java, [*words, "--max-offsets-per-trigger=2000"], lambda: len(list(listed.glob("[0-9]*")))
    )
    # then each message is in the files once, and each that is none by itself
    rows = spark.read.parquet(str(files)).selectExpr("body.n").collect()
    assert sorted(row.n for row in rows) == list(range(MESSAGES))
    assert spark.read.parquet(str(files / "_bad")).count() == MESSAGES // 1000


def test_a_transformation(node: Node, java: str, tmp_path: Path) -> None:
    words = ["transform", f"--nsqd={node.address}", "--topic=orders", f"--schema={SCHEMA}", "--to-topic=copies"]
    words += ["--dead-letter=dead", "--sql=SELECT CAST(n AS STRING) AS body FROM orders"]
    killed_on_the_way(
        tmp_path / "state", java, [*words, "--max-offsets-per-trigger=2000"], lambda: messages(node, "copies")
    )
    assert content(node.nsqd, "copies") == Counter(b"%d" % number for number in range(MESSAGES))
    assert content(node.nsqd, "dead").total() == MESSAGES // 1000


def test_a_replay(node: Node, java: str, tmp_path: Path) -> None:
    # given an archive of many small files
    state, files = tmp_path / "state", tmp_path / "files"
    words = ["archive", f"--nsqd={node.address}", "--topic=orders", f"--to={files}", "--rows-per-file=500"]
    assert run(state, java, *words).returncode == 0
    # when its replay is killed
    words = ["replay", f"--nsqd={node.address}", f"--from={files}", "--topic=again"]
    killed_on_the_way(state, java, words, lambda: messages(node, "again"))
    # then each message is there once more, and once
    assert content(node.nsqd, "again") == content(node.nsqd, "orders")


@pytest.mark.parametrize(
    ("number", "more", "code"),
    [
        pytest.param(signal.SIGINT, ["--once"], 130, id="before-it-was-done"),
        pytest.param(signal.SIGTERM, ["--every=1s"], 0, id="where-it-was-to-go-on"),
    ],
)
def test_a_signal_ends_a_job_behind_its_batch(
    spark: SparkSession, node: Node, java: str, tmp_path: Path, number: signal.Signals, more: list[str], code: int
) -> None:
    # given a job that has done some of its batches
    files, state = tmp_path / "files", tmp_path / "state"
    words = ["archive", f"--nsqd={node.address}", "--topic=orders", f"--to={files}", "--max-offsets-per-trigger=1000"]
    command = Command(state, java, *words, *more, "--json")
    listed = files / "_spark_metadata"
    command.wait_until(lambda: len(list(listed.glob("[0-9]*"))) > 1)
    begun = len(list(listed.glob("[0-9]*")))
    # when it is asked to end
    command.process.send_signal(number)
    ended = command.end()
    # then it does, when the batch in hand is done
    assert ended.returncode == code, ended.stderr
    last = json.loads(ended.stdout.splitlines()[-1])
    assert last["ended"]
    assert 0 < last["rows"] <= spark.read.parquet(str(files)).count() < MESSAGES
    (job,) = (state / "penstock" / "archive").iterdir()
    assert len(list((job / "main" / "commits").glob("[0-9]*"))) >= begun
