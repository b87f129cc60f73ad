"""Chunks: which rows are published together. Where one ends follows from the rows, however they come."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.spark.sink.chunks import OPEN, SMALLEST, Chunk, Chunks
from penstock.spark.sink.rows import Place

HERE, THERE = Place("here", -1), Place("there", 1, delay=5)


def bodies_of(chunk: Chunk) -> list[bytes]:
    body, at = bytes(chunk.body()), 4
    found: list[bytes] = []
    for _ in range(int.from_bytes(body[:4], "big")):
        size = int.from_bytes(body[at : at + 4], "big")
        found.append(body[at + 4 : at + 4 + size])
        at += 4 + size
    assert at == len(body)
    return found


def column(*bodies: bytes) -> pa.BinaryArray:
    return pa.array(bodies, pa.binary())


def chunked(most: int, *columns: pa.BinaryArray) -> list[list[bytes]]:
    chunks = Chunks(most)
    found = [bodies_of(chunk) for each in columns for chunk in chunks.add(HERE, each)]
    return found + [bodies_of(chunk) for chunk in chunks.rest()]


def test_rows_fill_chunks_up_to_their_size() -> None:
    # given rows of 10 bytes with their sizes, and chunks with room for three
    rows = [b"%06d" % number for number in range(8)]
    assert chunked(4 + 30, column(*rows)) == [rows[:3], rows[3:6], rows[6:]]
    assert chunked(4 + 39, column(*rows)) == [rows[:3], rows[3:6], rows[6:]]
    assert chunked(4 + 40, column(*rows)) == [rows[:4], rows[4:]]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_how_rows_come_changes_nothing(size: int) -> None:
    rows = [b"x" * (number * 7 % 23) + b"." for number in range(100)]
    columns = [column(*rows[at : at + size]) for at in range(0, 100, size)]
    assert chunked(120, *columns) == chunked(120, column(*rows))


def test_a_slice_of_a_column_is_its_rows() -> None:
    rows = [b"%d" % number for number in range(20)]
    assert chunked(100_000, column(*rows).slice(5, 10)) == [rows[5:15]]


def test_a_row_may_be_larger_than_a_chunk() -> None:
    big = b"b" * 1000
    assert chunked(100, column(b"a", big, b"c")) == [[b"a"], [big], [b"c"]]


def test_a_large_chunk_begins_small() -> None:
    rows = [b"x" * 1000 for _ in range(200)]
    assert len(Chunk(HERE, 1 << 20)._data) == SMALLEST
    chunks = Chunks(1 << 20)
    assert list(chunks.add(HERE, column(*rows))) == []
    [whole] = chunks.rest()
    assert bodies_of(whole) == rows


def test_places_have_chunks_of_their_own_in_the_order_in_which_they_began() -> None:
    chunks = Chunks(1000)
    for place, body in ((THERE, b"1"), (HERE, b"2"), (THERE, b"3")):
        assert list(chunks.add(place, column(body))) == []
    assert [(chunk.place, bodies_of(chunk)) for chunk in chunks.rest()] == [(THERE, [b"1", b"3"]), (HERE, [b"2"])]
    assert list(chunks.rest()) == []


def test_what_waits_is_bounded() -> None:
    # given more places than chunks may wait
    chunks = Chunks(1000)
    published = sum(
        len(bodies_of(chunk))
        for number in range(3 * OPEN)
        for chunk in chunks.add(Place(f"t{number}", -1), column(b"x" * 900))
    )
    assert published >= OPEN
    assert published + sum(len(bodies_of(chunk)) for chunk in chunks.rest()) == 3 * OPEN
