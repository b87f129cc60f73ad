"""Going through a file of batches: everything that is whole is found, and where it ends is said rightly."""

from __future__ import annotations

import errno
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log import scan as scanning
from penstock.log.files import Files
from penstock.log.index import STEP, Gap, Index, Mark
from penstock.log.scan import Reader, Tail, find_good, scan
from penstock.protocol.batch import HEADER, MAGIC, encode, header
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.log.builders import SEED, batch

BEGIN = Mark(0, 0, 0)


def reader_of(data: bytes, files: Files | None = None) -> Reader:
    files = files or MemoryFiles()
    fd = files.open("/file", create=True)
    files.write(fd, data, 0)
    return Reader(files, fd, len(data))


def batches(sizes: list[int], first: int = 0, time: int = 100) -> list[bytes]:
    """A batch of two records for each size of the first one's body; times count up."""
    made = []
    for number, size in enumerate(sizes):
        body = random.Random(size).randbytes(size)
        made.append(bytes(batch(first + 2 * number, [body, b"%d" % number], time + number)))
    return made


def scanned(data: bytes, start: Mark = BEGIN) -> tuple[Tail, Index]:
    index = Index()
    return scan(reader_of(data), start, SEED, index), index


@pytest.fixture(params=[1 << 20, 64, 4096], ids=["one window", "windows smaller than a batch", "a few windows"])
def _windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "WINDOW", request.param)


# --- whole files


@pytest.mark.usefixtures("_windows")
def test_a_whole_file_is_walked_to_its_end() -> None:
    data = b"".join(batches([10, 2000, 0, 9000, 50]))
    tail, index = scanned(data)
    assert tail == Tail(len(data), 10, 104, True)
    assert index.last() == Mark(0, 100, 0)
    assert index.gaps == []


def test_an_empty_file_ends_where_it_begins() -> None:
    assert scanned(b"", Mark(7, 3, 0))[0] == Tail(0, 7, 3, True)


