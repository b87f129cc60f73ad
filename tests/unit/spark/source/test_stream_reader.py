"""What Spark asks of a stream, in the order in which it asks; and what a batch plans. Without Spark."""

from __future__ import annotations

import json
import logging
import pickle
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

pytest.importorskip("pyspark", reason="pyspark (extra `spark`) is not installed")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from penstock.errors import BadOption, DataLost, NodeFailed, SparkError
from penstock.spark.source import batch_reader, rows, stream_reader
from penstock.spark.source import task as tasks
from penstock.spark.source.batch_plan import planned
from penstock.spark.source.options import source_options
from penstock.spark.source.pushdown import Narrowing
from penstock.spark.source.stream_reader import StreamReader
from tests.unit.spark.source.nodes import SECOND, FakeLog, FakeNode, log_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.datasource import DataSourceStreamReader

SCHEMA = StructType().add("offset", LongType()).add("body", BinaryType())
ONE, TWO = "1" * 16, "2" * 16


class Query:
    """A streaming query as Spark runs it: the checkpoint (`start`) outlives its reader."""

    all_readers: ClassVar[list[DataSourceStreamReader]] = []

    def __init__(self, *nodes: FakeNode, **options: str) -> None:
        self.options = {"nsqd": ",".join(node.address for node in nodes), "topic": "t", "fetchRetries": "0", **options}
        if "lookupd" in options:
            del self.options["nsqd"]
        self.start: dict[str, Any] | None = None
        self.restart()

    def restart(self, **options: str) -> None:
        """The driver was killed."""
        self.options |= options
        reader = stream_reader.reader(self.options, SCHEMA)
        assert isinstance(reader, StreamReader)
        self.reader = reader
        self.all_readers.append(self.reader)

    def plan(self, limit: ReadLimit | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """As the checkpoint writes it down, before anything is read."""
        start = self.start or _kept(self.reader.initialOffset())
        return start, _kept(self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit()))

    def run(self, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
        """Bodies, as executors read them: from what is pickled for them."""
        found: list[bytes] = []
        for partition in self.reader.partitions(start, end):
            elsewhere = stream_reader.reader(self.options, SCHEMA)
            found += bodies(elsewhere.read(pickle.loads(pickle.dumps(partition))))
        self.start = end
        return found

    def batch(self, limit: ReadLimit | None = None) -> list[bytes]:
        return self.run(*self.plan(limit))


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    yield
    while Query.all_readers:
        Query.all_readers.pop().stop()


def bodies(batches: Any) -> list[bytes]:
    """What Arrow batches hold; Spark's types say that they may be tuples."""
    return [body for batch in batches for body in batch["body"].to_pylist()]


def _kept(offset: dict[str, Any]) -> Any:
    return json.loads(json.dumps(offset))


def test_a_new_query_begins_at_the_latest_and_goes_on() -> None:
    with FakeNode(t=log_of([b"old"])) as node:
        query = Query(node)
        # given a first batch, of nothing, which puts the beginning into the checkpoint
        assert query.batch() == []
        # then it goes on with what comes
        node.logs["t"].publish(b"a", b"b")
        assert query.batch() == [b"a", b"b"]
        # and says the same offsets where nothing is new
        start, end = query.plan()
        assert start == end


def test_a_first_batch_that_was_planned_is_read_as_it_was_planned() -> None:
    # given a first batch that a crash left unread
    with FakeNode(t=log_of([b"old"])) as node:
        query = Query(node, startingOffsets="latest")
        start = _kept(query.reader.initialOffset())
        node.logs["t"].publish(b"a")
        end = _kept(query.reader.latestOffset(start, ReadAllAvailable()))
        # when more comes, and Spark asks anew where to begin
        query.restart()
        node.logs["t"].publish(b"b")
        again = _kept(query.reader.initialOffset())
        # then the batch is what it was, and the next one follows it
        assert query.run(again, end) == [b"a"]
        assert query.batch() == [b"b"]


def test_offsets_go_on_over_a_restart() -> None:
    with FakeNode(t=log_of([b"a"])) as node:
        query = Query(node, startingOffsets="earliest")
        assert query.batch() == [b"a"]
        query.restart()
        node.logs["t"].publish(b"b")
        assert query.batch() == [b"b"]


def test_a_topic_that_is_made_later_is_read_from_its_beginning() -> None:
    with FakeNode() as node:
        query = Query(node)
        assert query.batch() == []
        node.logs["t"] = log_of([b"a"])
        assert query.batch() == [b"a"]


def test_limits_hold_unless_spark_asks_for_everything() -> None:
    with FakeNode(t=log_of([b"1", b"2", b"3", b"4", b"5"])) as node:
        query = Query(node, startingOffsets="earliest", maxOffsetsPerTrigger="2", maxBytesPerTrigger="1")
        assert query.batch() == [b"1"]
        assert query.batch(ReadAllAvailable()) == [b"2", b"3", b"4", b"5"]


def test_available_now_ends_where_it_was_prepared() -> None:
    # given a query that is to end with what is there
    with FakeNode(t=log_of([b"1", b"2", b"3"])) as node:
        query = Query(node, startingOffsets="earliest", maxOffsetsPerTrigger="2")
        query.reader.prepareForTriggerAvailableNow()
        # when more comes
        node.logs["t"].publish(b"late")
        # then it is not read, and the end is reached
        assert query.batch() + query.batch() == [b"1", b"2", b"3"]
        start, end = query.plan()
        assert start == end


def test_available_now_does_not_end_without_a_node_that_it_has_read() -> None:
    with FakeNode(ONE, t=log_of([b"1"])) as one, FakeNode(TWO, t=log_of([b"2"])) as two, FakeNode("9") as lookupd:
        lookupd.others["/nodes"] = named(one, two)
        query = Query(startingOffsets="earliest", lookupd=lookupd.address)
        assert sorted(query.batch()) == [b"1", b"2"]
        # given that one of them is not announced any more
        lookupd.others["/nodes"] = named(one)
        query.restart()
        query.reader.prepareForTriggerAvailableNow()
        with pytest.raises(NodeFailed, match=f"node {TWO} is not there"):
            query.plan()


def named(*nodes: FakeNode) -> dict[str, Any]:
    producers = [
        {"broadcast_address": "127.0.0.1", "http_port": int(node.address.split(":")[1]), "topics": list(node.logs)}
        for node in nodes
    ]
    return {"producers": producers}


# --- nodes


def test_nodes_are_found_by_nsqlookupd_and_may_join_leave_and_move() -> None:
    with FakeNode(ONE, t=log_of([b"1"])) as one, FakeNode("9") as lookupd:
        lookupd.others["/nodes"] = named(one)
        query = Query(lookupd=lookupd.address)
        assert query.batch() == []
        # given a node that joins with what it has
        with FakeNode(TWO, t=log_of([b"2"])) as two:
            lookupd.others["/nodes"] = named(one, two)
            assert query.batch() == [b"2"]
            moved = two.logs["t"]
        # when it is gone, then it is waited for
        lookupd.others["/nodes"] = named(one)
        one.logs["t"].publish(b"3")
        assert query.batch() == [b"3"]
        # and when it is back at another address, it goes on
        moved.publish(b"4")
        with FakeNode(TWO, t=moved) as two:
            lookupd.others["/nodes"] = named(one, two)
            assert query.batch() == [b"4"]


def test_one_nsqlookupd_of_two_is_enough(caplog: pytest.LogCaptureFixture) -> None:
    with FakeNode(ONE, t=log_of([b"1"])) as one, FakeNode("9") as lookupd, FakeNode("8") as dead:
        dead.stop()
        lookupd.others["/nodes"] = named(one)
        options = {"lookupd": f"{dead.address},{lookupd.address}", "topic": "t", "fetchRetries": "0"}
        with caplog.at_level(logging.WARNING):
            assert len(planned(source_options(options))) == 1
        assert "cannot be reached: Connection refused; the other nsqlookupd are believed" in caplog.text
        dead._start(0)


def test_a_node_that_does_not_answer_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    with FakeNode(ONE, t=log_of([b"1"])) as one, FakeNode(TWO, t=log_of([b"2"])) as two:
        query = Query(one, two, startingOffsets="earliest")
        assert sorted(query.batch()) == [b"1", b"2"]
        # given that one is down
        two.stop()
        one.logs["t"].publish(b"3")
        with caplog.at_level(logging.WARNING):
            assert query.batch() == [b"3"]
            assert query.plan()[0] == query.plan()[1]
        # then that is said once
        assert caplog.text.count("it is waited for") == 1
        two._start(int(two.address.split(":")[1]))


def test_two_addresses_of_one_node_are_refused() -> None:
    refused = pytest.raises(NodeFailed, match=rf"are one node \({ONE}\)")
    with FakeNode(ONE, t=FakeLog()) as one, FakeNode(ONE, t=FakeLog()) as copy, refused:
        Query(one, copy).plan()


def test_an_original_nsqd_is_told_apart() -> None:
    with FakeNode(t=FakeLog()) as node:
        node.others["/info"] = {"version": "1.3.0"}
        with pytest.raises(NodeFailed, match="is no Penstock nsqd: an original one has no log to read by offset"):
            Query(node).plan()


def test_a_batch_whose_node_is_away_is_waited_for_and_then_fails() -> None:
    with FakeNode(t=log_of([b"1"])) as node:
        query = Query(node, startingOffsets="earliest")
        start, end = query.plan()
        query.restart()
        node.stop()
        with pytest.raises(NodeFailed, match="has messages that this batch reads"):
            query.reader.partitions(start, end)
        # unless losses are no matter
        query.restart(failOnDataLoss="false")
        assert query.reader.partitions(start, end) == []
        node._start(0)


# --- losses


def test_what_is_lost_ends_the_query_or_is_skipped() -> None:
    with FakeNode(t=log_of([b"1"], [b"2"], [b"3"])) as node:
        query = Query(node, startingOffsets="earliest", maxOffsetsPerTrigger="1")
        assert query.batch() == [b"1"]
        # given that retention was faster than the query
        node.logs["t"].earliest = 2
        with pytest.raises(DataLost, match="retention deleted the messages 1 to 1"):
            query.plan()
        query.restart(failOnDataLoss="false")
        assert query.batch() == [b"3"]


def test_a_topic_that_was_made_again_is_read_from_its_beginning() -> None:
    with FakeNode(t=log_of([b"1"], [b"2"])) as node:
        query = Query(node, startingOffsets="earliest", failOnDataLoss="false")
        assert query.batch() == [b"1", b"2"]
        node.logs["t"] = log_of([b"again"], incarnation="b" * 16)
        assert query.batch() == [b"again"]
        # also when it was away in between
        del node.logs["t"]
        assert query.batch() == []
        node.logs["t"] = log_of([b"third"], incarnation="c" * 16)
        assert query.batch() == [b"third"]


def test_a_data_path_that_is_another_one_is_a_loss() -> None:
    with FakeNode(ONE, t=log_of([b"1"])) as node:
        query = Query(node, startingOffsets="earliest")
        assert query.batch() == [b"1"]
        node.identity = TWO
        with pytest.raises(DataLost, match=f"topic t on node {ONE}, read up to 1: none of http://.* is that node"):
            query.plan()
        query.restart(failOnDataLoss="false")
        assert query.batch() == [b"1"]


# --- the position on the nodes


def test_the_reader_is_where_the_checkpoint_is() -> None:
    with FakeNode(t=log_of([b"1"])) as node:
        log = node.logs["t"]
        query = Query(node, startingOffsets="earliest")
        # given a first batch, of which it is not known whether it was read
        query.batch()
        [name] = log.readers
        assert name.startswith("spark-")
        assert log.readers[name] == 0
        # when the next one is planned, then it was
        log.publish(b"2")
        query.batch()
        assert log.readers[name] == 1
        # also by the next process of the same query
        query.restart()
        query.plan()
        assert log.readers == {name: 2}
        # and nothing is told twice
        before = len(node.requests)
        query.plan()
        assert not any("commit" in request for request in node.requests[before:])


@pytest.mark.parametrize(("reader", "expected"), [("mine", {"mine": 0}), ("none", {})])
def test_a_reader_has_the_name_that_was_asked_for(reader: str, expected: dict[str, int]) -> None:
    with FakeNode(t=log_of([b"1"])) as node:
        query = Query(node, startingOffsets="earliest", reader=reader)
        query.batch()
        query.plan()
        assert node.logs["t"].readers.keys() == expected.keys()


def test_progress_shows_the_latest_offsets() -> None:
    with FakeNode(t=log_of([b"1", b"2"])) as node:
        query = Query(node, startingOffsets="earliest", maxOffsetsPerTrigger="1")
        assert query.reader.reportLatestOffset() is None
        query.batch()
        assert query.reader.reportLatestOffset() == {"v": 1, "nodes": {ONE: {"t": ["a" * 16, 2]}}}


# --- batches


def read(node: FakeNode, **options: str) -> list[bytes]:
    given = {"nsqd": node.address, "topic": "t", "fetchRetries": "0", **options}
    reader = batch_reader.reader(given, SCHEMA)
    return [body for partition in reader.partitions() for body in bodies(reader.read(partition))]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, [b"1", b"2", b"3"], id="all"),
        pytest.param({"startingOffsets": f'{{"t":{{"{ONE}":1}}}}'}, [b"2", b"3"], id="from-an-offset"),
        pytest.param({"endingOffsets": f'{{"t":{{"{ONE}":1}}}}'}, [b"1"], id="to-an-offset"),
        pytest.param({"startingTimestamp": "2000", "endingTimestamp": "3000"}, [b"2"], id="between-times"),
        pytest.param({"startingTimestamp": "9000"}, [], id="from-later-than-all"),
        pytest.param({"minPartitions": "3"}, [b"1", b"2", b"3"], id="in-three-tasks"),
    ],
)
def test_a_batch_reads_between_its_bounds(options: dict[str, str], expected: list[bytes]) -> None:
    with FakeNode(t=log_of([b"1"], [b"2"], [b"3"])) as node:
        assert read(node, **options) == expected
        assert node.logs["t"].readers == {}


