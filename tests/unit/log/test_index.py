"""The index: what it says is right or it says nothing."""

from __future__ import annotations

import random
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.index import ENTRY, GAP, MARK, SEAL, STEP, Gap, Index, Mark, decode, encode_entry

SEED = 77
FIRST = 1000


def sample() -> Index:
    """Marks, a gap between the second and the third."""
    index = Index()
    index.add(1000, 5, 0)
    index.add(1010, 5, 500)
    index.gaps.append(Gap(1012, 1015, 600, 700))
    index.add(1015, 8, 700)
    index.add(1100, 9, 9000)
    return index


def in_file(index: Index) -> bytes:
    return index.unwritten(1 << 62, SEED)


def read(data: bytes, size: int = 10_000) -> tuple[Index, int]:
    return decode(data, FIRST, SEED, size)


def marks(index: Index) -> list[Mark]:
    return [index.at(number) for number in range(len(index))]


def test_what_is_written_is_read_again() -> None:
    # given an index with a gap and a seal
    data = in_file(sample()) + encode_entry(SEAL, 1200, 10, 9999, SEED)
    # when it is read
    index, believed = read(data)
    # then it is the same
    assert believed == len(data) == 6 * ENTRY
    assert marks(index) == marks(sample())
    assert index.gaps == sample().gaps
    assert index.sealed == Mark(1200, 10, 9999)
    assert index.written == len(index)


def test_an_entry_is_as_the_format_draws_it() -> None:
    rest = struct.pack(">IQQQ", MARK, 1, 2, 3)
    assert encode_entry(MARK, 1, 2, 3, SEED) == struct.pack(">I", zlib.crc32(rest, SEED)) + rest


def test_each_entry_is_written_once_and_only_up_to_where_the_file_is_flushed() -> None:
    index = sample()
    assert len(index.unwritten(499, SEED)) == ENTRY
    assert index.unwritten(499, SEED) == b""
    assert len(index.unwritten(699, SEED)) == ENTRY
    # the gap goes with the mark that says where it ends
    assert len(index.unwritten(700, SEED)) == 2 * ENTRY
    assert len(index.unwritten(9000, SEED)) == ENTRY
    assert index.unwritten(1 << 62, SEED) == b""


def prefix_of(index: Index, of: Index) -> bool:
    """Whether the first says nothing that the second does not."""
    return marks(index) == marks(of)[: len(index)] and index.gaps == of.gaps[: len(index.gaps)]


@pytest.mark.parametrize(
    ("size", "believed", "reach"), [(9999, 6, 0), (9998, 5, 1200), (8999, 4, 1200), (699, 2, 1200)]
)
def test_of_a_file_that_is_shorter_it_says_what_is_there_and_how_far_it_once_went(
    size: int, believed: int, reach: int
) -> None:
    index, bytes_believed = read(in_file(sample()) + encode_entry(SEAL, 1200, 10, 9999, SEED), size)
    assert (bytes_believed, index.reach) == (believed * ENTRY, reach)
    assert all(mark.position <= size for mark in marks(index))
    assert (index.sealed is None) == (size < 9999)


def test_with_any_byte_flipped_it_says_what_stands_before_that_entry() -> None:
    data = in_file(sample()) + encode_entry(SEAL, 1200, 10, 9999, SEED)
    for at in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            index, believed = read(bytes(flipped))
            assert prefix_of(index, sample()), (at, bit)
            assert index.sealed is None
            assert believed <= at // ENTRY * ENTRY


def test_cut_at_any_byte_it_says_what_is_whole() -> None:
    data = in_file(sample()) + encode_entry(SEAL, 1200, 10, 9999, SEED)
    for size in range(len(data)):
        index, believed = read(data[:size])
        assert prefix_of(index, sample())
        assert index.sealed is None
        # a gap without the mark behind it is half a statement
        assert believed == (size // ENTRY - (size // ENTRY == 3)) * ENTRY
        assert len(index.gaps) == (size >= 4 * ENTRY)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 4096])
@pytest.mark.parametrize("fill", [bytes, random.Random(1).randbytes], ids=["zeros", "noise"])
def test_garbage_behind_it_is_not_believed(size: int, fill: object) -> None:
    data = in_file(sample())
    garbage = fill(size)  # type: ignore[operator]
    index, believed = read(data + garbage)
    assert (marks(index), believed) == (marks(sample()), len(data))


