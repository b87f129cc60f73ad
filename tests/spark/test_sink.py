"""format("nsq") as a sink, with a real Spark and real nsqd: a table becomes messages, a stream each of them once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from penstock.protocol.batch import records
from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Cluster:
    """Nodes, and what stands in their logs."""

    def __init__(self, folder: Path, count: int) -> None:
        self.nodes = [Nsqd(folder / f"{number}") for number in range(count)]

    @property
    def addresses(self) -> str:
        return ",".join(f"127.0.0.1:{node.http}" for node in self.nodes)

    def bodies(self, topic: str) -> list[list[bytes]]:
        """Of each node."""
        return [_bodies(node, topic) for node in self.nodes]

    def all(self, topic: str) -> Counter[bytes]:
        return Counter(body for bodies in self.bodies(topic) for body in bodies)


def _bodies(node: Nsqd, topic: str) -> list[bytes]:
    web, found, offset = Http(node.http), [], 0
    while (answer := web.get(f"/log/read?topic={topic}&offset={offset}")).status == 200 and answer.body:
        found += [record.body for record in records(answer.body)]
        offset = int(answer.headers["x-penstock-next"])
    web.close()
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes for all tests here: each has topics of its own."""
    folder = tmp_path_factory.mktemp("nodes")
    for number in range(2):
        (folder / f"{number}").mkdir()
    found = Cluster(folder, 2)
    yield found
    for node in found.nodes:
        assert node.stop() == 0
        node.assert_calm()


def publish(rows: DataFrame, cluster: Cluster, **options: str) -> None:
    rows.write.format("nsq").options(**{"nsqd": cluster.addresses, **options}).mode("append").save()


def refused(rows: DataFrame, cluster: Cluster, **options: str) -> str:
    with pytest.raises(PySparkException) as error:
        publish(rows, cluster, **options)
    return str(error.value)


def numbers(spark: SparkSession, count: int, partitions: int = 2) -> DataFrame:
    return spark.range(0, count, 1, partitions).select(f.col("id").cast("string").alias("body"))


def test_each_row_of_a_table_is_a_message(spark: SparkSession, cluster: Cluster) -> None:
    publish(numbers(spark, 30_000), cluster, topic="table", chunkBytes="10k")
    # then each is there once, on both nodes
    assert cluster.all("table") == Counter(b"%d" % number for number in range(30_000))
    assert all(cluster.bodies("table"))


def test_rows_go_to_topics_to_nodes_and_later_by_their_columns(spark: SparkSession, cluster: Cluster) -> None:
    # given rows with a topic, a key and a delay each
    rows = spark.range(200).select(
        f.format_string("%d", "id").alias("body"),
        f.format_string("by-%d", f.col("id") % 2).alias("topic"),
        f.format_string("customer %d", f.col("id") % 10).alias("customer"),
        f.when(f.col("id") >= 100, 600_000).alias("defer"),
    )
    publish(rows, cluster, keyColumn="customer")
    # then what is not deferred stands in its topic, a customer's on one node and in order
    for parity in range(2):
        nodes = cluster.bodies(f"by-{parity}")
        assert sorted(int(body) for bodies in nodes for body in bodies) == list(range(parity, 100, 2))
        customers = [{int(body) % 10 for body in bodies} for bodies in nodes]
        assert not customers[0] & customers[1]
        for bodies in nodes:
            for customer in range(10):
                of_one = [int(body) for body in bodies if int(body) % 10 == customer]
                assert of_one == sorted(of_one)
    # and the others wait
    waiting = sum(topic["message_count"] for node in cluster.nodes for topic in _topics(node, "by-"))
    assert waiting == 200


def _topics(node: Nsqd, begin: str) -> list[dict[str, Any]]:
    return [topic for topic in node.stats()["topics"] if topic["topic_name"].startswith(begin)]


def test_columns_become_json(spark: SparkSession, cluster: Cluster) -> None:
    rows = spark.sql("SELECT 1 AS a, 'x' AS b, timestamp'2026-01-31 12:00:00' AS at, NULL AS none, array(1, 2) AS list")
    publish(rows, cluster, topic="json", bodyAs="json")
    [body] = cluster.all("json")
    assert json.loads(body) == {"a": 1, "b": "x", "at": "2026-01-31T12:00:00.000Z", "list": [1, 2]}


