"""Batches and records, to the byte: what is written, and what is found in it again."""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptLog
from penstock.protocol.batch import (
    BAD,
    HEADER,
    INCOMPLETE,
    KEYED,
    MAGIC,
    MOVED,
    RECORD,
    Header,
    Record,
    check,
    encode,
    encode_records,
    first_at,
    header,
    length_at,
    positions,
    put_framed,
    put_moved,
    put_record,
    put_records,
    records,
    seal,
    seek,
    size_of,
    span,
    walk,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

SEED = 0x12345678
IDS = 0x0123456789ABCDEF
TIME = 1_700_000_000_123_456_789

BODIES = st.lists(st.binary(max_size=40), max_size=12)
BATCHES = st.lists(st.tuples(BODIES, st.binary(max_size=9)), min_size=1, max_size=8)


def record_bytes(id_value: int, body: bytes, timestamp: int = TIME, attempts: int = 0) -> bytes:
    """A record as the format's drawing has it."""
    return struct.pack(">IQH16s", 26 + len(body), timestamp, attempts, b"%016x" % id_value) + body


def batch_bytes(first: int, count: int, payload: bytes, *, key: bytes = b"", flags: int = 0, seed: int = SEED) -> bytes:
    """A batch as the format's drawing has it."""
    rest = struct.pack(">QIQII", first, count, TIME, flags, len(key)) + key + payload
    return MAGIC + struct.pack(">II", len(rest), zlib.crc32(rest, seed)) + rest


def one(first: int, bodies: list[bytes], key: bytes = b"", flags: int = 0) -> bytes:
    """A batch of records."""
    payload = b"".join(record_bytes(IDS + first + number, body) for number, body in enumerate(bodies))
    return batch_bytes(first, len(bodies), payload, key=key, flags=flags)


def run(batches: list[tuple[list[bytes], bytes]], first: int = 7) -> tuple[bytes, list[int]]:
    """Batches one behind the other, and where each begins."""
    data, begins = b"", []
    for bodies, key in batches:
        begins.append(len(data))
        data += one(first, bodies, key, KEYED if key else 0)
        first += len(bodies)
    return data, begins


# --- writing


@given(st.integers(0, 2**62), BODIES, st.binary(max_size=40), st.sampled_from([0, KEYED, MOVED, KEYED | MOVED]))
def test_a_batch_of_records_is_written_as_the_format_draws_it(
    first: int, bodies: list[bytes], key: bytes, flags: int
) -> None:
    written = encode_records(first, IDS, bodies, TIME, SEED, flags=flags, key=key)
    assert bytes(written) == one(first, bodies, key, flags)


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**32 - 1), st.binary(max_size=99), st.binary(max_size=9))
def test_a_payload_that_is_not_records_is_put_into_a_batch_as_it_is(
    first: int, count: int, payload: bytes, key: bytes
) -> None:
    written = encode(first, count, TIME, payload, SEED, flags=5, key=key)
    assert bytes(written) == batch_bytes(first, count, payload, key=key, flags=5)


@pytest.mark.parametrize("timestamp", [0, 1, 2**31, 2**63, 2**64 - 1])
@pytest.mark.parametrize("attempts", [0, 1, 255, 256, 65535])
@pytest.mark.parametrize("id_value", [0, 9, 10, 2**62 - 1, 2**63, 2**64 - 1])
def test_a_record_has_every_number_at_its_limits(timestamp: int, attempts: int, id_value: int) -> None:
    data = bytearray(b"\xaa" * 50)
    assert put_record(data, 5, b"body", timestamp, id_value, attempts) == 39
    assert data == b"\xaa" * 5 + record_bytes(id_value, b"body", timestamp, attempts) + b"\xaa" * 11


@given(BODIES, st.integers(0, 20))
def test_records_fill_exactly_the_room_that_they_need(bodies: list[bytes], before: int) -> None:
    # given room for the records and not a byte more
    expected = b"".join(record_bytes(IDS + number, body) for number, body in enumerate(bodies))
    data = bytearray(before + len(expected))
    # when they are put there
    end = put_records(data, before, bodies, TIME, IDS)
    # then they fill it, and that they would was known
    assert len(expected) == size_of(bodies)
    assert (end, bytes(data[before:])) == (len(data), expected)
    # and with a byte less they are refused
    if bodies:
        with pytest.raises(ValueError, match="no room"):
            put_records(bytearray(before + len(expected) - 1), before, bodies, TIME, IDS)
        with pytest.raises(ValueError, match="no room"):
            put_record(bytearray(RECORD + len(bodies[0]) - 1), 0, bodies[0], TIME, IDS)


