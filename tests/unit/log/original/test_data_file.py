"""What stands in a data file is found, also behind what is no record."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.log.original.data_file import WINDOW, Block, Gap, find_next, read_records
from penstock.log.scan import Reader
from tests.kit import MemoryFiles

from .folders import record, records

BODIES = [b"body of %d" % n for n in range(10)]


def reader_of(data: bytes) -> Reader:
    files = MemoryFiles()
    fd = files.open("/a", create=True)
    files.write(fd, data, 0)
    return Reader(files, fd, len(data))


def read(data: bytes) -> tuple[list[bytes], list[Gap]]:
    """The bodies and the gaps in it, which together are all of it."""
    bodies, gaps = [], []
    position = 0
    for part in read_records(reader_of(data), 0):
        assert part.position == position
        if isinstance(part, Block):
            bodies += [part.data[at + 30 : at + 4 + size] for at, size, _, _, _ in part.places]
            position += sum(4 + size for _, size, _, _, _ in part.places)
        else:
            gaps.append(part)
            position += part.size
    assert position == len(data)
    return bodies, gaps


@pytest.mark.parametrize(
    "junk",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0", id="a zero"),
        pytest.param(bytes(4096), id="a page of zeros"),
        pytest.param(b"0123456789abcdef" * 10, id="hex digits"),
        pytest.param(record(9)[:-1], id="a record that is not whole"),
        pytest.param(record(9)[1:], id="a record without its first byte"),
        pytest.param(bytes(WINDOW - 20), id="up to the end of a window"),
        pytest.param(b"\xff" * (WINDOW + 12), id="more than a window"),
    ],
)
@pytest.mark.parametrize("follows", [records(1), records(1, 2), records(1) + record(2)[:-1], records(1) + b"\0\0"])
def test_behind_what_is_no_record_the_next_one_is_found(junk: bytes, follows: bytes) -> None:
    assert find_next(reader_of(junk + follows), 0) == len(junk)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(bytes(5000), id="zeros"),
        pytest.param(record(1)[:-1], id="a record that is not whole"),
        pytest.param(record(1) + b"\xff" * 40, id="a record before junk"),
    ],
)
def test_where_no_record_follows_none_is_found(data: bytes) -> None:
    assert find_next(reader_of(data), 0) is None


@pytest.mark.parametrize("before", [WINDOW - 70, WINDOW - 31, WINDOW - 30, WINDOW - 1, WINDOW, WINDOW + 1])
def test_a_window_ends_anywhere(before: int) -> None:
    # given a first record that puts the next ones at the end of a window
    data = record(0, b"x" * (before - 30)) + records(1, 2, 3)
    # when the file is read
    bodies, gaps = read(data)
    # then no record suffers
    assert bodies[1:] == BODIES[1:4]
    assert (len(bodies[0]), gaps) == (before - 30, [])


def test_a_record_that_swallows_others_is_none() -> None:
    # given a record whose size leads into the midst of one that comes later
    damaged = (100).to_bytes(4) + record(1)[4:]
    # when the file is read
    bodies, gaps = read(record(0) + damaged + records(2, 3, 4, 5, 6))
    # then those are there
    assert bodies == [BODIES[0], *BODIES[2:7]]
    assert gaps == [Gap(len(record(0)), len(damaged), torn=False)]


def test_a_record_before_a_damaged_one_is_whole() -> None:
    damaged = b"\xff" + record(2)[1:]
    bodies, gaps = read(records(0, 1) + damaged + records(3, 4))
    assert bodies == [*BODIES[:2], *BODIES[3:5]]
    assert gaps == [Gap(len(records(0, 1)), len(damaged), torn=False)]


@given(st.integers(0, 389), st.integers(1, 255))
def test_one_byte_that_turned_costs_no_message_but_its_own(place: int, turn: int) -> None:
    # given ten records and one byte that is another; a size that leads to another record's beginning cannot be told
    written = [letter.encode() * 9 for letter in "abcdefghij"]
    whole = b"".join(map(record, range(10), written))
    damaged = bytearray(whole)
    damaged[place] ^= turn
    start = place - place % 39
    end = start + 4 + int.from_bytes(damaged[start : start + 4])
    assume(end == start + 39 or end % 39 or end > len(whole))
    # when the file is read
    bodies, _ = read(bytes(damaged))
    # then the others are all there, and at most one is wrong
    others = [body for body in written if body != written[place // 39]]
    assert [body for body in bodies if body in others] == others
    assert len(bodies) <= 10


@given(st.binary(max_size=400), st.integers(0, 400))
def test_any_bytes_are_read_without_an_error(data: bytes, start: int) -> None:
    bodies, gaps = read(data)
    assert 30 * len(bodies) + sum(map(len, bodies)) + sum(gap.size for gap in gaps) == len(data)
    found = find_next(reader_of(data), start)
    assert found is None or found >= start