def test_a_bad_row_fails_the_write_or_is_put_aside(spark: SparkSession, cluster: Cluster) -> None:
    rows = spark.createDataFrame([("a",), (None,), ("",), ("b",)], "body string").coalesce(1)
    assert "row 1 of the partition cannot be published: its body is null; with badRows=skip" in refused(
        rows, cluster, topic="bad"
    )
    publish(rows, cluster, topic="bad-skipped", badRows="skip")
    assert cluster.all("bad-skipped") == Counter([b"a", b"b"])
    publish(rows, cluster, topic="bad-apart", badRows="deadletter:letters")
    assert cluster.all("bad-apart") == Counter([b"a", b"b"])
    letters = [json.loads(letter) for letter in cluster.all("letters").elements()]
    assert [letter["reason"] for letter in letters] == ["its body is null", "its body is empty"]


def test_what_cannot_be_is_refused_in_one_line(spark: SparkSession, cluster: Cluster) -> None:
    assert "option topic: it must say what is published to" in refused(numbers(spark, 1), cluster)
    assert "columns more would not be published" in refused(
        numbers(spark, 1).withColumn("more", f.lit(1)), cluster, topic="t"
    )
    assert "option delivery: exactly-once needs option nsqd" in refused(
        numbers(spark, 1), cluster, topic="t", delivery="exactly-once", nsqd="", lookupd="127.0.0.1:1"
    )


# --- streams


def stream(spark: SparkSession, cluster: Cluster, folder: Path, topic: str, **options: str) -> Any:
    """A query over files of lines, that publishes what is there and ends."""
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(folder / "lines"))
    rows = lines.withColumnRenamed("value", "body")
    writing = rows.writeStream.format("nsq").options(nsqd=cluster.addresses, topic=topic, **options)
    return writing.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)


def put_lines(folder: Path, name: str, *lines: str) -> None:
    (folder / "lines").mkdir(exist_ok=True)
    (folder / "lines" / name).write_text("\n".join(lines))


def test_a_stream_publishes_each_row_once_though_its_last_batch_is_run_again(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    # given a query of three batches
    for number in range(3):
        put_lines(tmp_path, f"{number}", *(f"{number}-{line}" for line in range(1000)))
    stream(spark, cluster, tmp_path, "stream", chunkBytes="1k").start().awaitTermination()
    expected = Counter(f"{number}-{line}".encode() for number in range(3) for line in range(1000))
    assert cluster.all("stream") == expected
    # when it does not know that its last one is through, as after a kill
    for commit in (tmp_path / "checkpoint" / "commits").glob("*2*"):
        commit.unlink()
    put_lines(tmp_path, "3", "more")
    stream(spark, cluster, tmp_path, "stream", chunkBytes="1k").start().awaitTermination()
    # then nothing is there twice
    assert cluster.all("stream") == expected + Counter([b"more"])


def test_a_query_that_a_node_does_not_know_any_more_fails_unless_told_otherwise(
    spark: SparkSession, tmp_path: Path
) -> None:
    # given a query whose node begins anew
    (tmp_path / "0").mkdir()
    one = Cluster(tmp_path, 1)
    put_lines(tmp_path, "a", "a")
    stream(spark, one, tmp_path, "t").start().awaitTermination()
    assert one.nodes[0].stop() == 0
    (tmp_path / "0").rename(tmp_path / "before")
    (tmp_path / "0").mkdir()
    other = Cluster(tmp_path, 1)
    put_lines(tmp_path, "b", "b")
    # when it goes on, then it says so
    with pytest.raises(PySparkException, match="does not know this query, so what was being published"):
        stream(spark, other, tmp_path, "t").start().awaitTermination()
    stream(spark, other, tmp_path, "t", failOnStateLoss="false").start().awaitTermination()
    assert other.all("t") == Counter([b"b"])
    assert other.nodes[0].stop() == 0
