"""The end of a log in memory: what is read from it is what is in the log, and what was handed out never changes."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.log.segment import Block
from penstock.log.tail import LARGEST, SMALLEST, Tail
from penstock.protocol.batch import HEADER, KEYED, RECORD, Record, check, header, put_record, records
from tests.unit.log.builders import BASE, SEED, texts


def framed(bodies: list[bytes]) -> bytes:
    """As they stand in an MPUB behind its count."""
    return b"".join(struct.pack(">I", len(body)) + body for body in bodies)


def write(tail: Tail, *bodies: bytes, time: int = 9, key: bytes = b"") -> bytes:
    """One batch, as a log writes it; its bytes."""
    tail.put(list(bodies), time, BASE)
    batch = bytes(tail.seal(time, SEED, key=key, flags=KEYED if key else 0))
    tail.written()
    return batch


def read_all(tail: Tail, offset: int, size: int = 1) -> list[Record]:
    found: list[Record] = []
    while block := tail.read(offset, size):
        found += [record for record in records(block.data) if record.offset >= offset]
        offset = block.next
    return found


def test_a_batch_is_one_header_around_all_that_was_put() -> None:
    # given bodies that came in several ways
    tail = Tail(100)
    tail.put([b"one", b""], 7, BASE)
    tail.put([], 7, BASE)
    data = b"MPUB" + framed([b"three", b"four"]) + b"next command"
    tail.put_framed(data, 4, 4 + 4 + 5 + 4 + 4, 2, 8, BASE)
    tail.put_payload(bytes(encoded := bytes(_payload(104, b"five"))), 1)
    # when the batch is sealed
    batch = tail.seal(9, SEED)
    # then it is whole, and its records count up
    assert check(batch, 0, SEED) == len(batch)
    assert header(batch)[:4] == (100, 5, 9, 0)
    assert texts(list(records(batch))) == list(enumerate([b"one", b"", b"three", b"four", b"five"], 100))
    assert [record.timestamp for record in records(batch)] == [7, 7, 8, 8, 5]
    assert bytes(batch).endswith(encoded)
    # and it is nobody's until it is written
    assert tail.read(100, 1) is None
    tail.written()
    assert texts(read_all(tail, 102)) == [(102, b"three"), (103, b"four"), (104, b"five")]


def _payload(offset: int, body: bytes) -> bytearray:
    data = bytearray(RECORD + len(body))
    put_record(data, 0, body, 5, BASE + offset)
    return data


@pytest.mark.parametrize("size", [0, 1, SMALLEST - 200, SMALLEST, LARGEST, LARGEST + 1, 3 * LARGEST])
@pytest.mark.parametrize("before", [0, 1, 60, 10_000])
@pytest.mark.parametrize("key", [b"", b"producer 7"])
def test_a_body_of_any_size_is_in_its_batch_wherever_a_chunk_ends(size: int, before: int, key: bytes) -> None:
    tail = Tail(0)
    for _ in range(before // 60):
        write(tail, bytes(60))
    first = tail.end
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    batch = write(tail, b"before", body, b"behind", key=key)
    assert check(batch, 0, SEED) == len(batch)
    assert header(batch).key == key
    assert texts(list(records(batch))) == [(first, b"before"), (first + 1, body), (first + 2, b"behind")]


def test_what_is_too_large_is_not_kept() -> None:
    tail = Tail(0)
    write(tail, bytes(LARGEST))
    assert (tail.size, tail.read(0, 1)) == (0, None)
    write(tail, b"next")
    assert texts(read_all(tail, 1)) == [(1, b"next")]


def test_a_batch_of_many_puts_is_moved_few_times() -> None:
    # given a batch that becomes far larger than what is kept
    tail = Tail(0)
    sizes = set()
    # when it is put together from many pieces
    for _ in range(400):
        tail.put([bytes(10_000)], 1, BASE)
        sizes.add(tail.size)
    # then its memory grew by doubling, else each piece would have moved all before it
    assert len(sizes) < 16


def test_a_large_batch_that_was_abandoned_is_not_kept_either() -> None:
    tail = Tail(0)
    write(tail, b"small")
    tail.put([bytes(20 * LARGEST)], 0, BASE)
    tail.seal(0, SEED)
    tail.abandoned()
    assert tail.size <= 2 * LARGEST


def test_the_memory_is_bounded_by_two_chunks() -> None:
    tail = Tail(0)
    for number in range(5000):
        write(tail, bytes(number % 1500))
        assert tail.size <= 2 * LARGEST
    assert tail.size > LARGEST
    # and at least the last chunk's worth can be read
    kept = tail.read(tail.first, 1 << 30)
    assert kept is not None
    tail.release()
    assert tail.size == 0


def test_an_abandoned_batch_leaves_no_trace() -> None:
    tail = Tail(0)
    write(tail, b"kept")
    for fail_after_seal in (False, True):
        tail.put([b"never", b"was"], 1, BASE)
        if fail_after_seal:
            tail.seal(2, SEED, key=b"key")
        tail.abandoned()
        assert tail.read(1, 1) is None
    write(tail, b"next")
    assert texts(read_all(tail, 0)) == [(0, b"kept"), (1, b"next")]


def test_bodies_that_cannot_be_put_change_nothing_of_what_was_put() -> None:
    # given a batch that is being made
    tail = Tail(0)
    tail.put([b"one"], 0, BASE)
    # when framed bodies lie about their sizes
    for data, count in ((b"\0\0\0\5abc", 1), (framed([b"abc"]), 2), (b"\xff\xff\xff\xff", 1), (b"", 1)):
        with pytest.raises(ValueError, match="early"):
            tail.put_framed(data, 0, len(data), count, 0, BASE)
    # or are larger than what was said
    with pytest.raises(ValueError, match="no room"):
        tail.put_framed(framed([bytes(50_000)]), 0, 10, 1, 0, BASE)
    # or are no bytes
    with pytest.raises(TypeError):
        tail.put([b"two", "three"], 0, BASE)  # type: ignore[list-item]
    # then the batch is what it was
    tail.put([b"two"], 0, BASE)
    assert texts(list(records(tail.seal(0, SEED)))) == [(0, b"one"), (1, b"two")]


def test_a_reader_behind_the_memory_is_sent_elsewhere() -> None:
    tail = Tail(50)
    assert tail.read(50, 1) is None
    write(tail, b"x")
    assert tail.read(49, 1) is None
    assert tail.read(51, 1) is None
    assert tail.read(1 << 62, 1) is None


def test_it_goes_on_at_another_offset_after_a_jump() -> None:
    tail = Tail(0)
    write(tail, b"x")
    tail.release(1000)
    write(tail, b"y")
    assert texts(read_all(tail, 1000)) == [(1000, b"y")]
    assert tail.read(0, 1) is None


# --- against a list


@dataclass
class Handed:
    """A block that somebody has, and what was in it."""

    block: Block
    data: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.data = bytes(self.block.data)


BODY = st.integers(0, 300) | st.sampled_from([SMALLEST, 20_000, 100_000, LARGEST - 100, LARGEST + 50])
BODIES = st.lists(BODY, max_size=4).map(lambda sizes: [bytes([len(sizes)]) * size for size in sizes])


class LikeAList(RuleBasedStateMachine):
    """Random histories of one tail beside a list of what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.tail = Tail(7)
        self.batches: list[tuple[int, list[bytes]]] = []  # first offset, bodies
        self.making: list[bytes] = []
        self.next = 7
        self.handed: list[Handed] = []
        self.released = 7

    @rule(bodies=BODIES)
    def put(self, bodies: list[bytes]) -> None:
        self.tail.put(bodies, 1, BASE)
        self.making += bodies

    @rule(bodies=BODIES)
    def put_framed(self, bodies: list[bytes]) -> None:
        data = b"?" + framed(bodies) + b"?"
        self.tail.put_framed(data, 1, len(data) - 1, len(bodies), 1, BASE)
        self.making += bodies

    @precondition(lambda self: self.making)
    @rule(key=st.sampled_from([b"", b"key", b"k" * 5000]))
    def write(self, key: bytes) -> None:
        batch = self.tail.seal(2, SEED, key=key)
        assert check(batch, 0, SEED) == len(batch)
        assert texts(list(records(batch))) == list(enumerate(self.making, self.next))
        self.tail.written()
        self.batches.append((self.next, self.making))
        self.next += len(self.making)
        self.making = []

    @precondition(lambda self: self.making)
    @rule(sealed=st.booleans(), key=st.sampled_from([b"", b"key"]))
    def abandon(self, sealed: bool, key: bytes) -> None:
        if sealed:
            self.tail.seal(2, SEED, key=key)
        self.tail.abandoned()
        self.making = []

    @precondition(lambda self: not self.making)
    @rule(jump=st.integers(0, 5))
    def release(self, jump: int) -> None:
        self.next += jump
        self.tail.release(self.next)
        self.released = self.next

    @rule(offset=st.integers(0, 400), size=st.sampled_from([1, 100, 5000, LARGEST, 1 << 30]))
    def read(self, offset: int, size: int) -> None:
        block = self.tail.read(offset, size)
        if block is None:
            # what was written last, and is not too large, is always here
            last = self.batches[-1] if self.batches else (0, [])
            small = sum(map(len, last[1])) + len(last[1]) * RECORD + HEADER + 5000 < LARGEST // 2
            assert not (small and last[0] >= self.released and last[0] <= offset < self.next)
            return
        inside = [(first, bodies) for first, bodies in self.batches if block.first <= first < block.next]
        found = [(at, body) for first, bodies in inside for at, body in enumerate(bodies, first)]
        assert texts(list(records(block.data))) == found
        assert block.first <= offset < block.next == inside[-1][0] + len(inside[-1][1])
        assert inside[0][0] == block.first
        assert offset < inside[0][0] + len(inside[0][1])
        assert memoryview(block.data).nbytes <= size or len(inside) == 1
        self.handed.append(Handed(block))

    @invariant()
    def nothing_that_was_handed_out_changes(self) -> None:
        for handed in self.handed[-20:]:
            assert handed.block.data == handed.data

    @invariant()
    def the_counts_are_right(self) -> None:
        assert (self.tail.count, self.tail.end) == (len(self.making), self.next)


TestLikeAList = LikeAList.TestCase
TestLikeAList.settings = settings(stateful_step_count=40)


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=60), st.integers(1, 20_000))
def test_readers_that_go_on_where_they_stopped_get_everything_once(sizes: list[int], size: int) -> None:
    # given a reader that follows, and one that reads all again each time
    tail = Tail(0)
    follower: list[tuple[int, bytes]] = []
    expected: list[tuple[int, bytes]] = []
    offset = 0
    for number, length in enumerate(sizes):
        body = bytes([number % 256]) * length
        write(tail, body)
        expected.append((number, body))
        while block := tail.read(offset, size):
            follower += texts(list(records(block.data)))
            offset = block.next
        kept = texts(read_all(tail, max(0, number - 3), size))
        assert kept == expected[len(expected) - len(kept) :]
    assert follower == expected
