"""Bodies of an Arrow column, framed as MPUB wants them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.spark.sink.framing import frame


def parts(bodies: list[bytes]) -> tuple[memoryview, memoryview]:
    """As a chunk is given them: values, and where each begins."""
    _, starts, values = pa.array(bodies, pa.binary()).buffers()
    return memoryview(values or b"").cast("B"), memoryview(starts).cast("B").cast("i")


def framed(bodies: list[bytes]) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


@pytest.mark.parametrize("size", [1, 2, 255, 256, 65_535, 65_536, 1 << 24])
def test_each_body_stands_behind_its_size(size: int) -> None:
    bodies = [b"a", b"x" * size, b"", b"bc"]
    out = bytearray(len(framed(bodies)) + 4)
    assert frame(out, 4, *parts(bodies), 0, 4) == (4, len(out))
    assert out[4:] == framed(bodies)


def test_what_has_no_room_is_left() -> None:
    # given room for two of three bodies and all but one byte of the third
    bodies = [b"one", b"two", b"three"]
    out = bytearray(len(framed(bodies)) - 1)
    # then the third is not begun
    assert frame(out, 0, *parts(bodies), 0, 3) == (2, 14)
    assert out[:14] == framed(bodies[:2])
    assert not any(out[14:])
    # and one more byte is enough
    assert frame(bytearray(len(out) + 1), 0, *parts(bodies), 0, 3) == (3, len(out) + 1)


def test_only_the_rows_that_were_asked_for_are_taken() -> None:
    out = bytearray(100)
    assert frame(out, 0, *parts([b"a", b"b", b"c", b"d"]), 1, 3) == (3, 10)
    assert out[:10] == framed([b"b", b"c"])


@pytest.mark.parametrize(
    ("starts", "row", "stop", "at"),
    [
        pytest.param([0, 1], 0, 2, 0, id="more-rows-than-there-are"),
        pytest.param([0, 1], -1, 1, 0, id="a-row-before-the-first"),
        pytest.param([0, 1], 0, 1, -1, id="before-the-room"),
        pytest.param([0, 9], 0, 1, 0, id="behind-the-values"),
        pytest.param([5, 4], 0, 1, 0, id="backwards"),
        pytest.param([-1, 1], 0, 1, 0, id="before-the-values"),
        pytest.param([0, 2**31 - 1], 0, 1, 0, id="absurd"),
    ],
)
def test_what_lies_outside_is_refused(starts: list[int], row: int, stop: int, at: int) -> None:
    marks = memoryview(pa.array(starts, pa.int32()).buffers()[1]).cast("B").cast("i")[: len(starts)]
    with pytest.raises(ValueError, match=r"no such rows|outside the column"):
        frame(bytearray(100), at, b"abcde", marks, row, stop)
