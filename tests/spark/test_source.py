"""format("nsq") read by a real Spark, from a real nsqd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class Node:
    """An nsqd, and what tests do with it."""

    def __init__(self, folder: Path) -> None:
        self.nsqd = Nsqd(folder)
        self.web = Http(self.nsqd.http)
        self.address = f"127.0.0.1:{self.nsqd.http}"

    def publish(self, topic: str, *bodies: bytes) -> None:
        assert self.web.post(f"/mpub?topic={topic}", b"\n".join(bodies)).body == b"OK"

    def numbers(self, topic: str, first: int, until: int) -> None:
        self.publish(topic, *(b"%d" % number for number in range(first, until)))

    def read(self, spark: SparkSession, topic: str, **options: str) -> DataFrame:
        return spark.read.format("nsq").options(nsqd=self.address, topic=topic, **options).load()

    def stream(self, spark: SparkSession, topic: str, **options: str) -> DataFrame:
        return spark.readStream.format("nsq").options(nsqd=self.address, topic=topic, **options).load()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    found = Node(tmp_path_factory.mktemp("nsqd"))
    yield found
    found.web.close()
    assert found.nsqd.stop() == 0
    found.nsqd.assert_calm()


def bodies(frame: DataFrame) -> list[bytes]:
    return sorted(bytes(row.body) for row in frame.select("body").collect())


def all_now(frame: DataFrame, checkpoint: Path, path: Path) -> StreamingQuery:
    """What there is, into files."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start(str(path))
    query.awaitTermination()
    return query


def test_a_batch_has_each_message_with_what_nsq_says_of_it(spark: SparkSession, node: Node) -> None:
    # given messages in several batches, and a channel that has nothing to say in this
    for first in range(0, 3000, 1000):
        node.numbers("rows", first, first + 1000)
    node.web.post("/channel/create?topic=rows&channel=c")
    # when they are read in several tasks
    rows = node.read(spark, "rows", maxRecordsPerPartition="700").orderBy("offset").collect()
    # then each is there
    assert [bytes(row.body) for row in rows] == [b"%d" % number for number in range(3000)]
    known = node.web.get("/log?topic=rows").json()
    assert {(row.topic, row.node) for row in rows} == {("rows", known["node"])}
    assert [row.offset for row in rows] == list(range(3000))
    assert rows[7].id == f"{known['base'] + 7:016x}"
    assert rows[0].timestamp <= rows[-1].timestamp


def test_sql_reads_it_too(spark: SparkSession, node: Node) -> None:
    node.publish("sql", b"a", b"b")
    spark.sql(
        f"CREATE TEMPORARY VIEW sql_topic USING nsq OPTIONS (nsqd '{node.address}', topic 'sql', bodyAs 'string')"
    )
    assert spark.sql("SELECT max(body) FROM sql_topic").first()[0] == "b"  # type: ignore[index]


def test_a_topic_of_no_messages_is_an_empty_frame(spark: SparkSession, node: Node) -> None:
    node.web.post("/topic/create?topic=empty")
    assert node.read(spark, "empty").count() == 0


def test_columns_and_filters_narrow_what_is_read(spark: SparkSession, node: Node) -> None:
    node.numbers("narrow", 0, 1000)
    frame = node.read(spark, "narrow", columns="offset,body", pushdown="true").where("offset >= 10 and offset < 13")
    assert frame.columns == ["offset", "body"]
    assert bodies(frame) == [b"10", b"11", b"12"]


def test_json_bodies_are_a_struct(spark: SparkSession, node: Node) -> None:
    node.publish("json", b'{"a":1,"b":"x"}', b"no json", b'{"a":"?","b":"y"}')
    frame = node.read(spark, "json", bodyAs="json", schema="a INT, b STRING").orderBy("offset")
    assert [row.body and row.body.asDict() for row in frame.collect()] == [
        {"a": 1, "b": "x"},
        None,
        {"a": None, "b": "y"},
    ]
    inferred = node.read(spark, "json", bodyAs="json", columns="body")
    assert inferred.schema["body"].dataType.simpleString() == "struct<a:string,b:string>"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"maxOffsetPerTrigger": "5"}, " is unknown: did you mean maxOffsetsPerTrigger?"),
        ({"topic": "nowhere"}, "topic nowhere is not there on http://"),
        (
            {"endingOffsets": '{"v":1,"nodes":{"NODE":{"refused":["0000000000000000",1]}}}'},
            "was deleted and made again",
        ),
    ],
)
def test_what_cannot_be_is_told_in_one_line(
    spark: SparkSession, node: Node, options: dict[str, str], line: str
) -> None:
    node.publish("refused", b"a")
    identity = node.web.get("/info").json()["node"]
    options = {name: value.replace("NODE", identity) for name, value in options.items()}
    with pytest.raises(PySparkException) as refused:
        node.read(spark, **{"topic": "refused", **options}).collect()
    [found] = [each for each in str(refused.value).splitlines() if line in each][:1]
    assert found.strip().startswith("penstock.errors.")


