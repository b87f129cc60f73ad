"""The seed of a batch, from the batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.scan import Reader
from penstock.log.tools.seeds import find_seed, seed_of
from penstock.protocol.batch import encode, encode_records
from tests.kit import MemoryFiles

SEEDS = st.integers(0, 2**32 - 1)


def reader_of(data: bytes) -> Reader:
    files = MemoryFiles()
    fd = files.open("/file", create=True)
    files.write(fd, data, 0)
    return Reader(files, fd, len(data))


def batch(first: int, bodies: list[bytes], seed: int) -> bytes:
    return bytes(encode_records(first, 1 << 40, bodies, 7, seed))


@given(payload=st.binary(max_size=2000), seed=SEEDS, first=st.integers(0, 2**63))
def test_the_seed_of_an_intact_batch_is_found_from_it(payload: bytes, seed: int, first: int) -> None:
    assert seed_of(encode(first, 3, 7, payload, seed)) == seed


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_large_batch_says_its_seed_too(seed: int) -> None:
    assert seed_of(encode(0, 1, 0, b"x" * 300_000, seed)) == seed


@given(data=st.binary(min_size=1, max_size=200), place=st.integers(0, 199), seed=SEEDS)
def test_a_batch_that_was_hurt_says_another_seed(data: bytes, place: int, seed: int) -> None:
    # given a batch with one byte of its payload changed
    hurt = encode(0, 1, 0, data, seed)
    hurt[40 + place % len(data)] ^= 1
    # then nobody takes its seed for the true one
    assert seed_of(hurt) != seed


def test_two_batches_that_agree_are_believed_over_those_that_were_hurt() -> None:
    # given a file in which most batches are hurt, two of them alike, so that these agree as well
    hurt = [bytearray(batch(first, [b"%d" % first], 77)) for first in range(8)]
    for number, change in enumerate([1, 1, 2, 3, 4]):
        hurt[number][-1] ^= change
    # when its seed is looked for, then it is theirs
    assert find_seed(reader_of(b"noise" + b"".join(hurt))) == 77


def test_a_batch_alone_is_believed_where_it_holds_records() -> None:
    assert find_seed(reader_of(batch(0, [b"one", b"two"], 78))) == 78
    assert find_seed(reader_of(bytes(encode(0, 1, 0, b"no record", 78)))) is None


def test_the_same_bad_batch_twice_is_no_evidence() -> None:
    # given a bad batch and a copy of it, as the folder of damage holds it
    hurt = bytearray(batch(0, [b"one"], 79))
    hurt[-1] ^= 0xFF
    # then no seed is believed
    assert find_seed(reader_of(bytes(hurt) * 2 + batch(1, [b"two"], 79))) is None


@pytest.mark.parametrize(
    "data", [b"", b"\xf5PSK", b"\xf5PSK" * 100, bytes(5000)], ids=["empty", "magic", "many", "zeros"]
)
def test_a_file_without_batches_has_no_seed(data: bytes) -> None:
    assert find_seed(reader_of(data)) is None
