"""Five numbers as nsqd writes them, and nothing that looks like them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.original.meta import Meta, encode, parse

POSITIONS = st.integers(0, 10**18 - 1)


@given(st.builds(Meta, st.integers(-(10**18), 10**18), POSITIONS, POSITIONS, POSITIONS, POSITIONS))
def test_what_is_written_is_read(meta: Meta) -> None:
    assert parse(encode(meta)) == meta


def test_the_text_is_that_of_nsqd() -> None:
    assert encode(Meta(16400, 4, 2125, 26, 80079)) == b"16400\n4,2125\n26,80079\n"


@pytest.mark.parametrize("text", [b"1\r\n0,0\r\n0,40\r\n", b"1\n0,0\n0,40", b" 1 0,0 0,40 "])
def test_line_ends_of_other_systems_are_understood(text: bytes) -> None:
    assert parse(text) == Meta(1, 0, 0, 0, 40)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\0" * 20, id="zeros"),
        pytest.param(b"1\n0,0\n", id="cut"),
        pytest.param(b"1\n0,0\n0,", id="cut in a line"),
        pytest.param(b"1\n0,-4\n0,40\n", id="below zero"),
        pytest.param(b"1\n0,0\n0,40\nmore", id="more behind"),
        pytest.param(b"1\n0,0\n0," + b"9" * 40 + b"\n", id="beyond any file"),
        pytest.param("\u0661\n0,0\n0,0\n".encode(), id="digits outside ASCII"),
    ],
)
def test_any_other_text_is_no_meta_file(text: bytes) -> None:
    assert parse(text) is None