def test_no_secret_stands_in_a_plan(spark: SparkSession, node: Node) -> None:
    node.publish("secret", b"a")
    frame = node.read(spark, "secret", token="hush-hush")
    assert frame.count() == 1
    assert "hush-hush" not in frame._jdf.queryExecution().toString()


# --- streams


def test_a_stream_into_files_has_each_message_once_over_restarts(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    # given a query that is run again and again on its checkpoint
    checkpoint, path = tmp_path / "checkpoint", tmp_path / "out"
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "700", "maxRecordsPerPartition": "200"}
    for first in (0, 1000):
        node.numbers("stream", first, first + 1000)
        query = all_now(node.stream(spark, "stream", **options), checkpoint, path)
        # then each run reads what is new, in batches that keep to the limit
        progress: list[Any] = [each for each in query.recentProgress if each["numInputRows"]]
        assert [each["numInputRows"] for each in progress] == [700, 300]
    # and each message is there once
    assert bodies(spark.read.parquet(str(path))) == sorted(b"%d" % number for number in range(2000))
    # and the nodes know how far it is
    [reader] = node.nsqd.stats("&topic=stream")["topics"][0]["channels"]
    assert (reader["reader"], reader["depth"]) == (True, 0)


def test_a_first_batch_that_failed_is_the_same_again(spark: SparkSession, node: Node, tmp_path: Path) -> None:
    # given a query that begins at the latest
    node.publish("first", b"old")
    batches: list[list[bytes]] = []
    fails = [True]

    def take(frame: DataFrame, _: int) -> None:
        batches.append(bodies(frame))
        if batches[-1] and fails.pop():
            raise ValueError("the sink is down")

    def start() -> StreamingQuery:
        writer = node.stream(spark, "first").writeStream.foreachBatch(take)
        return writer.option("checkpointLocation", str(tmp_path)).start()

    # when it fails in its first batch that has messages, and more come before it is started again
    query = start()
    query.processAllAvailable()
    node.publish("first", b"a")
    with pytest.raises(PySparkException, match="the sink is down"):
        query.processAllAvailable()
    node.publish("first", b"b")
    fails.append(False)
    fails.append(False)
    query = start()
    query.processAllAvailable()
    query.stop()
    # then that batch came again as it was
    assert [batch for batch in batches if batch] == [[b"a"], [b"a"], [b"b"]]


def test_timestamps_carry_watermarks(spark: SparkSession, node: Node, tmp_path: Path) -> None:
    # given messages, and a query that counts them by the hour
    node.numbers("windows", 0, 100)
    counted = (
        node.stream(spark, "windows", startingOffsets="earliest")
        .withWatermark("timestamp", "1 hour")
        .groupBy(F.window("timestamp", "1 hour"))
        .count()
    )
    found: list[int] = []
    query = (
        counted.writeStream.outputMode("update")
        .foreachBatch(lambda frame, _: found.extend(row["count"] for row in frame.collect()))
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sum(found) == 100
    assert query.lastProgress["eventTime"]["watermark"] > "2000"  # type: ignore[index]


def test_a_loss_ends_the_stream_with_one_line(spark: SparkSession, node: Node, tmp_path: Path) -> None:
    # given a query that has read a topic
    node.publish("lost", b"a")
    all_now(node.stream(spark, "lost", startingOffsets="earliest"), tmp_path / "checkpoint", tmp_path / "out")
    # when that is deleted, and made again
    node.web.post("/topic/delete?topic=lost")
    node.publish("lost", b"b")
    # then the query ends, unless it was told that it does not matter
    with pytest.raises(
        PySparkException, match=r"DataLost: topic lost on http://.* was deleted and made again: .*=false"
    ):
        all_now(node.stream(spark, "lost"), tmp_path / "checkpoint", tmp_path / "out")
    all_now(node.stream(spark, "lost", failOnDataLoss="false"), tmp_path / "checkpoint", tmp_path / "out")
    assert bodies(spark.read.parquet(str(tmp_path / "out"))) == [b"a", b"b"]
