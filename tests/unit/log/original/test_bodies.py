"""A body is what stands in the file, in whatever order bodies are asked for."""

from __future__ import annotations

import errno
import random

import pytest

from penstock.errors import DiskFailed, ImportFailed
from penstock.log.original.bodies import Bodies
from tests.kit import FailingFiles, MemoryFiles

SIZE = 1 << 20
DATA = random.Random(1).randbytes(SIZE)


def files_with(count: int) -> tuple[MemoryFiles, list[str]]:
    files = MemoryFiles()
    paths = [f"/{number}" for number in range(count)]
    for number, path in enumerate(paths):
        fd = files.open(path, create=True)
        files.write(fd, DATA[number:], 0)
        files.close(fd)
    return files, paths


@pytest.mark.parametrize("largest", [0, 100, 10_000, 600_000])
def test_bodies_of_any_size_come_from_any_place(largest: int) -> None:
    # given two files
    files, paths = files_with(2)
    bodies = Bodies(files, paths)
    rng = random.Random(largest)
    for _ in range(300):
        # when a body is asked for anywhere
        size = rng.randint(0, largest)
        source = rng.randrange(2)
        position = rng.randrange(SIZE - size - 2)
        # then it is what stands there
        assert bodies.read(source, position, size) == DATA[source + position :][:size]


def test_bodies_that_stand_in_a_row_are_read_a_part_at_a_time() -> None:
    # given a file
    beneath, paths = files_with(1)
    files = FailingFiles(beneath)
    bodies = Bodies(files, paths)
    # when its bodies are asked for one after the other, from two places by turns
    for position in range(0, SIZE // 2 - 100, 100):
        for start in (0, SIZE // 2):
            assert bodies.read(0, start + position, 100) == DATA[start + position :][:100]
    # then there were few reads: two for each part, and one for each body that lies in two
    assert sum(call.method == "read" for call in files.calls) <= 2 * 4 + 4


def test_few_files_are_open_at_once() -> None:
    # given more files than may be open
    files, paths = files_with(60)
    files.descriptors = 40
    bodies = Bodies(files, paths)
    # when all are read, and again
    for source in [*range(60), *range(60)]:
        assert bodies.read(source, 5, 3) == DATA[source + 5 :][:3]
    # then none stays open
    bodies.close()
    assert files.opened() == []


def test_a_file_that_became_shorter_is_told_of() -> None:
    files, paths = files_with(1)
    bodies = Bodies(files, paths)
    with pytest.raises(ImportFailed, match="/0 was changed"):
        bodies.read(0, SIZE - 10, 11)


def test_an_error_of_the_disk_is_a_typed_one() -> None:
    beneath, paths = files_with(1)
    files = FailingFiles(beneath)
    files.fail(errno.EACCES, on="open")
    with pytest.raises(DiskFailed, match="reading /0: Permission denied"):
        Bodies(files, paths).read(0, 0, 1)