def test_nothing_is_believed_behind_a_seal() -> None:
    data = in_file(sample()) + encode_entry(SEAL, 1200, 10, 9999, SEED)
    index, believed = read(data + encode_entry(MARK, 1300, 11, 9999, SEED))
    assert (len(index), believed) == (4, len(data))


@pytest.mark.parametrize(
    ("kind", "one", "two", "three"),
    [
        pytest.param(MARK, 1099, 9, 9001, id="a mark whose offset falls"),
        pytest.param(MARK, 1101, 8, 9001, id="a mark whose time falls"),
        pytest.param(MARK, 1101, 9, 8999, id="a mark whose position falls"),
        pytest.param(MARK, 1101, 9, 10_001, id="a mark behind the end of the file"),
        pytest.param(GAP, 1099, 1200, 9001, id="a gap whose offset falls"),
        pytest.param(GAP, 1200, 1199, 9001, id="a gap that ends before it begins"),
        pytest.param(GAP, 1200, 1201, 10_001, id="a gap behind the end of the file"),
        pytest.param(SEAL, 1099, 9, 9001, id="a seal whose offset falls"),
        pytest.param(SEAL, 1101, 9, 10_001, id="a seal behind the end of the file"),
        pytest.param(0, 1101, 9, 9001, id="an unknown kind"),
        pytest.param(5, 1101, 9, 9001, id="another unknown kind"),
    ],
)
def test_an_entry_that_cannot_follow_is_not_believed_whatever_its_checksum(
    kind: int, one: int, two: int, three: int
) -> None:
    data = in_file(sample())
    index, believed = read(data + encode_entry(kind, one, two, three, SEED))
    assert (marks(index), index.gaps, believed) == (marks(sample()), sample().gaps, len(data))
    assert index.sealed is None


def test_a_gap_is_not_believed_behind_a_gap_or_before_a_seal() -> None:
    gap = encode_entry(GAP, 1200, 1201, 9100, SEED)
    for following in (gap, encode_entry(SEAL, 1300, 9, 9900, SEED)):
        index, believed = read(in_file(sample()) + gap + following)
        assert (index.gaps, believed) == (sample().gaps, 5 * ENTRY)
        assert index.sealed is None


def test_the_index_of_another_segment_says_nothing() -> None:
    assert decode(in_file(sample()), FIRST, SEED ^ 1, 10_000)[1] == 0
    assert decode(in_file(sample()), FIRST + 1, SEED, 10_000)[1] == 0


@given(st.binary(max_size=200))
def test_nothing_makes_it_fail(data: bytes) -> None:
    index, believed = read(data)
    assert (len(index), believed) == (0, 0)


MARKS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(1, 3 * STEP)), max_size=30)


@given(MARKS, st.integers(0, 200), st.integers(0, 100))
def test_looking_up_finds_the_last_mark_before(steps: list[tuple[int, int, int]], offset: int, time: int) -> None:
    # given marks in order
    index = Index()
    at, when, where = 0, 0, 0
    for more, later, further in steps:
        index.add(at, when, where)
        at, when, where = at + more, when + later, where + further
    # then each look-up is that of a list
    all_marks = marks(index)
    assert index.before_offset(offset) == max((mark for mark in all_marks if mark.offset <= offset), default=None)
    assert index.before_time(time) == max((mark for mark in all_marks if mark.time < time), default=None)
    assert index.last() == (all_marks[-1] if all_marks else None)


def test_what_is_cut_is_forgotten_and_written_again_when_it_comes_back() -> None:
    # given an index that is all in its file
    index = sample()
    in_file(index)
    index.sealed = Mark(1200, 10, 9999)
    # when it is cut between the gap and the last mark
    index.cut(700)
    # then the rest is unknown
    assert marks(index) == marks(sample())[:3]
    assert (index.gaps, index.written, bool(index.sealed)) == (sample().gaps, 3, False)
    # and before the gap's end, the gap too
    index.cut(699)
    assert (len(index), index.gaps, index.written) == (2, [], 2)
    index.add(1013, 9, 800)
    assert len(in_file(index)) == ENTRY


def test_a_gap_is_known_by_where_it_begins() -> None:
    assert sample().gap_at(600) == Gap(1012, 1015, 600, 700)
    assert sample().gap_at(601) is None