def test_marks_are_a_step_apart_and_each_is_where_a_batch_begins() -> None:
    # given batches of all sizes up to beyond a step
    made = batches([100, STEP - 1, STEP // 2, STEP, STEP + 1, 3 * STEP, 10, 10, 2_000_000, 5])
    data = b"".join(made)
    tail, index = scanned(data)
    # then every mark says the offset and the time of the batch that begins there
    for number in range(len(index)):
        mark = index.at(number)
        head = header(data, mark.position)
        assert (head.first, head.appended) == (mark.offset, mark.time)
    # and from one to the next it is a step, and not more than two and a batch
    between = [after - before for before, after in itertools.pairwise(index.positions)]
    assert len(between) >= 5
    assert all(STEP <= size < 2 * STEP + max(map(len, made)) for size in between)
    assert tail.position - index.positions[-1] < 2 * STEP


def test_a_scan_from_a_mark_adds_only_what_lies_behind_it() -> None:
    made = batches([STEP, STEP, STEP])
    index = Index()
    start = Mark(2, 100, len(made[0]))
    index.add(*start)
    tail = scan(reader_of(b"".join(made)), start, SEED, index)
    assert (tail.offset, index.at(0), len(index)) == (6, start, 2)


@pytest.mark.usefixtures("_windows")
def test_the_headers_of_keyed_batches_are_kept() -> None:
    keyed = [bytes(batch(first, [b"body" * 500], 9, key=b"key %d" % first)) for first in range(2)]
    found: list[bytes] = []
    scan(reader_of(b"".join([*keyed, *batches([5], first=2)])), BEGIN, SEED, Index(), found)
    assert found == [one[: HEADER + 5] for one in keyed]


# --- torn ends


@pytest.mark.usefixtures("_windows")
def test_cut_at_any_byte_it_ends_behind_the_last_whole_batch_and_is_torn() -> None:
    made = batches([10, 300, 0, 40])
    data = b"".join(made)
    ends = [0]
    for one in made:
        ends.append(ends[-1] + len(one))
    for size in range(len(data)):
        tail, index = scanned(data[:size])
        whole = max(number for number, end in enumerate(ends) if end <= size)
        assert tail == Tail(ends[whole], 2 * whole, 99 + whole if whole else 0, True)
        assert index.gaps == []


@pytest.mark.parametrize("size", [1, HEADER, 5000, (1 << 20) + 1])
def test_zeros_behind_the_last_batch_are_torn(size: int) -> None:
    data = b"".join(batches([10]))
    assert scanned(data + bytes(size))[0] == Tail(len(data), 2, 100, True)


@pytest.mark.parametrize("size", [1, HEADER, 5000])
def test_noise_behind_the_last_batch_is_not(size: int) -> None:
    data = b"".join(batches([10]))
    assert scanned(data + b"\xee" * size)[0] == Tail(len(data), 2, 100, False)


def test_zeros_with_anything_behind_them_are_not() -> None:
    data = b"".join(batches([10]))
    assert not scanned(data + bytes(3 << 20) + b"x")[0].torn


def test_the_last_batch_with_any_bit_flipped_is_damage_and_not_torn() -> None:
    # given a file whose last batch was answered
    made = batches([10, 30])
    data = b"".join(made)
    for at in range(len(made[0]), len(data)):
        for bit in range(8):
            # when any bit of it flips, its length's among them
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            # then nobody may say that it was never there
            assert scanned(bytes(flipped))[0] == Tail(len(made[0]), 2, 100, False), (at, bit)


# --- damage before good batches


@pytest.mark.usefixtures("_windows")
def test_a_bad_batch_between_good_ones_is_a_gap_whichever_byte_of_it_is_bad() -> None:
    made = batches([10, 200, 3000, 0])
    data = b"".join(made)
    begin, end = len(made[0]), len(made[0]) + len(made[1])
    for at in range(begin, end):
        flipped = bytearray(data)
        flipped[at] ^= 0x80
        tail, index = scanned(bytes(flipped))
        assert tail == Tail(len(data), 8, 103, True)
        assert index.gaps == [Gap(2, 4, begin, end)]
        # and what follows begins with a mark
        assert index.at(1) == Mark(4, 102, end)


@pytest.mark.usefixtures("_windows")
def test_several_stretches_of_damage_are_gaps_of_their_own() -> None:
    made = batches([50] * 7)
    size = len(made[0])
    data = bytearray(b"".join(made))
    for number in (0, 2, 3, 5):
        data[number * size + 60] ^= 1
    tail, index = scanned(bytes(data))
    assert index.gaps == [
        Gap(0, 2, 0, size),
        Gap(4, 8, 2 * size, 4 * size),
        Gap(10, 12, 5 * size, 6 * size),
    ]
    assert tail == Tail(len(data), 14, 106, True)


def test_a_batch_that_is_gone_with_its_bytes_is_a_gap_of_no_bytes() -> None:
    made = batches([10, 20, 30])
    tail, index = scanned(made[0] + made[2])
    assert (tail.offset, index.gaps) == (6, [Gap(2, 4, len(made[0]), len(made[0]))])


def test_a_batch_whose_offsets_were_there_before_does_not_follow() -> None:
    # given a file in which an old batch comes up again, as a power cut may make it
    made = batches([10, 20, 30])
    data = made[0] + made[1] + made[0] + made[2]
    # then it is stepped over
    tail, index = scanned(data)
    assert (tail.offset, len(index.gaps)) == (6, 1)


def test_headers_that_stand_in_a_body_are_not_taken_for_batches() -> None:
    # given a damaged batch, in whose body stand beginnings of batches of all kinds
    fakes = [
        MAGIC,
        batch(9, [b"too long"])[: HEADER + 9],
        b"".join([MAGIC, (2**32 - 1).to_bytes(4, "big"), bytes(32)]),
        encode(3, 1, 0, b"of another topic", SEED ^ 1),
        batch(0, [b"offsets that were"]),
        MAGIC[:3] + MAGIC + MAGIC[:2],
    ]
    bad = bytearray(batch(1, [bytes(fake) + b"-" for fake in fakes]))
    bad[30] ^= 1
    good = batch(7, [b"good"])
    data = bytes(batch(0, [b"zero"]) + bad + good)
    # then the next batch is the one that is
    tail, index = scanned(data)
    assert index.gaps == [Gap(1, 7, len(data) - len(good) - len(bad), len(data) - len(good))]
    assert tail.offset == 8


@pytest.mark.parametrize("before", range(0, 140, 7))
@pytest.mark.usefixtures("_windows")
def test_a_good_batch_is_found_wherever_a_window_ends(before: int) -> None:
    good = bytes(batch(5, [b"good"]))
    data = b"\xee" * before + good + b"\xee" * 70
    assert find_good(reader_of(data), 0, 3, SEED) == (before, 5)
    assert find_good(reader_of(data), 0, 6, SEED) is None
    assert find_good(reader_of(data), before + 1, 0, SEED) is None


@given(st.lists(st.integers(0, 300), min_size=2, max_size=8), st.data())
def test_every_batch_that_nothing_happened_to_is_found(sizes: list[int], draw: st.DataObject) -> None:
    # given batches, some of which were overwritten somewhere with something
    made = batches(sizes)
    data = bytearray(b"".join(made))
    begins = [sum(map(len, made[:number])) for number in range(len(made))]
    hurt = set()
    for _ in range(draw.draw(st.integers(1, 4))):
        at = draw.draw(st.integers(0, len(data) - 1))
        size = draw.draw(st.integers(1, 200))
        noise = draw.draw(st.binary(min_size=size, max_size=size))
        for place, byte in enumerate(noise[: len(data) - at], at):
            if data[place] != byte:
                data[place] = byte
                hurt.add(max(number for number, begin in enumerate(begins) if begin <= place))
    # when the file is scanned
    tail, index = scanned(bytes(data))
    # then the gaps are around the hurt ones, and the tail ends behind the last one that is not
    whole = [number for number in range(len(made)) if number not in hurt]
    assert tail.position == (begins[whole[-1]] + len(made[whole[-1]]) if whole else 0)
    lost = [offset for gap in index.gaps for offset in range(gap.first, gap.next)]
    assert lost == [
        offset for number in sorted(hurt) if whole and number < whole[-1] for offset in (2 * number, 2 * number + 1)
    ]


# --- what the device does not give


def test_of_bytes_that_the_device_does_not_give_only_their_pages_are_zeros() -> None:
    # given a file with a bad page
    data = random.Random(3).randbytes(5 * 4096 + 100)
    files = FailingFiles(MemoryFiles())
    reader = reader_of(data, files)

    class BadPage(FailingFiles):
        def read(self, fd: int, size: int, position: int) -> bytes:
            if position < 3 * 4096 and position + size > 2 * 4096:
                raise OSError(errno.EIO, "bad page")
            return self.beneath.read(fd, size, position)

    reader.files = BadPage(files)
    # when it is read from anywhere
    expected = data[: 2 * 4096] + bytes(4096) + data[3 * 4096 :]
    for start in (0, 1, 4095, 4096, 2 * 4096 - 1, 2 * 4096, 2 * 4096 + 5, 3 * 4096 - 1):
        reader.unreadable = 0
        assert reader.read(start, 1 << 20) == expected[start:]
        # then the page is counted
        assert reader.unreadable == 1
    assert reader.read(3 * 4096, 50) == expected[3 * 4096 : 3 * 4096 + 50]


def test_any_other_error_is_the_caller_s() -> None:
    files = FailingFiles(MemoryFiles())
    reader = reader_of(b"bytes", files)
    files.fail(errno.EMFILE, on="read")
    with pytest.raises(OSError, match="Too many"):
        reader.read(0, 5)


def test_nothing_is_read_beyond_the_limit() -> None:
    reader = reader_of(b"0123456789")
    reader.limit = 7
    assert reader.read(5, 99) == b"56"
    assert reader.read(7, 99) == b""
    assert reader.read(8, 99) == b""
