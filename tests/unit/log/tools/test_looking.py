"""What a file is told to hold is what recovery makes of it; and nothing is touched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.log.files import Files
from penstock.log.index import Gap, Index, Mark
from penstock.log.scan import Reader, scan
from penstock.log.tools.looking import End, Run, Stretch, stretches
from penstock.protocol.batch import records
from tests.kit import Call, FailingFiles, MemoryFiles
from tests.unit.log.builders import SEED, batch

SIZES = st.lists(st.integers(0, 3000), min_size=1, max_size=12)
HARM = st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=60)), max_size=4)


def file_of(data: bytes, files: Files | None = None) -> Files:
    files = files or MemoryFiles()
    fd = files.open("/file", create=True, truncate=True)
    files.write(fd, data, 0)
    files.close(fd)
    return files


def batches(sizes: list[int], first: int = 0) -> bytes:
    return b"".join(
        bytes(batch(first + number, [b"%d" % number * size], 100 + number)) for number, size in enumerate(sizes)
    )


def harmed(data: bytes, harm: list[tuple[float, bytes]], keep: float = 1) -> bytes:
    hurt = bytearray(data)
    for place, noise in harm:
        at = int(place * len(hurt))
        hurt[at : at + len(noise)] = noise[: len(hurt) - at]
    return bytes(hurt[: round(keep * len(hurt))])


def told(files: Files, first: int | None = 0) -> list[Stretch]:
    return list(stretches(files, "/file", first, SEED))


@given(sizes=SIZES, harm=HARM, keep=st.floats(0, 1))
def test_what_is_told_is_what_recovery_finds(sizes: list[int], harm: list[tuple[float, bytes]], keep: float) -> None:
    # given a file with bytes changed anywhere, and cut off anywhere
    data = harmed(batches(sizes), harm, keep)
    files = file_of(data)
    # when it is recovered, and looked at
    index = Index()
    fd = files.open("/file")
    tail = scan(Reader(files, fd, len(data)), Mark(0, 0, 0), SEED, index)
    *body, end = told(files)
    # then both say the same of the gaps and the end
    assert [stretch for stretch in body if isinstance(stretch, Gap)] == index.gaps
    assert end == End(tail.position, tail.offset, tail.torn, len(data), False)
    # and runs and gaps follow each other without a hole between them
    at = 0
    for stretch in body:
        assert isinstance(stretch, Run | Gap)
        assert stretch.position == at
        at = stretch.stop
    assert at == tail.position


def test_runs_hold_the_batches_as_they_stand() -> None:
    data = batches([10, 20, 30])
    run, end = told(file_of(data))
    assert isinstance(run, Run)
    assert (bytes(run.data), run.first, run.next, run.time) == (data, 0, 3, 102)
    assert end == End(len(data), 3, True, len(data), False)


def test_an_empty_file_ends_where_it_begins() -> None:
    assert told(file_of(b""), 7) == [End(0, 7, True, 0, False)]


def test_a_file_whose_name_says_nothing_begins_with_its_first_good_batch() -> None:
    # given a file that begins with bad bytes, and of which nobody knows the first offset
    data = b"bad bytes" + batches([10, 20], first=500)
    # when it is looked at
    gap, run, _ = told(file_of(data), None)
    # then no offset counts as lost
    assert gap == Gap(500, 500, 0, 9)
    assert isinstance(run, Run)
    assert (run.first, run.next) == (500, 502)


def test_a_batch_that_a_node_is_writing_is_looked_at_again() -> None:
    # given a file that ends in bytes that are no batch, and a node that writes over them after the first look
    good, next_ = batches([10]), batches([20], first=1)
    files = FailingFiles(file_of(good + b"x" * len(next_)))

    def node(call: Call) -> None:
        looks = [each for each in files.calls if each.method == "size"]
        if call.method == "size" and len(looks) == 2:
            file_of(good + next_, files.beneath)

    files.before = node
    # when it is looked at
    found = told(files)
    # then what was written meanwhile is there, and no damage is told
    assert [record.body for run in found if isinstance(run, Run) for record in records(run.data)] == [
        b"0" * 10,
        b"0" * 20,
    ]
    assert isinstance(found[-1], End)
    assert (found[-1].torn, found[-1].offset) == (True, 2)
    assert not [stretch for stretch in found if isinstance(stretch, Gap)]
