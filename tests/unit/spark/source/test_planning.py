"""What the next batch reads: from positions, what there is, and limits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DataLost, SparkError
from penstock.spark.source import loss
from penstock.spark.source.log import Hole, Log, Segment
from penstock.spark.source.offsets import Offsets, Place, Position, offsets_of
from penstock.spark.source.planning import Limits, plan
from penstock.spark.source.ranges import ranges_of, split

ANY = Limits()
T, U = Place("node1", "t"), Place("node2", "t")


def log(
    place: Place = T, earliest: int = 0, committed: int = 10, *holes: Hole, incarnation: str = "a", **more: bool
) -> Log:
    segments = (Segment(0, committed, 100 * committed),)
    return Log(place, "http://n:4151", incarnation, earliest, committed, segments, holes, **more)


def logs(*many: Log) -> dict[Place, Log]:
    return {each.place: each for each in many}


def at(offset: int, place: Place = T, incarnation: str = "a") -> Offsets:
    return Offsets({place: Position(incarnation, offset)})


def read(start: Offsets, end: Offsets) -> list[tuple[Place, int, int]]:
    return [(each.place, each.first, each.until) for each in ranges_of(start, end)]


def test_a_batch_goes_on_where_the_one_before_ended() -> None:
    end, losses = plan(at(4), logs(log()), ANY)
    assert (read(at(4), end), losses) == ([(T, 4, 10)], ())


def test_a_log_that_is_new_is_read_from_its_earliest() -> None:
    # given a node that joined, when a batch is planned
    start = at(10)
    end, losses = plan(start, logs(log(), log(U, 3, 7)), ANY)
    # then it is read from the start, and that is no loss
    assert (read(start, end), losses) == ([(U, 3, 7)], ())
    # and the same again, whatever retention deleted meanwhile
    assert read(offsets_of(json.loads(json.dumps(start.as_json()))), end) == [(U, 3, 7)]


def test_who_is_not_there_is_waited_for() -> None:
    start = Offsets({T: Position("a", 4), U: Position("a", 5)})
    end, losses = plan(start, logs(log()), ANY)
    assert (end.positions[U], losses) == (Position("a", 5), ())


def test_the_first_batch_says_from_where_it_was_read() -> None:
    # given a beginning that stands in no checkpoint, and the end that was planned from it
    end, _ = plan(Offsets({T: Position("a", 4)}, initial=True), logs(log()), ANY)
    # then another beginning, which Spark asks for after a crash, changes nothing
    assert read(Offsets({T: Position("a", 9)}, initial=True), end) == [(T, 4, 10)]
    assert not end.initial


def test_a_limit_is_shared_by_lag() -> None:
    start = Offsets({T: Position("a", 0), U: Position("a", 0)})
    end, _ = plan(start, logs(log(committed=300), log(U, committed=100)), Limits(records=100))
    assert read(start, end) == [(T, 0, 75), (U, 0, 25)]


def test_holes_count_nothing() -> None:
    # given a hole of a million offsets
    found = log(T, 0, 1_000_020, Hole(10, 1_000_010, "emptied"))
    # then a limit of 15 messages goes through it
    end, losses = plan(at(0), logs(found), Limits(records=15))
    assert (end.positions[T].offset, losses) == (1_000_015, ())
    [part] = split(ranges_of(at(0), end), end.split)
    assert sum(each.size for each in part.ranges) == 15


def test_a_log_that_only_has_a_hole_left_is_passed() -> None:
    end, _ = plan(at(10), logs(log(T, 0, 500, Hole(10, 500, "emptied"))), Limits(records=1))
    assert end.positions[T].offset == 500
    assert split(ranges_of(at(10), end), end.split) == []


def test_bytes_limit_about_as_many_messages_as_the_segments_say() -> None:
    end, _ = plan(at(0), logs(log(committed=1000)), Limits(bytes=5_000))
    assert end.positions[T].offset == 50


def test_a_message_that_is_larger_than_the_limit_is_read_alone() -> None:
    end, _ = plan(at(0), logs(log()), Limits(bytes=1))
    assert end.positions[T].offset == 1


@pytest.mark.parametrize(
    ("limits", "total", "expected"),
    [
        (Limits(per_partition=100), 1000, 100),
        (Limits(per_partition=100, partitions=50), 1000, 20),
        (Limits(per_partition=100, partitions=5000), 1000, 1),
        (Limits(per_partition=100), 0, 1),
        (Limits(), 200_000, 200_000),
        (Limits(), 1_000_000, 250_000),
        (Limits(), 4_000_000, 500_000),
        (Limits(), 50_000_000, 1_000_000),
        (Limits(partitions=64), 4_000_000, 62_500),
    ],
)
def test_how_large_partitions_are(limits: Limits, total: int, expected: int) -> None:
    assert limits.split(total) == expected


@given(st.integers(1, 500), st.integers(1, 40))
def test_there_are_as_many_partitions_as_were_asked_for(total: int, least: int) -> None:
    end, _ = plan(at(0), logs(log(committed=total)), Limits(partitions=least))
    assert len(split(ranges_of(at(0), end), end.split)) >= min(total, least)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=4), st.integers(1, 30), st.integers(0, 100))
def test_batch_after_batch_reads_each_message_once(holes: list[tuple[int, int]], most: int, earliest: int) -> None:
    # given a log with holes in it
    gaps = [Hole(first, first + size, "emptied") for first, size in holes]
    there = log(T, earliest, 100, *gaps)
    # when it is read in batches
    start, came = at(earliest), list[int]()
    while start.positions[T].offset < 100:
        end, losses = plan(start, logs(there), Limits(records=most))
        assert not losses
        assert end.positions[T].offset > start.positions[T].offset
        came += [o for each in ranges_of(start, end) for first, until in each.solid() for o in range(first, until)]
        start = end
    # then each message came, in order
    assert came == [o for o in range(earliest, 100) if not any(gap.first <= o < gap.next for gap in gaps)]


# --- losses


@pytest.mark.parametrize(
    ("there", "sentence", "goes_on"),
    [
        pytest.param(
            log(earliest=7), "retention deleted the messages 4 to 6 before they were read", (T, 7, 10), id="retention"
        ),
        pytest.param(
            log(incarnation="b", earliest=2),
            "was deleted and made again: the query has read 4 messages of incarnation a, and now it is b",
            (T, 2, 10),
            id="incarnation",
        ),
        pytest.param(
            log(committed=3),
            "ends at 3, and the query has read up to 4: was an older backup restored?",
            None,
            id="backup",
        ),
        pytest.param(
            log(T, 0, 10, Hole(5, 8, "lost")), "the offsets 5 to 7 were lost in a power cut", (T, 4, 10), id="power-cut"
        ),
        pytest.param(
            log(T, 0, 10, Hole(0, 6, "damaged")), "the offsets 4 to 5 are damaged on its disk", (T, 4, 10), id="damage"
        ),
    ],
)
def test_what_is_lost_is_told_and_what_is_left_is_read(
    there: Log, sentence: str, goes_on: tuple[Place, int, int] | None
) -> None:
    # given a query that has read up to 4
    end, [lost] = plan(at(4), logs(there), ANY)
    # then the loss is one line that says where, what, and what to do
    assert sentence in lost.sentence
    assert str(lost.error()).startswith("topic t on http://n:4151 (node node1)")
    assert str(lost.error()).endswith("; failOnDataLoss=false reads on without them")
    assert "\n" not in lost.sentence
    # and who reads on without it gets the rest
    assert read(at(4), end) == ([goes_on] if goes_on else [])


def test_a_loss_behind_the_limit_is_none_yet() -> None:
    there = logs(log(T, 0, 10, Hole(8, 9, "lost")))
    end, losses = plan(at(4), there, Limits(records=4))
    assert (end.positions[T].offset, losses) == (8, ())
    assert plan(end, there, Limits(records=1)).losses


def test_an_end_below_the_position_is_no_loss_for_a_paused_reader() -> None:
    end, losses = plan(at(4), logs(log(committed=3, paused=True)), ANY)
    assert (end.positions[T].offset, losses) == (4, ())


def test_who_is_gone_is_forgotten() -> None:
    # given a topic that was deleted
    end, [lost] = plan(at(4), {}, ANY, {T: loss.topic_gone(T, "http://n:4151", Position("a", 4))})
    # then it is told, and when it is made again it is read from its earliest
    assert "is not there any more, and the query has read up to 4" in lost.sentence
    assert read(end, plan(end, logs(log(incarnation="b")), ANY).end) == [(T, 0, 10)]


def test_a_node_that_is_another_one_now_is_named() -> None:
    sentence = loss.node_gone(T, Position("a", 4), ["http://n:4151"]).sentence
    assert sentence.startswith("topic t on node node1, read up to 4: none of http://n:4151 is that node")


def test_a_careful_query_ends_with_the_first_loss() -> None:
    losses = plan(at(4), logs(log(earliest=7)), ANY).losses
    with pytest.raises(DataLost, match="retention deleted"):
        loss.judge(losses, careful=True, logger=None)  # type: ignore[arg-type]


# --- found when it is read


@pytest.mark.parametrize(
    ("there", "sentences"),
    [
        pytest.param(None, ["is not there any more"], id="deleted"),
        pytest.param(log(incarnation="b"), ["was deleted and made again"], id="made-again"),
        pytest.param(log(earliest=6), ["messages 4 to 5", "offsets 6 to 7 hold nothing"], id="retention"),
        pytest.param(log(earliest=9), ["messages 4 to 8"], id="retention-of-all"),
        pytest.param(log(committed=2), ["ends at 2"], id="backup"),
        pytest.param(log(T, 0, 10, Hole(3, 9, "emptied")), [], id="emptied"),
        pytest.param(log(T, 0, 10, Hole(3, 6, "emptied"), Hole(6, 9, "lost")), ["6 to 7 were lost"], id="lost"),
        pytest.param(log(), ["offsets 4 to 7 hold nothing"], id="unexplained"),
    ],
)
def test_why_something_planned_was_not_found(there: Log | None, sentences: list[str]) -> None:
    found = loss.between(T, "a", 4, 8, there)
    assert len(found) == len(sentences)
    assert all(sentence in each.sentence for sentence, each in zip(sentences, found, strict=True))


# --- the offset JSON


def test_offsets_are_the_json_that_was_drawn() -> None:
    offsets = Offsets({U: Position("b", 5), T: Position("a", 4)}, 100, "spark-1", {T: 2}, {T: ((3, 4),)}, initial=True)
    assert offsets.as_json() == {
        "v": 1,
        "nodes": {"node1": {"t": ["a", 4]}, "node2": {"t": ["b", 5]}},
        "split": 100,
        "reader": "spark-1",
        "from": {"node1": {"t": 2}},
        "skip": {"node1": {"t": [[3, 4]]}},
        "initial": True,
    }
    assert offsets_of(json.loads(json.dumps(offsets.as_json()))) == offsets


def test_equal_offsets_are_equal_texts() -> None:
    one, other = (
        Offsets({T: Position("a", 1), U: Position("a", 2)}),
        Offsets({U: Position("a", 2), T: Position("a", 1)}),
    )
    assert json.dumps(one.as_json()) == json.dumps(other.as_json())


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ({"v": 2, "nodes": {}}, "the offsets are of version 2, written by a newer Penstock"),
        ({"v": 1}, "these are no offsets"),
        ({"v": 1, "nodes": {"n": {"t": [1]}}}, "these are no offsets"),
        ([], "these are no offsets"),
    ],
)
def test_what_are_no_offsets_is_refused(found: object, sentence: str) -> None:
    with pytest.raises(SparkError, match=sentence):
        offsets_of(found)