@given(BODIES, st.binary(max_size=5), st.binary(max_size=5))
def test_bodies_framed_as_in_an_mpub_become_the_same_records(bodies: list[bytes], before: bytes, behind: bytes) -> None:
    # given what stands behind an MPUB's count, in a larger buffer
    framed = before + b"".join(struct.pack(">I", len(body)) + body for body in bodies) + behind
    room = sum(RECORD + len(body) for body in bodies)
    # when it is put beside the bodies one by one
    from_frame, one_by_one = bytearray(room), bytearray(room)
    end = put_framed(from_frame, 0, framed, len(before), len(bodies), TIME, IDS)
    put_records(one_by_one, 0, bodies, TIME, IDS)
    # then nothing tells them apart
    assert (end, from_frame) == (room, one_by_one)


@pytest.mark.parametrize("first", [0x9, 0xF, 0x99, 0x9F, 0xFF, 0x123456789ABCDEFF, 0x7FFFFFFFFFFFFF9F, 2**63 - 1])
def test_ids_count_up_through_every_digit(first: int) -> None:
    # given an id, when many bodies are put from there on
    count = 300
    data = bytearray(count * (RECORD + 1))
    put_framed(data, 0, (struct.pack(">I", 1) + b"x") * count, 0, count, TIME, first)
    # then each has the one that follows
    found = [data[at + RECORD - 16 : at + RECORD].decode() for at in range(0, len(data), RECORD + 1)]
    assert found == [f"{first + number:016x}" for number in range(count)]


@pytest.mark.parametrize("size", [0, 1, HEADER - 1])
def test_a_batch_smaller_than_its_header_is_not_sealed(size: int) -> None:
    with pytest.raises(ValueError, match="no such batch"):
        seal(bytearray(HEADER), 0, size, 0, 0, 0, 0, 0, SEED)


def test_a_batch_is_sealed_where_it_lies_and_nothing_beside_it_changes() -> None:
    data = bytearray(b"\xaa" * 100)
    seal(data, 10, 10 + HEADER + 3, 9, 0, TIME, 0, 0, SEED)
    assert data[:10] == b"\xaa" * 10
    assert data[10 : 10 + HEADER + 3] == batch_bytes(9, 0, b"\xaa" * 3)
    assert data[10 + HEADER + 3 :] == b"\xaa" * (100 - 13 - HEADER)


# --- reading one batch


@given(BODIES, st.binary(max_size=9), st.binary(max_size=50), st.binary(max_size=50))
def test_a_whole_batch_is_found_good_with_anything_before_and_behind_it(
    bodies: list[bytes], key: bytes, before: bytes, behind: bytes
) -> None:
    # given a batch somewhere in the data
    batch = one(3, bodies, key, KEYED)
    data = before + batch + behind
    # then it is found, and what its header says
    assert check(data, len(before), SEED) == len(before) + len(batch)
    assert length_at(data, len(before)) == len(batch)
    assert first_at(data, len(before)) == 3
    assert header(data, len(before)) == Header(
        3, len(bodies), TIME, KEYED, key, len(before) + HEADER + len(key), len(before) + len(batch)
    )
    # and its records
    assert list(records(data, len(before), len(before) + len(batch))) == [
        Record(3 + number, TIME, 0, b"%016x" % (IDS + 3 + number), body) for number, body in enumerate(bodies)
    ]


def test_a_batch_that_comes_byte_by_byte_is_incomplete_until_its_last() -> None:
    batch = one(3, [b"one", b"two"], b"key", KEYED)
    for size in range(len(batch)):
        assert check(batch[:size], 0, SEED) == INCOMPLETE
        assert length_at(batch[:size], 0) == (len(batch) if size >= HEADER else INCOMPLETE)


def test_a_batch_with_one_bit_flipped_is_never_good() -> None:
    batch = one(3, [b"one", b"two"], b"key", KEYED)
    for at in range(len(batch)):
        for bit in range(8):
            flipped = bytearray(batch)
            flipped[at] ^= 1 << bit
            assert check(flipped, 0, SEED) in (BAD, INCOMPLETE), (at, bit)


