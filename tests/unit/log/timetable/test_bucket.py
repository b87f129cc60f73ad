"""What a bucket's files are called, and when it is loaded, split or streamed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.disk import Disk
from penstock.log.timetable.agenda import LEAD, Agenda
from penstock.log.timetable.bucket import HOUR, MINUTE, Bucket, Home, Limits, Name, State, parse
from tests.kit import MemoryFiles

from .world import SECOND, START

NAMES = st.builds(Name, *[st.integers(0, 10**20 - 1)] * 4)


@given(NAMES, st.integers(0, 10**20 - 1), st.sampled_from(["log", "index", "moved", "rescue"]))
def test_a_name_says_all_that_is_to_be_known_of_a_bucket(name: Name, number: int, kind: str) -> None:
    assert parse(f"{name.prefix}{number:06d}.{kind}") == (name, number, kind)


@pytest.mark.parametrize(
    "file",
    [
        "",
        "00000000000000000000.log",
        "00000000000000000000-1-00000000000000000001-00000000000000000000_0.bad",
        "00000000000000000000-1-00000000000000000001-00000000000000000000_.log",
        "00000000000000000000-1-00000000000000000001_0.log",
        "00000000000000000000-1-00000000000000000001-00000000000000000000_0.log.partial",
    ],
)
def test_other_names_are_no_buckets(file: str) -> None:
    assert parse(file) is None


LIMITS = Limits(load=1600, entries=24, held=4000)


def bucket(width: int, *, count: int, size: int = 10) -> Bucket:
    files = MemoryFiles()
    files.make_directory("/t")
    found = Bucket(Home(Disk(files), "/t", 1, LIMITS), Name(START, width, 1))
    for _ in range(count):
        found.put([bytes(size)], START, START, b"")
    return found


@pytest.mark.parametrize(
    ("width", "count", "size", "what"),
    [
        (MINUTE, 20, 0, "load"),
        (MINUTE, 20, 10, "load"),
        (MINUTE, 20, 11, "split"),
        (MINUTE, 24, 0, "split"),
        (HOUR, 1, 30, "load"),
        (HOUR, 2, 0, "split"),
        (1, 24, 100, "stream"),
    ],
)
def test_what_is_too_large_is_split_and_what_is_due_at_once_is_streamed(
    width: int, count: int, size: int, what: str
) -> None:
    found = bucket(width, count=count, size=size)
    said = "split" if found.to_split else "stream" if found.streamed else "load"
    assert said == what
    assert found.to_load == (LIMITS.load if what == "stream" else found.size)


def test_the_agenda_names_a_bucket_at_the_latest_time_put_down_for_it() -> None:
    agenda = Agenda()
    assert (agenda.load(), agenda.split()) == (None, None)
    found = bucket(MINUTE, count=1)
    agenda.add(found)
    assert agenda.load() == (START, found)
    # when the device failed, it is later
    found.not_before = START + SECOND
    found.noted = None
    agenda.add(found)
    assert agenda.load() == (START + SECOND + LEAD, found)
    # when it has grown, it is to be split
    for _ in range(40):
        found.put([b""], START, START, b"")
    agenda.add(found)
    assert agenda.load() is None
    split = agenda.split()
    assert split is not None
    assert split[1] is found
    # and when it is gone, nothing is
    found.state = State.GONE
    agenda.add(found)
    assert (agenda.load(), agenda.split()) == (None, None)


def test_the_earliest_comes_first() -> None:
    agenda = Agenda()
    found = [bucket(MINUTE, count=1) for _ in range(3)]
    for number, each in enumerate(found):
        each.name = Name(START, MINUTE, number)
        each.earliest = START + (2 - number) * SECOND
        agenda.add(each)
    assert agenda.load() == (START, found[2])
