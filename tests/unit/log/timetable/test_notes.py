"""Notes of what was moved: what is read is what was written, whatever failed between."""

from __future__ import annotations

import errno

from penstock.log.disk import Disk
from penstock.log.timetable.notes import Notes
from penstock.log.work import Work
from tests.kit import FailingFiles, MemoryFiles


def notes_in(files: FailingFiles) -> Notes:
    return Notes(files, "/t", "bucket_", 7)


def add(notes: Notes, key: bytes) -> tuple[bool, bool]:
    """Whether the directory has to be flushed, and whether the note was written."""
    work = Work()
    new = notes.add(work, key)
    work()
    return new, work.error is None


def new_files() -> FailingFiles:
    beneath = MemoryFiles()
    beneath.make_directory("/t")
    return FailingFiles(beneath)


def test_notes_are_read_in_order_from_one_file() -> None:
    files = new_files()
    notes = notes_in(files)
    assert [add(notes, key) for key in (b"1", b"2" * 300, b"3")] == [(True, True), (False, True), (False, True)]
    assert notes_in(files).read(Disk(files), [0]) == [b"1", b"2" * 300, b"3"]
    assert notes.paths == ["/t/bucket_000000.moved"]


def test_after_an_error_a_new_file_is_written_and_all_that_was_told_as_written_is_read() -> None:
    for skip in range(6):
        files = new_files()
        notes = notes_in(files)
        files.fail(errno.EIO, skip=skip, written=20)
        told = [key for key in (b"1", b"2", b"3") if add(notes, key)[1]]
        # when they are read again
        again = notes_in(files)
        found = again.read(Disk(files), [number for number, path in enumerate(notes.paths) if files.exists(path)])
        # then none is missing; one told as failed may be there
        assert set(told) <= set(found)
        assert len(told) >= 2


def test_a_file_that_was_found_is_not_written_on() -> None:
    files = new_files()
    add(notes_in(files), b"1")
    again = notes_in(files)
    again.read(Disk(files), [0])
    assert add(again, b"2") == (True, True)
    assert again.paths == ["/t/bucket_000000.moved", "/t/bucket_000001.moved"]
    assert notes_in(files).read(Disk(files), [0, 1]) == [b"1", b"2"]