def test_topics_are_found_by_pattern() -> None:
    with FakeNode(t1=log_of([b"1"]), t2=log_of([b"2"]), u=log_of([b"3"])) as node:
        node.logs["t3#ephemeral"] = log_of([b"4"])
        reader = batch_reader.reader({"nsqd": node.address, "topicPattern": "t.*"}, SCHEMA)
        assert [body for part in reader.partitions() for body in bodies(reader.read(part))] == [b"1", b"2"]


@pytest.mark.parametrize(
    ("narrow", "expected"),
    [
        (Narrowing(first=1), [(1, 3)]),
        (Narrowing(until=2), [(0, 2)]),
        (Narrowing(first=2, until=1), []),
        (Narrowing(time=2 * SECOND), [(1, 3)]),
        (Narrowing(topics=frozenset("u")), []),
        (Narrowing(first=100), []),
    ],
)
def test_filters_narrow_what_is_planned(narrow: Narrowing, expected: list[tuple[int, int]]) -> None:
    with FakeNode(t=log_of([b"1"], [b"2"], [b"3"])) as node:
        found = planned(source_options({"nsqd": node.address, "topic": "t"}), narrow)
        assert [(each.first, each.until) for task in found for each in task.part.ranges] == expected


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"topic": "nope"}, SparkError, "topic nope is not there on http://"),
        ({"startingOffsets": f'{{"t":{{"{ONE}":2}}}}', "endingTimestamp": "1000"}, BadOption, "behind its end 0"),
        ({"endingOffsets": f'{{"t":{{"{ONE}":9}}}}'}, DataLost, "ends at 3, and the query has read up to 9"),
        ({"endingOffsets": f'{{"v":1,"nodes":{{"{ONE}":{{"t":["x",1]}}}}}}'}, DataLost, "was deleted and made again"),
    ],
)
def test_what_a_batch_cannot_read(options: dict[str, str], kind: type[Exception], sentence: str) -> None:
    with FakeNode(t=log_of([b"1"], [b"2"], [b"3"])) as node, pytest.raises(kind, match=sentence):
        read(node, **options)