@pytest.mark.parametrize("seed", [0, SEED ^ 1, 0xFFFFFFFF])
def test_a_batch_of_another_seed_is_none(seed: int) -> None:
    assert check(one(3, [b"one"]), 0, seed) == BAD


@pytest.mark.parametrize("size", [1, HEADER, 4096])
def test_zeros_are_no_batch(size: int) -> None:
    assert check(bytes(size), 0, SEED) == BAD


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview], ids=["bytes", "bytearray", "memoryview"])
def test_every_kind_of_buffer_is_read(make: Callable[[bytes], Buffer]) -> None:
    data, _ = run([([b"one"], b""), ([b"two"], b"k")])
    buffer = make(data)
    assert walk(buffer, 0, SEED, 7, 1 << 20)[:2] == (len(data), 9)
    assert [record.body for record in records(buffer)] == [b"one", b"two"]
    assert header(buffer).first == 7


# --- reading many


@given(BATCHES, st.integers(1, 3000))
def test_a_walk_checks_batches_until_it_has_enough(batches: list[tuple[list[bytes], bytes]], enough: int) -> None:
    # given batches, and a wish for so many bytes
    data, begins = run(batches)
    ends = [*begins[1:], len(data)]
    counts = [len(bodies) for bodies, _ in batches]
    # when they are walked
    keyed: list[int] = []
    stop, expected, last, why = walk(data, 0, SEED, 7, enough, keyed)
    # then it stops behind the first batch that makes it enough, or at the end
    walked = next((n for n, end in enumerate(ends, 1) if end >= enough), len(ends))
    assert (stop, expected, last) == (ends[walked - 1], 7 + sum(counts[:walked]), begins[walked - 1])
    assert why == (1 if stop >= enough else INCOMPLETE)
    assert keyed == [begins[n] for n in range(walked) if batches[n][1]]


@given(BATCHES, st.data())
def test_a_walk_stops_before_a_batch_that_is_cut_or_bad_or_does_not_follow(
    batches: list[tuple[list[bytes], bytes]], draw: st.DataObject
) -> None:
    data, begins = run(batches)
    number = draw.draw(st.integers(0, len(begins) - 1))
    end = [*begins[1:], len(data)][number]
    reached = (begins[number], 7 + sum(len(bodies) for bodies, _ in batches[:number]))
    last = begins[number - 1] if number else -1
    # when one batch is cut
    cut = draw.draw(st.integers(begins[number], end - 1))
    assert walk(data[:cut], 0, SEED, 7, 1 << 30) == (*reached, last, INCOMPLETE)
    # or flipped behind its length
    flipped = bytearray(data)
    flipped[draw.draw(st.integers(begins[number] + 8, end - 1))] ^= 0x10
    assert walk(flipped, 0, SEED, 7, 1 << 30) == (*reached, last, BAD)
    # or is of another place
    moved = data[: begins[number]] + one(reached[1] + 1, batches[number][0]) + data[end:]
    assert walk(moved, 0, SEED, 7, 1 << 30) == (*reached, last, BAD)


@given(BATCHES, st.integers(0, 120))
def test_seeking_goes_to_the_batch_that_holds_the_offset(batches: list[tuple[list[bytes], bytes]], offset: int) -> None:
    data, begins = run(batches)
    firsts = [header(data, at).next for at in begins]
    expected = next((at for at, next_ in zip(begins, firsts, strict=True) if next_ > offset), len(data))
    assert seek(data, 0, offset) == expected


@given(BATCHES, st.data())
def test_seeking_in_data_that_end_early_stops_at_the_last_header(
    batches: list[tuple[list[bytes], bytes]], draw: st.DataObject
) -> None:
    data, begins = run(batches)
    cut = draw.draw(st.integers(0, len(data)))
    reached = max((at for at in [*begins, len(data)] if at <= cut), default=0)
    assert seek(data[:cut], 0, 2**60) == reached


