"""Retention: what may go, and what goes first. Nothing that somebody needs is ever named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.birth import Birth
from penstock.log.retention import Kept, Limits, NodeLimits, expired, over_total
from penstock.log.topic_log import TopicLog
from penstock.protocol.batch import HEADER, RECORD
from tests.kit import MemoryFiles
from tests.unit.log.builders import BASE, new_log

ONE = HEADER + RECORD + 100  # bytes of a segment: one batch of one record
NEVER = Limits(1 << 60, 1 << 60)


def log_of(times: list[int], name: str = "orders", files: MemoryFiles | None = None) -> TopicLog:
    """A segment of one record for each time."""
    log = new_log(files, birth=Birth(name, "00c0ffee00c0ffee", BASE), max_bytes_per_file=ONE)
    for time in times:
        log.append([bytes(100)], time)
    return log


def test_only_closed_segments_wholly_below_the_floor_go() -> None:
    log = log_of([1, 2, 3])
    for floor, below in ((0, 0), (1, 1), (2, 2), (3, 2), (99, 2)):
        assert expired(Kept(log, floor, Limits(0, 0)), 9) == below
    assert expired(Kept(log_of([]), 5, Limits(0, 0)), 9) == 0


@pytest.mark.parametrize(
    ("limits", "now", "below"),
    [
        pytest.param(NEVER, 1000, 0, id="nothing is reached"),
        pytest.param(Limits(3 * ONE, 1 << 60), 1000, 1, id="bytes"),
        pytest.param(Limits(3 * ONE - 1, 1 << 60), 1000, 2, id="a byte less"),
        pytest.param(Limits(4 * ONE, 1 << 60), 1000, 0, id="exactly all bytes"),
        pytest.param(Limits(1 << 60, 900), 1000, 1, id="time, exactly"),
        pytest.param(Limits(1 << 60, 901), 1000, 0, id="time, not yet"),
        pytest.param(Limits(1 << 60, 800), 1000, 2, id="time of two"),
        pytest.param(Limits(3 * ONE, 800), 1000, 2, id="the one that is reached first"),
        pytest.param(Limits(0, 1 << 60), 1000, 4, id="no bytes keep none"),
        pytest.param(Limits(1 << 60, 0), 1000, 4, id="no time keeps none"),
        pytest.param(Limits(1 << 60, 0), 50, 4, id="no time keeps none though the clock went back"),
        pytest.param(Limits(0, 0), 0, 4, id="nothing keeps none"),
    ],
)
def test_a_topic_deletes_by_the_limit_that_is_reached_first(limits: Limits, now: int, below: int) -> None:
    log = log_of([100, 200, 300, 400, 500])
    assert expired(Kept(log, 5, limits), now) == below
    # and never above its floor
    assert expired(Kept(log, 1, limits), now) <= 1


@given(
    st.lists(st.integers(0, 9), max_size=10),
    st.integers(0, 12),
    st.integers(0, 12 * ONE),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_what_expires_is_the_least_that_the_limits_ask_for(
    times: list[int], floor: int, size: int, age: int, now: int
) -> None:
    log = log_of(times)
    limits = Limits(size, age)
    below = expired(Kept(log, floor, limits), now)
    # then all of it is consumed, and what is retained is within the limits, or could not be more
    assert below <= max(0, min(floor, len(times) - 1))
    candidates = [segment for segment in log.chain.segments[:-1] if segment.end <= floor]
    kept = [segment for segment in candidates if segment.first >= below]
    assert sum(segment.position for segment in kept) <= limits.bytes
    assert all(now - segment.last_time < limits.time for segment in kept) or not kept
    # and the last that goes had to
    gone = [segment for segment in candidates if segment.first < below]
    if gone:
        over = sum(segment.position for segment in [gone[-1], *kept]) > limits.bytes
        assert over or now - gone[-1].last_time >= limits.time or not limits.time


def test_for_the_node_the_oldest_data_of_all_topics_goes_first() -> None:
    # given topics whose segments' times interleave, all but the last consumed
    files = MemoryFiles()
    one, two = log_of([10, 30, 50], "one", files), log_of([20, 40, 60, 70], "two", files)
    kept = [Kept(one, 9, NEVER), Kept(two, 9, NEVER)]
    # then each segment more over the limit takes the next oldest
    for over, expected in enumerate(
        [
            {},
            {one: 1},
            {one: 1, two: 1},
            {one: 2, two: 1},
            {one: 2, two: 2},
            {one: 2, two: 3},
            {one: 2, two: 3},
        ]
    ):
        below = {log.birth.folder: offset for log, offset in expected.items()}
        assert over_total(kept, NodeLimits((5 - over) * ONE, 0), 1 << 60) == below
        assert over_total(kept, NodeLimits(1 << 60, 1000 + over * ONE), 1000) == below
        if over:
            assert over_total(kept, NodeLimits((5 - over) * ONE + 1, 0), 1 << 60) == below


def test_what_a_topic_still_needs_is_not_deleted_though_the_disk_is_full() -> None:
    files = MemoryFiles()
    one, two = log_of([10, 30, 50], "one", files), log_of([20, 40], "two", files)
    assert over_total([Kept(one, 1, NEVER), Kept(two, 0, NEVER)], NodeLimits(0, 1 << 60), 0) == {one.birth.folder: 1}


def test_within_a_topic_the_front_goes_first_whatever_its_times_say() -> None:
    # given a topic of which a segment in the middle holds nothing, and so has no time, and an older topic
    files = MemoryFiles()
    log, older = log_of([100, 200, 300, 400], "one", files), log_of([50, 60], "two", files)
    middle = log.chain.segments[2]
    middle.position = middle.last_time = 0
    kept = [Kept(log, 9, NEVER), Kept(older, 9, NEVER)]
    # when one segment's bytes have to go, or two
    one, two = (over_total(kept, NodeLimits(3 * ONE - less, 0), 1 << 60) for less in (1, ONE + 1))
    # then it is the oldest of all, then the first of the topic
    assert one == {older.birth.folder: 1}
    assert two == {older.birth.folder: 1, log.birth.folder: 1}
