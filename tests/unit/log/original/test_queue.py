"""A queue gives every message from its read position to the end of its files, and tells of what is wrong."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DiskFailed, TooManyFiles
from penstock.log.files import Files
from penstock.log.original.data_file import WINDOW
from penstock.log.original.findings import Finding, Findings, Kind
from penstock.log.original.meta import Meta
from penstock.log.original.queue import Queue
from penstock.log.original.records import LARGEST
from tests.kit import FailingFiles, MemoryFiles

from .folders import FOLDER, folder, put, record, records

META = "t.diskqueue.meta.dat"


def name(number: int) -> str:
    return f"t.diskqueue.{number:06d}.dat"


def read(contents: dict[int, bytes], meta: Meta | None) -> tuple[list[int], list[Finding]]:
    """Which messages the queue with these files gives, by their ids, and what it tells."""
    files = folder("t")
    for number, content in contents.items():
        put(files, name(number), content)
    return read_from(files, list(contents), meta)


def read_from(files: Files, numbers: list[int], meta: Meta | None) -> tuple[list[int], list[Finding]]:
    findings: Findings = {}
    queue = Queue(files, FOLDER, "t", numbers, meta, findings)
    return [int(message.id, 16) for message in queue.messages()], list(findings)


def test_messages_come_with_all_their_fields() -> None:
    files = folder("t")
    put(files, name(0), record(1, b"first", attempts=3, time=77) + record(2, b""))
    queue = Queue(files, FOLDER, "t", [0], None, {})
    assert [tuple(message) for message in queue.messages()] == [
        (77, b"%016x" % 1, 3, b"first"),
        (1_700_000_000_000_000_002, b"%016x" % 2, 0, b""),
    ]
    assert files.opened() == []


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 12), st.integers(0, 999_999))
def test_reading_begins_at_the_read_position_and_goes_through_all_files(
    sizes: list[int], delivered: int, first: int
) -> None:
    # given files with some records each, of which nsqd delivered the first ones and removed the files it had finished
    numbers = iter(range(100))
    of_file = [[next(numbers) for _ in range(size)] for size in sizes]
    left = [[n for n in ns if n >= delivered] for ns in of_file]
    here = {first + at: ns for at, ns in enumerate(of_file) if left[at] or at == len(of_file) - 1}
    start = min(here)
    last = max(here)
    read_at = sum(len(record(n)) for n in here[start] if n < delivered)
    meta = Meta(sum(map(len, left)), start, read_at, last, len(records(*here[last])))
    # when the queue is read
    found, findings = read({number: records(*ns) for number, ns in here.items()}, meta)
    # then it gives what was not delivered, in order, and there is nothing to tell
    assert found == [n for ns in left for n in ns]
    assert findings == []


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        pytest.param(Meta(2, 0, len(records(0, 1)), 1, len(records(2, 3))), [2, 3], id="at the end of a rolled file"),
        pytest.param(Meta(2, 1, 0, 1, len(records(2, 3))), [2, 3], id="at the beginning of the next"),
        pytest.param(Meta(4, 0, 0, 2, 0), [0, 1, 2, 3], id="rolled, nothing written yet"),
        pytest.param(Meta(0, 2, 0, 2, 0), [], id="rolled, and read up to there"),
        pytest.param(Meta(0, 1, len(records(2, 3)), 1, len(records(2, 3))), [], id="all read"),
    ],
)
def test_a_boundary_between_files_is_no_damage(meta: Meta, expected: list[int]) -> None:
    """The reader that waits at the end of a file as it rolls: nsqd 1.3.0 would set that file aside."""
    contents = {0: records(0, 1), 1: records(2, 3)}
    found, findings = read({number: contents[number] for number in contents if number >= meta.read_file}, meta)
    assert (found, findings) == (expected, [])


@pytest.mark.parametrize("cut", range(1, len(record(2))))
def test_a_last_record_that_is_not_whole_is_left_out_and_told_of(cut: int) -> None:
    # given a queue whose last record is cut, behind the write position
    whole = records(0, 1)
    meta = Meta(2, 0, 0, 0, len(whole))
    # when it is read
    found, findings = read({0: whole + record(2)[:cut]}, meta)
    # then the whole ones are there
    assert found == [0, 1]
    assert findings == [
        Finding(Kind.LATE, name(0), len(whole), cut),
        Finding(Kind.TORN, name(0), len(whole), cut),
    ]


@pytest.mark.parametrize("cut", range(1, len(record(2))))
def test_a_record_that_is_not_whole_at_the_end_of_a_rolled_file_does_not_hide_the_next(cut: int) -> None:
    whole = records(0, 1)
    found, findings = read({0: whole + record(2)[:cut], 1: record(3)}, Meta(3, 0, 0, 1, len(record(3))))
    assert found == [0, 1, 3]
    assert findings == [Finding(Kind.TORN, name(0), len(whole), cut)]


@pytest.mark.parametrize("size", [0, 1, 25, LARGEST + 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_behind_a_hostile_size_reading_goes_on_with_the_next_good_record(size: int) -> None:
    # given a record in the middle whose size is absurd
    damaged = struct.pack(">I", size) + record(1)[4:]
    # when the queue is read
    found, findings = read({0: record(0) + damaged + records(2, 3), 1: record(4)}, Meta(5, 0, 0, 1, len(record(4))))
    # then only that one is lost, and told of
    assert found == [0, 2, 3, 4]
    assert findings == [
        Finding(Kind.DAMAGED, name(0), len(record(0)), len(damaged)),
        Finding(Kind.COUNT, META, 5, 4),
    ]


@pytest.mark.parametrize("size", [100, 1000, WINDOW + 1, LARGEST])
def test_behind_a_size_that_could_be_right_but_is_not_reading_goes_on(size: int) -> None:
    # given a record whose size says more than there is, or leads into the midst of another
    damaged = struct.pack(">I", size) + record(1)[4:]
    # when the queue is read
    found, findings = read({0: record(0) + damaged + records(2, 3, 4, 5)}, None)
    # then the others are there
    assert found == [0, 2, 3, 4, 5]
    assert findings == [Finding(Kind.DAMAGED, name(0), len(record(0)), len(damaged))]


def test_a_file_in_which_nothing_good_follows_is_left_for_the_next_one() -> None:
    found, findings = read({0: record(0) + b"\xff" * 3000, 1: record(1)}, Meta(2, 0, 0, 1, len(record(1))))
    assert found == [0, 1]
    assert findings == [Finding(Kind.DAMAGED, name(0), len(record(0)), 3000)]


def test_a_stretch_of_zeros_is_stepped_over() -> None:
    found, findings = read({0: record(0) + bytes(4096) + records(1, 2) + bytes(100)}, None)
    assert found == [0, 1, 2]
    assert findings == [
        Finding(Kind.DAMAGED, name(0), len(record(0)), 4096),
        Finding(Kind.DAMAGED, name(0), len(records(0, 1, 2)) + 4096, 100),
    ]


@pytest.mark.parametrize("size", [WINDOW - 60, WINDOW - 30, WINDOW, 3 * WINDOW + 7])
def test_a_message_as_large_as_a_window_or_larger_is_read_whole(size: int) -> None:
    # given a large message between small ones
    files = folder("t")
    put(files, name(0), record(0) + record(1, b"x" * size) + records(2, 3))
    # when they are read
    queue = Queue(files, FOLDER, "t", [0], None, {})
    # then the large one is as it was, and so are the others
    assert [len(message.body) for message in queue.messages()] == [9, size, 9, 9]


def test_what_was_written_after_the_last_sync_is_read() -> None:
    # given a queue that was killed: its meta file is older than its last file, and than the one after that
    contents = {3: records(0, 1), 4: records(2, 3), 5: record(4)}
    # when it is read
    found, findings = read(contents, Meta(3, 3, 0, 4, len(record(2))))
    # then everything is there
    assert found == [0, 1, 2, 3, 4]
    assert findings == [
        Finding(Kind.BEYOND, name(5)),
        Finding(Kind.LATE, name(4), len(record(2)), len(record(3))),
        Finding(Kind.COUNT, META, 3, 5),
    ]


def test_files_that_are_gone_are_told_of_and_passed_over() -> None:
    # given a queue of which files are missing at its read position and in its middle
    meta = Meta(9, 2, 100, 7, len(record(2)))
    found, findings = read({4: record(0), 5: record(1), 7: record(2)}, meta)
    # then the others are read from their beginning
    assert found == [0, 1, 2]
    assert findings == [
        Finding(Kind.GONE, name(2), size=2),
        Finding(Kind.GONE, name(6), size=1),
        Finding(Kind.COUNT, META, 9, 3),
    ]


def test_files_before_the_read_position_were_delivered() -> None:
    found, findings = read({0: record(0), 1: record(1)}, Meta(1, 1, 0, 1, len(record(1))))
    assert found == [1]
    assert findings == [Finding(Kind.DELIVERED, name(0))]


@pytest.mark.parametrize("read_at", [40, 10_000])
def test_a_file_shorter_than_its_meta_file_says_gives_what_it_has(read_at: int) -> None:
    # given a file that a power cut left shorter than its positions
    found, findings = read({0: record(0), 1: record(1)}, Meta(2, 0, read_at, 1, len(record(1)) + 9))
    # then what there is is read
    assert found == [1]
    assert Finding(Kind.SHORT, name(0), read_at, read_at - len(record(0))) in findings
    assert Finding(Kind.SHORT, name(1), len(record(1)) + 9, 9) in findings


def test_a_read_position_inside_a_record_leads_to_the_next_one() -> None:
    found, findings = read({0: records(0, 1, 2)}, Meta(2, 0, 7, 0, len(records(0, 1, 2))))
    assert found == [1, 2]
    assert findings == [Finding(Kind.DAMAGED, name(0), 7, len(record(0)) - 7)]


def test_without_a_meta_file_all_files_are_read_in_the_order_of_their_numbers() -> None:
    assert read({1_000_000: record(2), 999_999: record(1), 7: record(0)}, None) == ([0, 1, 2], [])


def test_a_queue_without_files_has_no_messages() -> None:
    assert read({}, Meta(0, 0, 0, 0, 0)) == ([], [])
    assert read({}, None) == ([], [])


def test_reading_again_tells_nothing_twice() -> None:
    files = folder("t")
    put(files, name(0), record(0) + b"\xff" * 50)
    findings: Findings = {}
    queue = Queue(files, FOLDER, "t", [0], None, findings)
    assert len(list(queue.messages())) == len(list(queue.messages())) == 1
    assert len(findings) == 1


@given(st.binary(max_size=400), st.integers(0, 500), st.integers(0, 500))
def test_any_bytes_and_any_positions_are_read_without_an_error(data: bytes, read_at: int, write_at: int) -> None:
    found, _ = read({0: data, 1: record(7)}, Meta(-1, 0, read_at, 0, write_at))
    assert found[-1] == 7


def test_a_part_that_the_device_does_not_give_is_told_of_and_the_rest_is_read() -> None:
    # given a file of which one page cannot be read
    beneath = folder("t")
    count = 600
    put(beneath, name(0), records(*range(count)))
    files = UnreadablePage(beneath, 8192)
    # when it is read
    found, findings = read_from(files, [0], None)
    # then most messages are there, and it is told
    assert len(found) > count - 4096 // len(record(0)) - 3
    assert {finding.kind for finding in findings} == {Kind.DAMAGED, Kind.UNREADABLE}


class UnreadablePage(FailingFiles):
    """Reads that touch the page at `page` fail."""

    def __init__(self, files: MemoryFiles, page: int) -> None:
        super().__init__(files)
        self._page = page

    def read(self, fd: int, size: int, position: int) -> bytes:
        if position < self._page + 4096 and self._page < position + size:
            raise OSError(errno.EIO, "Input/output error")
        return super().read(fd, size, position)


@pytest.mark.parametrize(
    ("error", "on", "raised"),
    [(errno.EACCES, "open", DiskFailed), (errno.EMFILE, "open", TooManyFiles), (errno.EBADF, "read", DiskFailed)],
)
def test_another_error_of_the_disk_is_a_typed_one(error: int, on: str, raised: type[Exception]) -> None:
    beneath = folder("t")
    put(beneath, name(0), record(0))
    files = FailingFiles(beneath)
    files.fail(error, on=on)
    with pytest.raises(raised, match=r"reading /nsqd/t\.diskqueue\.000000\.dat"):
        read_from(files, [0], None)
    assert beneath.opened() == []
