"""Who publishes what: the same for the same, and for nothing else."""

from __future__ import annotations

import pytest

from penstock.errors import SparkError
from penstock.spark.sink.numbering import BATCH, QUERY, Digest, Numbering, of_stream
from penstock.spark.sink.rows import Place

PLACE = Place("t", -1)


class Context:
    """As much of a TaskContext as is asked."""

    def __init__(self, **properties: str) -> None:
        self._properties = properties

    def getLocalProperty(self, name: str) -> str | None:
        return self._properties.get(name)

    def partitionId(self) -> int:
        return 7


def test_spark_says_query_batch_and_partition() -> None:
    assert of_stream(Context(**{QUERY: "q", BATCH: "12"})) == Numbering("q", 12, 7)


@pytest.mark.parametrize("properties", [{}, {QUERY: "q"}, {BATCH: "12"}], ids=["neither", "no-batch", "no-query"])
def test_a_spark_that_does_not_say_is_told_of(properties: dict[str, str]) -> None:
    with pytest.raises(SparkError, match=r"use delivery=at-least-once$"):
        of_stream(Context(**properties))


def test_sequences_rise_over_chunks_and_batches() -> None:
    numbers = [Numbering("q", batch, 0).sequence(chunk) for batch in (0, 1, 2) for chunk in (0, 1, (1 << 20) - 1)]
    assert numbers == sorted(set(numbers))


def test_producers_are_one_a_query_and_partition() -> None:
    one, two, three = (Numbering(query, 0, part).producer for query, part in (("q", 1), ("q", 11), ("p", 1)))
    assert len({one, two, three}) == 3
    assert Numbering("q", 9, 1).producer == one


def test_what_differs_once_differs_from_then_on() -> None:
    # given two runs that differ in their first chunk, or in where it goes
    runs = [Digest() for _ in range(3)]
    firsts = [run.add(place, memoryview(body)) for run, place, body in zip(
        runs, (PLACE, PLACE, Place("u", -1)), (b"a", b"b", b"a"), strict=True
    )]  # fmt: skip
    seconds = [run.add(PLACE, memoryview(b"same")) for run in runs]
    assert len({*firsts, *seconds}) == 6
    # and the same run is the same
    again = Digest()
    assert [again.add(PLACE, memoryview(body)) for body in (b"a", b"same")] == [firsts[0], seconds[0]]