@given(BATCHES, st.integers(0, 3000))
def test_a_span_is_whole_batches_that_fit_and_one_at_least(batches: list[tuple[list[bytes], bytes]], size: int) -> None:
    data, begins = run(batches)
    ends = [*begins[1:], len(data)]
    assert span(data, 0, len(data), size) == max([ends[0], *(end for end in ends if end <= size)])
    # and never beyond the end that is given
    assert span(data, 0, begins[-1], size) == min(begins[-1], span(data, 0, len(data), size))


@given(BATCHES)
def test_every_record_of_every_batch_has_its_place(batches: list[tuple[list[bytes], bytes]]) -> None:
    data, _ = run(batches)
    found = [record.body for record in records(data)]
    assert found == [body for bodies, _ in batches for body in bodies]
    places = positions(data, 0, len(data))
    assert [data[at + RECORD : at + 4 + int.from_bytes(data[at : at + 4], "big")] for at in places] == found


@pytest.mark.parametrize("count", [0, 1, 3, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_count_that_the_records_do_not_have_is_corrupt(count: int) -> None:
    batch = batch_bytes(0, count, record_bytes(0, b"a") + record_bytes(1, b"b"))
    with pytest.raises(CorruptLog):
        positions(batch, 0, len(batch))
    with pytest.raises(CorruptLog):
        list(records(batch))


@pytest.mark.parametrize("size", [0, 1, 25, 28, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1])
def test_a_record_whose_size_cannot_be_is_corrupt(size: int) -> None:
    payload = bytearray(record_bytes(0, b"a"))
    payload[:4] = size.to_bytes(4, "big")
    batch = batch_bytes(0, 1, bytes(payload))
    with pytest.raises(CorruptLog):
        positions(batch, 0, len(batch))


@given(BODIES, st.integers(1, 2**62))
def test_records_may_share_one_id(bodies: list[bytes], id_value: int) -> None:
    data = bytearray(sum(map(len, bodies)) + RECORD * len(bodies))
    assert put_records(data, 0, bodies, TIME, id_value, 0) == len(data)
    assert data == b"".join(record_bytes(id_value, body) for body in bodies)


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 65535)), min_size=1, max_size=12), st.data())
def test_moved_records_keep_all_but_their_ids(found: list[tuple[bytes, int]], draw: st.DataObject) -> None:
    # given records of several publishes, and some of them in any order
    source = b"".join(record_bytes(number, body, TIME + number, tries) for number, (body, tries) in enumerate(found))
    batch = encode(0, len(found), TIME, source, SEED)
    places = positions(batch, 0, len(batch))
    chosen = draw.draw(st.lists(st.integers(0, len(found) - 1), max_size=9))
    size = sum(RECORD + len(found[number][0]) for number in chosen)
    # when they are moved
    data = bytearray(5 + size)
    end = put_moved(data, 5, memoryview(batch), array("I", [places[number] for number in chosen]), IDS)
    # then the ids count up, and everything else is as it was
    assert end == len(data)
    assert data[5:] == b"".join(
        record_bytes(IDS + new, found[old][0], TIME + old, found[old][1]) for new, old in enumerate(chosen)
    )
    # and with no first id they keep theirs
    assert put_moved(data, 5, batch, array("I", [places[number] for number in chosen]), 0) == end
    assert data[5:] == b"".join(record_bytes(old, found[old][0], TIME + old, found[old][1]) for old in chosen)


@pytest.mark.parametrize("place", [1, 4, 32, 2**31 - 1, 2**31, 2**32 - 1])
def test_what_is_no_record_is_not_moved(place: int) -> None:
    with pytest.raises(ValueError, match="no such record"):
        put_moved(bytearray(1000), 0, record_bytes(0, b"ab"), array("I", [place]), 1)


@pytest.mark.parametrize("size", [0, 1, 25, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1])
def test_a_record_whose_size_cannot_be_is_not_moved(size: int) -> None:
    source = size.to_bytes(4, "big") + record_bytes(0, b"ab")[4:]
    with pytest.raises(ValueError, match="no such record"):
        put_moved(bytearray(1000), 0, source, array("I", [0]), 1)


@pytest.mark.parametrize(("room", "at"), [(31, 0), (32, 1), (0, 0), (32, -1)])
def test_a_moved_record_stays_inside_its_room(room: int, at: int) -> None:
    data = bytearray(room)
    with pytest.raises(ValueError, match="no room"):
        put_moved(data, at, record_bytes(0, b"ab"), array("I", [0]), 1)
    assert data == bytes(room)