def test_the_partition_that_spark_makes_where_there_is_none_is_empty() -> None:
    from pyspark.sql.datasource import InputPartition

    options = source_options({"nsqd": "a:1", "topic": "t"})
    assert list(tasks.read(InputPartition(None), options, SCHEMA)) == []


def test_what_is_sent_to_executors_and_shown_has_no_secret() -> None:
    with FakeNode(t=log_of([b"1"])) as node:
        options = {"nsqd": node.address, "topic": "t", "token": "hush"}
        reader = batch_reader.reader(options, SCHEMA)
        [partition] = reader.partitions()
        assert "hush" not in repr(partition) + repr(vars(reader))


# --- schemas


def test_the_schema_says_the_columns() -> None:
    base = {"nsqd": "a:1", "topic": "t"}
    assert rows.schema(base) == "topic string, node string, offset bigint, id string, timestamp timestamp, body binary"
    assert rows.schema({**base, "columns": "body,offset", "bodyAs": "string"}) == "body string, offset bigint"
    assert rows.schema({**base, "columns": "body", "bodyAs": "json", "schema": "a INT"}) == "body STRUCT<a INT>"


def test_a_struct_is_found_from_the_first_messages() -> None:
    with FakeNode(t=log_of([b'{"a":1}', b"no json", b'{"b":"x"}'])) as node:
        options = {"nsqd": node.address, "topic": "t", "columns": "body", "bodyAs": "json"}
        assert rows.schema(options) == "body STRUCT<`a`: BIGINT, `b`: STRING>"
        node.logs["t"] = log_of([b"no json"])
        with pytest.raises(BadOption, match="option schema: no JSON object is among the first messages"):
            rows.schema(options)


def test_a_schema_of_ones_own_may_choose_columns_and_nothing_else() -> None:
    options = source_options({"nsqd": "a:1", "topic": "t"})
    assert rows.checked(options, SCHEMA) is SCHEMA
    with pytest.raises(BadOption, match="the schema has a column body string: it is binary"):
        rows.checked(options, StructType().add("body", StringType()))
    with pytest.raises(BadOption, match="the schema has a column key string: there are topic, node"):
        rows.checked(options, StructType().add("key", StringType()))
