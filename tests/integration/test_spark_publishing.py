"""What a task of the Spark sink does with real nodes, without a Spark: once, whatever is run again or killed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import NodeFailed, SparkError
from penstock.protocol.batch import records
from penstock.spark.sink import nodes as known_nodes
from penstock.spark.sink import publishing
from penstock.spark.sink.layout import Layout
from penstock.spark.sink.nodes import nodes_of
from penstock.spark.sink.numbering import Numbering
from penstock.spark.sink.options import sink_options
from penstock.spark.sink.publishing import Published, Publishing, leave_marks
from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http

LAYOUT = Layout("body", "", "", False, "")


@pytest.fixture(scope="module")
def nsqd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Nsqd]]:
    """Two for all tests here: each has topics of its own."""
    found = [Nsqd(tmp_path_factory.mktemp(f"nsqd{number}")) for number in range(2)]
    yield found
    for daemon in found:
        assert daemon.stop() == 0
        daemon.assert_calm()


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    known_nodes._known.clear()
    publishing._recognized.clear()


def given(nsqd: list[Nsqd], **more: str) -> dict[str, str]:
    return {"nsqd": ",".join(f"127.0.0.1:{daemon.http}" for daemon in nsqd), "topic": "t", "chunkBytes": "100", **more}


def run(
    nsqd: list[Nsqd], bodies: list[bytes], batch: int = 0, query: str = "", partition: int = 0, **more: str
) -> Published:
    """A task of a stream, which is named like its topic."""
    options = sink_options(given(nsqd, **more))
    nodes = nodes_of(options)
    numbering = Numbering(query or more["topic"], batch, partition) if nodes.once else None
    rows = [pa.RecordBatch.from_pydict({"body": bodies[at : at + 50]}) for at in range(0, len(bodies), 50)]
    return Publishing(options, LAYOUT, nodes, partition, numbering).run(rows)


def content(nsqd: list[Nsqd], topic: str) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for daemon in nsqd:
        web, offset = Http(daemon.http), 0
        while (answer := web.get(f"/log/read?topic={topic}&offset={offset}")).status == 200 and answer.body:
            found.update(record.body for record in records(answer.body))
            offset = int(answer.headers["x-penstock-next"])
        web.close()
    return found


def some(count: int = 200) -> list[bytes]:
    return [b"message %d" % number for number in range(count)]


def test_a_task_that_is_run_again_publishes_nothing_twice(nsqd: list[Nsqd]) -> None:
    for _ in range(2):
        assert run(nsqd, some(), topic="again").rows == 200
    run(nsqd, some(), batch=1, topic="again", failOnStateLoss="false")
    assert content(nsqd, "again") == Counter(dict.fromkeys(some(), 2))


def test_a_task_that_was_broken_off_is_gone_on_with(nsqd: list[Nsqd]) -> None:
    # given a task that ended in the middle of its rows
    class Broken(Exception):
        pass

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"body": some()[:100]})
        raise Broken

    options = sink_options(given(nsqd, topic="broken"))
    with pytest.raises(Broken):
        Publishing(options, LAYOUT, nodes_of(options), 0, Numbering("broken", 0, 0)).run(rows())
    assert 0 < content(nsqd, "broken").total() < 200
    # when it is run again, then each is there once
    run(nsqd, some(), topic="broken")
    assert content(nsqd, "broken") == Counter(some())


@pytest.mark.parametrize(
    "others",
    [
        pytest.param(some()[::-1], id="another-order"),
        pytest.param([*some()[:-1], b"another"], id="another-row"),
        pytest.param(some()[:150], id="fewer"),
        pytest.param([], id="none"),
    ],
)
def test_a_batch_that_is_no_repeat_fails_and_adds_nothing(nsqd: list[Nsqd], others: list[bytes]) -> None:
    # given a batch that was published, and another one under its number
    topic = f"other-{len(others)}-{(others or [b''])[-1].decode().replace(' ', '-')}"
    run(nsqd, some(), topic=topic)
    with pytest.raises(SparkError, match="this batch was published before, with other rows or in another order"):
        run(nsqd, others, topic=topic)
    # then what is there stays
    assert content(nsqd, topic) == Counter(some())


def test_partitions_and_queries_are_apart(nsqd: list[Nsqd]) -> None:
    for partition in range(3):
        run(nsqd, some(), topic="apart", partition=partition)
    run(nsqd, some(), topic="apart", query="another")
    assert set(content(nsqd, "apart").values()) == {4}


def test_a_query_goes_on_where_every_node_knows_it_by_its_place(nsqd: list[Nsqd]) -> None:
    # given a query whose first batch is through
    options = sink_options(given(nsqd, topic="marks"))
    run(nsqd, some(), topic="marks", query="marked")
    leave_marks(options, nodes_of(options), "marked", 0)
    run(nsqd, some(), batch=1, topic="marks", query="marked")
    # when the option's list is another one, or it is another query, then it does not
    publishing._recognized.clear()
    with pytest.raises(SparkError, match="had another place in option nsqd before, so what was being published"):
        run(nsqd[::-1], some(), batch=2, topic="marks", query="marked")
    with pytest.raises(
        SparkError, match="does not know this query, so what was being published when the query stopped"
    ):
        run(nsqd, some(), batch=2, topic="marks", query="unknown")


def test_at_least_once_has_no_numbers_and_another_node_stands_in(nsqd: list[Nsqd]) -> None:
    # given one node that is there and one that is not
    options = sink_options(given(nsqd[:1], topic="least", delivery="at-least-once"))
    gone = known_nodes.Nodes(
        ("http://127.0.0.1:9", f"http://127.0.0.1:{nsqd[0].http}"), nodes_of(options).limits, False
    )
    rows = [pa.RecordBatch.from_pydict({"body": some(20)})]
    assert Publishing(options, LAYOUT, gone, 0, None).run(rows).rows == 20
    assert content(nsqd, "least") == Counter(some(20))


def test_exactly_once_waits_for_its_node_and_then_gives_up(nsqd: list[Nsqd]) -> None:
    options = sink_options(given(nsqd[:1], topic="waits", sinkTimeout="300ms"))
    gone = known_nodes.Nodes(("http://127.0.0.1:9",), nodes_of(options).limits, True)
    rows = [pa.RecordBatch.from_pydict({"body": some(1)})]
    with pytest.raises(
        NodeFailed, match=r"127.0.0.1:9 cannot be reached: .*; it was sent again for 0.3 s \(option sinkT"
    ):
        Publishing(options, LAYOUT, gone, 0, Numbering("q", 0, 0)).run(rows)


@pytest.mark.slow
@pytest.mark.parametrize("flag", [[], ["--sync-every=1"]], ids=["", "flushed-each"])
def test_nodes_may_be_killed_meanwhile(tmp_path: Path, flag: list[str]) -> None:
    # given a task that publishes slowly enough, and a node that is killed and started again under it
    (tmp_path / "n").mkdir()
    daemon = Nsqd(tmp_path / "n", *flag)
    port = daemon.http
    daemon.flags = (*daemon.flags, f"--http-address=127.0.0.1:{port}")
    options = sink_options(given([daemon], topic="killed", chunkBytes="1k", sinkTimeout="20s"))
    nodes = nodes_of(options)
    reached = threading.Event()

    def rows() -> Iterator[pa.RecordBatch]:
        for at in range(0, 20_000, 100):
            if at in (5_000, 15_000):
                reached.set()
                killed.wait(20)
                killed.clear()
            yield pa.RecordBatch.from_pydict({"body": some(20_000)[at : at + 100]})

    killed = threading.Event()
    outcome: list[Any] = []
    task = threading.Thread(
        target=lambda: outcome.append(Publishing(options, LAYOUT, nodes, 0, Numbering("q", 0, 0)).run(rows()))
    )
    task.start()
    for _ in range(2):
        assert reached.wait(20)
        reached.clear()
        daemon.kill()
        killed.set()  # it goes on while nobody is there
        daemon.start()
    task.join(30)
    # then each is there once
    assert [published.rows for published in outcome] == [20_000]
    assert content([daemon], "killed") == Counter(some(20_000))
    assert daemon.stop() == 0
