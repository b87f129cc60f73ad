"""Layers fed whole, byte by byte, and in pieces; what is no such stream; and what comes to much more than it was."""

from __future__ import annotations

import random
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadStream
from penstock.stream import Deflate, Layers, Snappy
from penstock.stream.layer import PIECE
from tests.unit.stream.peers import connected, decoded

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.stream import Layer

BEGIN = b"\xff\x06\x00\x00sNaPpY"
HELLO = b"\x01\x09\x00\x00" + bytes.fromhex("bb1f1c19") + b"hello"  # with the masked sum of `hello`


def snappy() -> tuple[Layer, Layer]:
    return Snappy(), Snappy()


def deflate() -> tuple[Layer, Layer]:
    return Deflate(6), Deflate(6)


def deflate_in_tls() -> tuple[Layer, Layer]:
    one, other = connected()
    return Layers(one, Deflate(1)), Layers(other, Deflate(9))


def snappy_in_tls() -> tuple[Layer, Layer]:
    one, other = connected()
    return Layers(one, Snappy()), Layers(other, Snappy())


ALL = pytest.mark.parametrize("ends", [snappy, deflate, connected, deflate_in_tls, snappy_in_tls])
BODIES = [b"a", b"hello" * 1000, random.Random(1).randbytes(200_000), bytes(500_000), b"end"]


@ALL
def test_what_one_side_encodes_the_other_decodes_at_once(ends: Callable[[], tuple[Layer, Layer]]) -> None:
    # given two ends that have talked before
    one, other = ends()
    for body in BODIES:
        # when something is sent, each way
        # then it is there without anything behind it
        assert decoded(other, one.encode(body)) == body
        assert decoded(one, other.encode(body)) == body


@ALL
@pytest.mark.parametrize("size", [1, 3, 4, 1000, 65_536])
def test_where_the_wire_cuts_it_makes_no_difference(ends: Callable[[], tuple[Layer, Layer]], size: int) -> None:
    # given what one side sends
    one, other = ends()
    bodies = BODIES if size > 4 else BODIES[:2]
    wire = b"".join(map(one.encode, bodies))
    # when it comes in pieces of this size
    came = b"".join(decoded(other, wire[at : at + size]) for at in range(0, len(wire), size))
    # then it is the same
    assert came == b"".join(bodies)


@ALL
def test_a_layer_gives_pieces_of_a_bounded_size(ends: Callable[[], tuple[Layer, Layer]]) -> None:
    # given much that takes little room
    one, other = ends()
    wire = one.encode(bytes(5_000_000))
    # when it is decoded, then no piece is larger than may be
    pieces = [len(memoryview(piece)) for piece in other.decode(wire)]
    assert max(pieces) <= PIECE
    assert sum(pieces) == 5_000_000


@pytest.mark.parametrize("make", [Snappy, lambda: Deflate(6)], ids=["snappy", "deflate"])
@given(data=st.binary())
def test_random_bytes_are_decoded_or_refused(make: Callable[[], Layer], data: bytes) -> None:
    for layer in (make(), make()):
        try:
            list(layer.decode(data))
        except BadStream:
            continue


@given(data=st.binary(), kind=st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF]), length=st.integers(0, 90_000))
def test_random_chunks_are_decoded_or_refused(data: bytes, kind: int, length: int) -> None:
    wire = BEGIN + bytes([kind]) + length.to_bytes(3, "little") + data
    try:
        came = sum(len(memoryview(piece)) for piece in Snappy().decode(wire))
    except BadStream:
        return
    assert came <= 64 << 10


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        pytest.param(b"hello, world", "begins otherwise", id="no-snappy"),
        pytest.param(HELLO, "begins otherwise", id="no-beginning"),
        pytest.param(b"\xff\x06\x00\x00sNaPpy", "begins otherwise", id="another-beginning"),
        pytest.param(b"\xff\x07\x00\x00sNaPpYY", "a chunk of 7 bytes", id="a-longer-beginning"),
        pytest.param(BEGIN + b"\x01\x09\x00\x00" + bytes(4) + b"hello", "checksum", id="a-wrong-sum"),
        pytest.param(BEGIN + b"\x01\x03\x00\x00abc", "a chunk of 3 bytes", id="no-room-for-a-sum"),
        pytest.param(BEGIN + b"\x02\x03\x00\x00abc", "unknown type 0x02", id="an-unknown-type"),
        pytest.param(BEGIN + b"\x7f\x00\x00\x00", "unknown type 0x7f", id="another-unknown-type"),
        pytest.param(BEGIN + b"\x00\xff\xff\xff", "a chunk of 16777215 bytes", id="endless"),
        pytest.param(BEGIN + b"\x01\x05\x00\x01" + bytes(65_541), "a chunk of 65537 bytes", id="too-much"),
        pytest.param(BEGIN + b"\x00\x0a\x00\x00" + bytes(4) + b"\x81\x80\x04" + bytes(3), "65537 bytes", id="a-bomb"),
        pytest.param(BEGIN + b"\x00\x09\x00\x00" + bytes(4) + b"\xff" * 5, "without a size", id="no-size"),
        pytest.param(BEGIN + b"\x00\x04\x00\x00" + bytes(4), "without a size", id="nothing-compressed"),
        pytest.param(BEGIN + b"\x00\x09\x00\x00" + bytes(4) + b"\x05\xff\xff\xff\xff", "no snappy", id="garbage"),
    ],
)  # fmt: skip
def test_what_is_no_snappy_stream_is_refused(wire: bytes, why: str) -> None:
    # when the first bytes of a connection are these, then they are refused for that reason
    with pytest.raises(BadStream, match=why):
        decoded(Snappy(), wire)


@pytest.mark.parametrize("kind", [b"\x80", b"\xfe"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunks_without_meaning_are_passed_over(kind: bytes, size: int) -> None:
    # given a stream with such chunks, and another beginning in it
    wire = BEGIN + kind + b"\x64\x00\x00" + bytes(100) + HELLO + BEGIN + kind + bytes(3) + HELLO
    # when it comes in pieces, then what is around them is there
    layer = Snappy()
    assert b"".join(decoded(layer, wire[at : at + size]) for at in range(0, len(wire), size)) == b"hellohello"


def test_what_is_no_deflated_stream_is_refused() -> None:
    with pytest.raises(BadStream, match="no deflate"):
        decoded(Deflate(6), b"\xffhello")


def test_a_deflated_stream_that_ends_is_refused() -> None:
    # given a stream that is finished, which no client of NSQ does
    finished = zlib.compressobj(6, zlib.DEFLATED, -15)
    wire = finished.compress(b"hello") + finished.flush()
    # when it is decoded
    pieces = Deflate(6).decode(wire)
    # then what was in it comes, and then it is over
    assert bytes(memoryview(next(pieces))) == b"hello"
    with pytest.raises(BadStream, match="has ended"):
        next(pieces)


@pytest.mark.parametrize("make", [Snappy, lambda: Deflate(9)], ids=["snappy", "deflate"])
def test_nothing_is_decoded_before_it_is_asked_for(make: Callable[[], Layer]) -> None:
    # given 100 MB of nothing in a few kB or MB
    one, other = make(), make()
    wire = b"".join(one.encode(bytes(10_000_000)) for _ in range(10))
    # when only the first piece is taken
    pieces = other.decode(wire)
    first = next(pieces)
    # then it is a small one, and the others can be taken later
    assert len(memoryview(first)) <= PIECE
    assert sum(len(memoryview(piece)) for piece in pieces) == 100_000_000 - len(memoryview(first))
