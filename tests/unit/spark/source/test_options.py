"""The source's options: what is refused, by its name, before any node is asked."""

from __future__ import annotations

import pytest

from penstock.errors import BadOption
from penstock.spark.source.bounds import EARLIEST, LATEST, bound_of, moment_of, resolve
from penstock.spark.source.log import Log
from penstock.spark.source.offsets import Place, Position
from penstock.spark.source.options import source_options

HERE = {"nsqd": "a:4151", "topic": "t"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        pytest.param({"nsqd": "a:1"}, "options topic and topicPattern: one of them", id="no-topic"),
        pytest.param({**HERE, "topicPattern": "x"}, "options topic and topicPattern: one of them", id="both-topics"),
        pytest.param({"nsqd": "a:1", "topic": "a b"}, "option topic: 'a b' is no name", id="bad-topic"),
        pytest.param({"nsqd": "a:1", "topic": "a,b#ephemeral"}, "b#ephemeral is ephemeral", id="ephemeral"),
        pytest.param({"nsqd": "a:1", "topicPattern": "("}, "option topicPattern: '(' is no regular", id="bad-pattern"),
        pytest.param({**HERE, "columns": "body,size"}, "option columns: there is no 'size'", id="unknown-column"),
        pytest.param({**HERE, "columns": "body,body"}, "option columns: one at least, and none twice", id="twice"),
        pytest.param({**HERE, "bodyAs": "xml"}, "option bodyAs: 'xml' is none of binary, string, json", id="body-as"),
        pytest.param({**HERE, "schema": "a INT"}, "option schema: it is for bodyAs=json", id="schema-alone"),
        pytest.param({**HERE, "startingOffsets": "first"}, "option startingOffsets: 'first' is neither", id="no-bound"),
        pytest.param({**HERE, "startingOffsets": '{"t":5}'}, "option startingOffsets: this JSON", id="no-offsets"),
        pytest.param({**HERE, "startingOffsets": '{"t":{"n":-3}}'}, "option startingOffsets: this JSON", id="below"),
        pytest.param({**HERE, "endingOffsets": "earliest"}, "option endingOffsets: a batch that ends", id="ends-first"),
        pytest.param(
            {**HERE, "startingOffsets": "latest", "startingTimestamp": "1"},
            "options startingOffsets and startingTimestamp: only one",
            id="two-beginnings",
        ),
        pytest.param(
            {**HERE, "startingTimestamp": "soon"}, "option startingTimestamp: 'soon' is neither", id="no-time"
        ),
        pytest.param({**HERE, "endingTimestamp": "2026-01-31T12:00:00"}, "says no time zone", id="no-zone"),
        pytest.param({**HERE, "reader": "a b"}, "option reader: 'a b' is no name", id="reader"),
        pytest.param({**HERE, "minPartitions": "0"}, "option minPartitions: 0 is below 1", id="no-partition"),
        pytest.param({**HERE, "maxRowsPerTrigger": "1", "maxOffsetsPerTrigger": "2"}, "are the same", id="alias"),
        pytest.param({**HERE, "fetchTimeout": "30"}, "option fetchTimeout: a duration needs a unit", id="no-unit"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadOption) as refused:
        source_options(given)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "pushdown", "bodyAs"])
def test_what_is_for_batches_is_refused_in_a_stream(name: str) -> None:
    values = {"endingOffsets": "latest", "endingTimestamp": "5", "pushdown": "true", "bodyAs": "json"}
    options = source_options({**HERE, name: values[name]})
    assert options.for_batch() is options
    with pytest.raises(BadOption, match="option (schema|" + name + "): "):
        options.for_stream()


def test_a_batch_from_the_latest_is_refused() -> None:
    options = source_options({**HERE, "startingOffsets": "latest"})
    assert options.for_stream() is options
    with pytest.raises(BadOption, match="option startingOffsets: a batch that begins at the latest reads nothing"):
        options.for_batch()


def test_topics_are_chosen_by_name_or_pattern() -> None:
    assert source_options({"nsqd": "a:1", "topic": "a, b"}).topic == ("a", "b")
    pattern = source_options({"nsqd": "a:1", "topicPattern": r"orders\..*"})
    assert [pattern.chooses(topic) for topic in ("orders.eu", "my.orders.eu", "orders.x#ephemeral")] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1767225600000", 1_767_225_600 * 10**9),
        ("2026-01-01T00:00:00Z", 1_767_225_600 * 10**9),
        ("2026-01-01T01:00:00.000001+01:00", 1_767_225_600 * 10**9 + 1000),
        ("1900-01-01T00:00:00Z", 0),
    ],
)
def test_times_are_milliseconds_or_iso(text: str, time: int) -> None:
    assert moment_of("startingTimestamp", text).time == time


ONE, TWO = Place("n1", "t"), Place("n2", "t")
LOGS = {place: Log(place, "http://n", "a", 3, 9) for place in (ONE, TWO)}


@pytest.mark.parametrize(
    ("text", "default", "expected"),
    [
        ("earliest", LATEST, [3, 3]),
        ("Latest", EARLIEST, [9, 9]),
        ('{"t":{"n1":5}}', EARLIEST, [5, 3]),
        ('{"t":{"n1":-1,"n2":-2}}', EARLIEST, [9, 3]),
        ('{"v":1,"nodes":{"n2":{"t":["a",7]}}}', LATEST, [9, 7]),
    ],
)
def test_where_a_bound_is(text: str, default: int, expected: list[int]) -> None:
    found = resolve(bound_of("startingOffsets", text), default, LOGS, {})
    assert [found[place].offset for place in (ONE, TWO)] == expected


def test_offsets_of_another_incarnation_keep_it() -> None:
    bound = bound_of("startingOffsets", '{"v":1,"nodes":{"n2":{"t":["b",7]}}}')
    assert resolve(bound, EARLIEST, LOGS, {})[TWO] == Position("b", 7)


def test_offsets_of_what_is_not_read_are_refused() -> None:
    with pytest.raises(BadOption, match="option startingOffsets: topic x on node n1 is not read: there is t on n1"):
        resolve(bound_of("startingOffsets", '{"x":{"n1":5}}'), EARLIEST, LOGS, {})
