"""Rows of an Arrow batch: which are bad, which belong together."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import SparkError
from penstock.spark.sink.layout import Layout
from penstock.spark.sink.options import SinkOptions
from penstock.spark.sink.rows import Limits, Place, Rows

NOW = 1_700_000_000


def rows(columns: dict[str, list[Any]], *, key: str = "", bad_rows: str = "fail") -> tuple[Rows, pa.RecordBatch]:
    """Of a task that publishes to three nodes, and what it is given."""
    types = {"body": None if isinstance(next(iter(columns["body"]), b""), str) else pa.binary()}
    arrays = {name: pa.array(values, types.get(name)) for name, values in columns.items()}
    at_time = "defer" in arrays and pa.types.is_timestamp(arrays["defer"].type)
    layout = Layout("body", "topic" if "topic" in columns else "", "defer" if "defer" in columns else "", at_time, key)
    options = SinkOptions(nsqd=("http://a:1",), topic="" if "topic" in columns else "t", bad_rows=bad_rows)
    return Rows(layout, options, 3, Limits(message=10), clock=lambda: NOW), pa.RecordBatch.from_pydict(arrays)


def split(made: tuple[Rows, pa.RecordBatch]) -> list[tuple[Place, list[bytes]]]:
    found, batch = made
    return [(place, bodies.to_pylist()) for place, bodies in found.split(batch)]


def test_rows_of_one_topic_are_one() -> None:
    assert split(rows({"body": [b"a", b"b"]})) == [(Place("t", -1), [b"a", b"b"])]
    assert split(rows({"body": ["ä", "b"]})) == [(Place("t", -1), ["ä".encode(), b"b"])]


def test_topics_keep_the_order_of_their_rows() -> None:
    made = rows({"body": [b"1", b"2", b"3", b"4"], "topic": ["x", "y", "x", "y"]})
    assert split(made) == [(Place("x", -1), [b"1", b"3"]), (Place("y", -1), [b"2", b"4"])]


def nodes_of(*keys: bytes) -> dict[bytes, int]:
    return {key: place.node for place, bodies in split(rows({"body": [*keys]}, key="body")) for key in bodies}


def test_a_key_says_which_node_whatever_the_batch() -> None:
    keys = [b"k%d" % number for number in range(9)]
    one = nodes_of(*keys)
    assert nodes_of(*reversed(keys[2:])).items() <= one.items()
    assert {*one.values()} == {0, 1, 2}
    # and numbers and null are keys too
    assert split(rows({"body": [b"a", b"b"], "n": [7, None]}, key="n"))


def test_delays_are_apart() -> None:
    made = rows({"body": [b"now", b"soon", b"null", b"later"], "defer": [0, 500, None, 900]})
    assert split(made) == [
        (Place("t", -1), [b"now", b"null"]),
        (Place("t", -1, delay=500), [b"soon"]),
        (Place("t", -1, delay=900), [b"later"]),
    ]


def test_times_are_rounded_up_so_that_rows_share_them() -> None:
    # given rows that are due within a tenth of a second, one past, one at no time
    whens = [datetime.fromtimestamp(NOW, UTC).replace(microsecond=micros) for micros in (1, 99_999, 100_000, 100_001)]
    made = rows({"body": [b"%d" % n for n in range(6)], "defer": [*whens, datetime(2000, 1, 1, tzinfo=UTC), None]})
    # then none is early
    assert split(made) == [
        (Place("t", -1, due=NOW * 10**9 + 100_000_000), [b"0", b"1", b"2"]),
        (Place("t", -1, due=NOW * 10**9 + 200_000_000), [b"3"]),
        (Place("t", -1, due=946_684_800 * 10**9), [b"4"]),
        (Place("t", -1), [b"5"]),
    ]


NO_TOPIC = "its topic is null or no name of a topic"
BAD = [
    pytest.param({"body": [b"a", None]}, "its body is null", id="null"),
    pytest.param({"body": [b"a", b""]}, "its body is empty", id="empty"),
    pytest.param({"body": [b"a", b"x" * 11]}, "its body is above 10 bytes", id="large"),
    pytest.param({"body": [b"a", b"b"], "topic": ["t", None]}, NO_TOPIC, id="no-topic"),
    pytest.param({"body": [b"a", b"b"], "topic": ["t", "ü"]}, NO_TOPIC, id="bad-topic"),
    pytest.param({"body": [b"a", b"b"], "defer": [0, -1]}, "its delay is below 0", id="past"),
    pytest.param({"body": [b"a", b"b"], "defer": [0, 3_600_001]}, "its delay is above 3600000 ms", id="far"),
]


@pytest.mark.parametrize(("columns", "why"), BAD)
def test_a_bad_row_says_which_and_why(columns: dict[str, list[Any]], why: str) -> None:
    found, batch = rows(columns)
    with pytest.raises(SparkError, match=f"^row 1 of the partition cannot be published: {why}; with badRows=skip"):
        list(found.split(batch))


@pytest.mark.parametrize(("columns", "why"), BAD)
def test_the_others_are_published_where_bad_rows_are_skipped(columns: dict[str, list[Any]], why: str) -> None:
    found, batch = rows(columns, bad_rows="skip")
    assert [bodies.to_pylist() for _, bodies in found.split(batch)] == [[b"a"]]
    assert found.bad == {why.removeprefix("its "): 1}


@pytest.mark.parametrize(("columns", "why"), BAD)
def test_a_dead_letter_says_what_became_of_a_row(columns: dict[str, list[Any]], why: str) -> None:
    found, batch = rows(columns, bad_rows="deadletter:letters")
    (place, letters), (_, others) = found.split(batch)
    assert (place, others.to_pylist()) == (Place("letters", -1), [b"a"])
    body = columns["body"][1]
    assert json.loads(letters[0].as_py()) == {
        "reason": why,
        "topic": columns["topic"][1] if "topic" in columns else "t",
        "body": body if body is None else body.decode(),
    }


def test_the_number_of_a_bad_row_counts_from_the_partition_s_first() -> None:
    found, batch = rows({"body": [b"a", b"b"]})
    list(found.split(batch))
    with pytest.raises(SparkError, match=r"^row 3 of the partition"):
        list(found.split(rows({"body": [b"a", None]})[1]))


def test_no_rows_are_nothing() -> None:
    assert split(rows({"body": []})) == []
    assert split(rows({"body": [None, b""]}, bad_rows="skip")) == []
