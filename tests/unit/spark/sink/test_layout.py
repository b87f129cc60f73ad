"""Which columns are published, and the sink's options: what cannot be is refused before any row comes."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.errors import BadOption
from penstock.spark.sink.layout import Layout, layout_of
from penstock.spark.sink.options import sink_options

NODE = {"nsqd": "a:4151"}
TYPES: dict[str, DataType] = {
    "BINARY": BinaryType(), "STRING": StringType(), "INT": IntegerType(), "TIMESTAMP": TimestampType(),
    "TIMESTAMP_NTZ": TimestampNTZType(),
}  # fmt: skip
TOPIC = {**NODE, "topic": "t"}


def layout(ddl: str, given: dict[str, str]) -> Layout:
    schema = StructType()
    for field in ddl.split(", "):
        name, kind = field.split()
        schema.add(name, TYPES[kind])
    return layout_of(schema, sink_options(given))


@pytest.mark.parametrize(
    ("ddl", "given", "expected"),
    [
        pytest.param("body BINARY", TOPIC, Layout("body", "", "", False, ""), id="body"),
        pytest.param("topic STRING, body STRING", NODE, Layout("body", "topic", "", False, ""), id="topic"),
        pytest.param("topic STRING, body STRING", TOPIC, Layout("body", "", "", False, ""), id="the-option-goes-first"),
        pytest.param("body BINARY, defer INT", TOPIC, Layout("body", "", "defer", False, ""), id="ms"),
        pytest.param("body BINARY, defer TIMESTAMP", TOPIC, Layout("body", "", "defer", True, ""), id="at-a-time"),
        pytest.param("body BINARY, k INT", {**TOPIC, "keyColumn": "k"}, Layout("body", "", "", False, "k"), id="key"),
        pytest.param(
            "a INT, body STRING, defer INT, topic STRING",
            {**NODE, "bodyAs": "json"},
            Layout("", "topic", "defer", False, "", ("a", "body")),
            id="json",
        ),
    ],
)
def test_columns_say_what_is_published(ddl: str, given: dict[str, str], expected: Layout) -> None:
    assert layout(ddl, given) == expected


@pytest.mark.parametrize(
    ("ddl", "given", "sentence"),
    [
        pytest.param("body BINARY", NODE, "option topic: it must say what is published to, or a column", id="nowhere"),
        pytest.param("a INT", TOPIC, "a column `body` is published, and there are a: rename one", id="no-body"),
        pytest.param("body INT", TOPIC, "column body is int, and has to be binary or string", id="body-type"),
        pytest.param("body BINARY, topic INT", NODE, "column topic is int, and has to be string", id="topic-type"),
        pytest.param("body BINARY, defer STRING", TOPIC, "column defer is string, and has to be tinyint", id="defer"),
        pytest.param("body BINARY, defer TIMESTAMP_NTZ", TOPIC, "column defer is timestamp_ntz", id="no-zone"),
        pytest.param("body BINARY, a INT", TOPIC, "columns a would not be published: drop them", id="unused"),
        pytest.param("body BINARY", {**TOPIC, "keyColumn": "k"}, "there is no column k, there are body", id="no-key"),
        pytest.param("defer INT", {**TOPIC, "bodyAs": "json"}, "there is no column that json could be", id="no-json"),
        pytest.param("body BINARY", {**NODE, "topic": "ü"}, "option topic: 'ü' is no name of a topic", id="bad-topic"),
        pytest.param("body BINARY", {**TOPIC, "badRows": "ignore"}, "is none of fail, skip, deadletter", id="bad-rows"),
        pytest.param("body BINARY", {**TOPIC, "badRows": "deadletter:ü"}, "is none of fail", id="bad-letters"),
        pytest.param("body BINARY", {**TOPIC, "chunkBytes": "0"}, "option chunkBytes: 0 is below 1", id="no-chunk"),
        pytest.param("body BINARY", {**TOPIC, "bdoy": "1"}, "option bdoy is unknown: did you mean", id="a-slip"),
        pytest.param(
            "body BINARY",
            {"lookupd": "a:4161", "topic": "t", "delivery": "exactly-once"},
            "option delivery: exactly-once needs option nsqd",
            id="once-by-lookup",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(ddl: str, given: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadOption) as refused:
        layout(ddl, given)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_query_s_own_options_are_passed_over() -> None:
    assert sink_options({**TOPIC, "checkpointLocation": "/x", "queryName": "q"}).topic == "t"


def test_a_dead_letter_topic_keeps_its_case() -> None:
    assert sink_options({**TOPIC, "badRows": "deadletter:Bad"}).deadletter == "Bad"
    assert sink_options({**TOPIC, "badRows": "Skip"}).bad_rows == "skip"
