"""A range is read whatever the network and the node do; and its records become columns."""

from __future__ import annotations

import logging
from contextlib import closing

import pyarrow as pa
import pytest

from penstock.errors import CorruptLog, DataLost, NodeFailed
from penstock.protocol.batch import encode_records, seed_of
from penstock.spark.http import Access, Connection
from penstock.spark.source import decode
from penstock.spark.source.columns import TIME, Columns
from penstock.spark.source.fetching import Chunk, Fetch
from penstock.spark.source.offsets import Place
from penstock.spark.source.ranges import Range, within
from tests.unit.spark.source.nodes import FakeLog, FakeNode, log_of

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("node", pa.string()),
        ("offset", pa.int64()),
        ("id", pa.string()),
        ("timestamp", TIME),
        ("body", pa.binary()),
    ]
)
TEN = [[b"%d" % number for number in range(first, first + 2)] for first in range(0, 10, 2)]


@pytest.fixture(params=["compiled", "plain"])
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which of the two ways from records to columns is taken; in a plain build both are tried all the same."""
    monkeypatch.setattr(decode, "COMPILED", request.param == "compiled")
    return str(request.param)


def fetch(
    node: FakeNode,
    first: int,
    until: int,
    *skip: tuple[int, int],
    careful: bool = True,
    room: int = 4096,
    tries: int = 3,
) -> list[tuple[int, bytes]]:
    """Offset and body of each row."""
    place = Place(node.identity, "t")
    wanted = Range(place, "a" * 16, first, until, within(skip, first, until))
    found: list[tuple[int, bytes]] = []
    with closing(Connection(node.url, Access(timeout=5))) as connection:
        reading = Fetch(connection, wanted, tries=tries, careful=careful, pause=lambda _: None, room=room)
        for chunk in reading.chunks():
            rows = Columns(SCHEMA).batch(place, chunk, first, until)
            found += zip(rows["offset"].to_pylist(), rows["body"].to_pylist(), strict=True)
    return found


@pytest.mark.parametrize("room", [41, 100, 200, 4096])
@pytest.mark.parametrize(("first", "until"), [(0, 10), (1, 10), (3, 4), (4, 9), (9, 10)])
def test_a_range_is_read_whatever_fits_at_once(build: str, first: int, until: int, room: int) -> None:
    with FakeNode(t=log_of(*TEN)) as node:
        found = fetch(node, first, until, room=room)
    assert found == [(offset, b"%d" % offset) for offset in range(first, until)]


def test_an_answer_that_breaks_off_goes_on_where_its_last_batch_ended() -> None:
    # given a node whose answers break off, again and again
    with FakeNode(t=log_of(*TEN)) as node:
        node.broken = 4
        # then each message still comes once, since there is progress each time but the last
        assert fetch(node, 0, 10, tries=4) == [(offset, b"%d" % offset) for offset in range(10)]
        offsets = [request.partition("offset=")[2].partition("&")[0] for request in node.requests]
    assert offsets[:3] == ["0", "6", "8"]


def test_an_answer_that_breaks_off_between_two_batches_is_no_loss() -> None:
    # given batches of one size, so that two thirds of them are whole ones
    with FakeNode(t=log_of([b"0"], [b"1"], [b"2"])) as node:
        node.broken = 1
        assert [offset for offset, _ in fetch(node, 0, 3)] == [0, 1, 2]
        assert len(node.requests) == 2


def test_a_node_that_gives_nothing_any_more_is_given_up() -> None:
    with FakeNode(t=log_of([b"a" * 100])) as node:
        node.broken = 9
        with pytest.raises(NodeFailed, match="cannot be reached: an answer ended early"):
            fetch(node, 0, 1, tries=3)
        assert len(node.requests) == 3


def test_bytes_that_are_no_good_batch_are_never_rows() -> None:
    log = log_of(*TEN)
    log.batches[2] = log.batches[2][:-1] + b"?"
    with FakeNode(t=log) as node, pytest.raises(NodeFailed, match="for offset 4 of topic t is no good batch"):
        fetch(node, 0, 10)


def test_another_node_at_the_address_is_refused() -> None:
    with FakeNode(t=log_of(*TEN)) as node:
        place, node.identity = Place(node.identity, "t"), "2" * 16
        with closing(Connection(node.url, Access(timeout=5))) as connection:
            wanted = Range(place, "a" * 16, 0, 10)
            reading = Fetch(connection, wanted, tries=3, careful=True, pause=lambda _: None)
            with pytest.raises(NodeFailed, match="is not node 1111111111111111 any more"):
                list(reading.chunks())


# --- holes and losses


def holed(why: str) -> FakeLog:
    log = log_of([b"0", b"1"])
    log.hole(3, why)
    log.publish(b"5", b"6")
    return log


@pytest.mark.parametrize(("why", "skip"), [("emptied", []), ("lost", [(2, 5)]), ("damaged", [(1, 9)])])
def test_holes_that_were_planned_or_ordered_are_passed(why: str, skip: list[tuple[int, int]]) -> None:
    with FakeNode(t=holed(why)) as node:
        assert [offset for offset, _ in fetch(node, 0, 7, *skip)] == [0, 1, 5, 6]


@pytest.mark.parametrize("why", ["lost", "damaged"])
def test_a_hole_that_nobody_planned_ends_a_careful_read(why: str) -> None:
    with FakeNode(t=holed(why)) as node, pytest.raises(DataLost, match=r"topic t on .* the offsets 2 to 4 "):
        fetch(node, 0, 7)


def test_a_hole_at_the_end_is_seen() -> None:
    log = log_of([b"0"])
    log.hole(5, "lost")
    with FakeNode(t=log) as node, pytest.raises(DataLost, match="the offsets 1 to 5 were lost"):
        fetch(node, 0, 6)


def test_who_is_not_careful_gets_the_rest_and_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with FakeNode(t=holed("lost")) as node, caplog.at_level(logging.WARNING):
        assert [offset for offset, _ in fetch(node, 0, 7, careful=False)] == [0, 1, 5, 6]
    assert "the offsets 2 to 4 were lost in a power cut (3 offsets); reading goes on" in caplog.text


@pytest.mark.parametrize(
    ("sentence", "left"),
    [
        pytest.param("retention deleted the messages 0 to 3 before they were read", [4, 5, 6, 7, 8, 9], id="retention"),
        pytest.param("topic t on node 1111111111111111 is not there any more", [], id="deleted"),
        pytest.param("was deleted and made again", [], id="made-again"),
        pytest.param("ends at 0, and the query has read up to 1", [], id="older-backup"),
        pytest.param("ends at 4, and the query has read up to 0", [], id="shorter"),
    ],
)
def test_what_became_of_a_planned_range(sentence: str, left: list[int]) -> None:
    # given a range that was planned, and a node that has not all of it any more
    log = log_of(*TEN)
    with FakeNode(t=log) as node:
        if "retention" in sentence:
            log.earliest = 4
        elif "not there" in sentence:
            node.logs = {}
        elif "again" in sentence:
            log.incarnation = "b" * 16
        else:
            log.committed = 0 if "ends at 0" in sentence else 4
            log.batches = log.batches[: log.committed // 2]
        first = 1 if "ends at 0" in sentence else 0
        # then a careful reader ends with a line that says so
        if "ends at 4" not in sentence:
            with pytest.raises(DataLost, match=sentence):
                fetch(node, first, 10)
        # and another one gets what is left
        expected = [0, 1, 2, 3] if "ends at 4" in sentence else left
        assert [offset for offset, _ in fetch(node, first, 10, careful=False)] == expected


# --- columns


def chunk(*bodies: bytes, first: int = 7) -> Chunk:
    data = encode_records(first, 1 << 60, bodies, 1_767_225_600_123_456_789, seed_of("a"))
    return Chunk(memoryview(data), len(data), first, first + len(bodies))


def test_columns_are_those_that_were_asked_for_in_their_order(build: str) -> None:
    # given records, one of them empty, in a batch that was published under a key
    schema = pa.schema([SCHEMA.field(name) for name in ("body", "id", "timestamp", "node", "offset", "topic")])
    data = encode_records(7, 1 << 60, [b"one", b"", b"\xff" * 300], 1_767_225_600_123_456_789, 5, flags=1, key=b"key")
    # when they become rows
    rows = Columns(schema).batch(Place("n", "t"), Chunk(memoryview(data), len(data), 7, 10), 0, 99)
    rows.validate(full=True)
    # then they are these
    assert rows.schema == schema
    assert rows["body"].to_pylist() == [b"one", b"", b"\xff" * 300]
    assert rows["id"].to_pylist() == ["1000000000000007", "1000000000000008", "1000000000000009"]
    assert rows["timestamp"].cast(pa.int64()).to_pylist() == [1_767_225_600_123_456] * 3
    assert (rows["offset"].to_pylist(), rows["node"].to_pylist()) == ([7, 8, 9], ["n", "n", "n"])
    assert rows["topic"].to_pylist() == ["t", "t", "t"]


@pytest.mark.parametrize(("first", "until", "expected"), [(0, 8, [7]), (8, 9, [8]), (9, 50, [9]), (7, 10, [7, 8, 9])])
def test_rows_are_those_of_the_range(build: str, first: int, until: int, expected: list[int]) -> None:
    rows = Columns(SCHEMA).batch(Place("n", "t"), chunk(b"7", b"8", b"9"), first, until)
    rows.validate(full=True)
    assert rows["offset"].to_pylist() == expected
    assert rows["body"].to_pylist() == [b"%d" % number for number in expected]
    assert rows["id"].to_pylist() == [f"100000000000000{number}" for number in expected]


def test_both_ways_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for compiled in (True, False):
        monkeypatch.setattr(decode, "COMPILED", compiled)
        many = chunk(*(b"m" * (number % 300) for number in range(20_000)), first=0)
        found.append(Columns(SCHEMA).batch(Place("n", "t"), many, 5, 19_990))
    assert found[0].equals(found[1])


@pytest.mark.parametrize("size", [0, 25, 26 + 4, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_record_whose_size_lies_is_no_row(build: str, size: int) -> None:
    # given a batch whose only record says another size than it has
    data = chunk(b"abc")
    data.data[40:44] = size.to_bytes(4, "big")
    with pytest.raises(CorruptLog):
        Columns(SCHEMA).batch(Place("n", "t"), data, 0, 99)


def test_a_string_body_has_the_same_bytes(build: str) -> None:
    rows = Columns(pa.schema([("body", pa.string())])).batch(Place("n", "t"), chunk("wörter".encode()), 0, 99)
    assert rows["body"].to_pylist() == ["wörter"]
