"""Percentiles of the time from publish to finish."""

from __future__ import annotations

import random
import struct
from array import array

import pytest

from penstock.broker.latency import COUNTS, Latency, quantiles

S = 10**9
MS = 10**6
WINDOW = 10 * S
BASE = (1 << 62) - 1


def frames(*published: int, size: int = 3) -> bytes:
    return b"".join(struct.pack(">IIQH16s", 30 + size, 2, time, 1, b"f" * 16) + b"b" * size for time in published)


def ids(*offsets: int) -> array[int]:
    return array("Q", [BASE + offset for offset in offsets])


def near(found: int, expected: int) -> bool:
    return abs(found - expected) <= expected * 0.016 + 1000


def of(latency: Latency, now: int, *parts: float) -> tuple[int, list[int]]:
    return quantiles([latency], parts, now)


def test_each_part_took_no_longer_than_its_percentile() -> None:
    latency = Latency(WINDOW)
    # given a hundred messages published in a turn each, finished after 1 to 100 ms
    latency.given(range(100), BASE, frames(*(S - number * MS for number in range(1, 101))))
    latency.finished(ids(*range(100)), (), S)
    # then half of them took no more than 50 ms, and so on
    count, (p50, p99, p100) = of(latency, S, 0.5, 0.99, 1)
    assert count == 100
    assert near(p50, 50 * MS)
    assert near(p99, 99 * MS)
    assert near(p100, 100 * MS)


@pytest.mark.parametrize("took", [0, 1000, 63_999, 64_000, 10**6, 123_456_789, 60 * S, 10 * 86400 * S])
def test_times_of_every_size_are_kept_to_two_percent(took: int) -> None:
    latency = Latency(WINDOW)
    latency.given([7], BASE, frames(S))
    latency.finished(ids(7), (), S + took)
    count, (found,) = of(latency, S + took, 1)
    assert count == 1
    assert near(found, took)


@pytest.mark.parametrize(("published", "now"), [(5 * S, S), (0, 100 * 86400 * S)], ids=["clock-set-back", "months"])
def test_times_that_cannot_be_or_are_beyond_all_bounds_are_counted(published: int, now: int) -> None:
    latency = Latency(WINDOW)
    latency.given([7], BASE, frames(published))
    latency.finished(ids(7), (), now)
    assert of(latency, now, 1)[0] == 1


def test_what_was_not_finished_does_not_count() -> None:
    latency = Latency(WINDOW)
    latency.given([1, 2, 3], BASE, frames(0, 0, 0))
    # given FINs of messages that were never given, that failed, and that come twice
    latency.finished(ids(2, 9, 1, 2), (0, 2), S)
    assert of(latency, S, 1)[0] == 1


def test_nothing_is_known_before_the_first_finish() -> None:
    latency = Latency(WINDOW)
    assert of(latency, S, 1, 0.5) == (0, [0, 0])
    latency.finished(ids(1), (), S)
    assert of(latency, S, 1) == (0, [0])


def test_a_message_given_again_is_counted_once_from_its_publish() -> None:
    latency = Latency(WINDOW)
    for _ in range(2):
        latency.given([5], BASE, frames(S))
    latency.finished(ids(5), (), 3 * S)
    count, (p100,) = of(latency, 3 * S, 1)
    assert (count, near(p100, 2 * S)) == (1, True)


def test_what_was_forgotten_does_not_count() -> None:
    latency = Latency(WINDOW)
    latency.given([5], BASE, frames(S))
    latency.forget()
    latency.finished(ids(5), (), S)
    assert of(latency, S, 1)[0] == 0


def test_the_window_looks_back_on_its_time_and_no_further() -> None:
    latency = Latency(WINDOW)
    counts = []
    # given a message finished each second
    for second in range(1, 41):
        latency.given([second], BASE, frames(second * S))
        latency.finished(ids(second), (), second * S)
        counts.append(of(latency, second * S, 1)[0])
    # then those of half a window to a whole one are seen
    assert counts[:5] == [1, 2, 3, 4, 5]
    assert (min(counts[10:]), max(counts[10:])) == (6, 10)
    # and after a pause none
    assert of(latency, 60 * S, 1)[0] == 0
    latency.given([99], BASE, frames(60 * S))
    latency.finished(ids(99), (), 61 * S)
    assert of(latency, 61 * S, 1)[0] == 1


def test_many_in_flight_and_stragglers_are_all_found() -> None:
    latency = Latency(1000 * S)
    rng = random.Random(1)
    held: dict[int, int] = {}
    finished = 0
    # given messages that come in order and leave in none, thousands of them at once, some of which stay for long
    for first in range(0, 40_000, 100):
        offsets = range(first, first + 100)
        latency.given(offsets, BASE, frames(*(offset * 1000 for offset in offsets), size=0))
        held.update(dict.fromkeys(offsets, 0))
        if first > 10_000:
            leaving = rng.sample(list(held), 100)
            latency.finished(ids(*leaving), (), 50_000_000)
            finished += 100
            for offset in leaving:
                del held[offset]
    latency.finished(ids(*held), (), 50_000_000)
    # then each was counted
    assert of(latency, 50_000_000, 1)[0] == finished + len(held) == 40_000


def test_frames_and_offsets_that_do_not_match_are_an_error() -> None:
    with pytest.raises(ValueError, match="fewer frames than offsets"):
        Latency(WINDOW).given([1, 2], BASE, frames(0))


def test_of_many_channels_the_percentiles_are_those_of_all_messages() -> None:
    fast, slow = Latency(WINDOW), Latency(WINDOW)
    for latency, took in ((fast, MS), (slow, S)):
        latency.given(range(10), BASE, frames(*[2 * S - took] * 10))
        latency.finished(ids(*range(10)), (), 2 * S)
    count, (p100, p50) = quantiles([fast, slow], (1, 0.5), 2 * S)
    assert (count, near(p100, S), near(p50, MS)) == (20, True, True)


def test_sums_have_a_place_for_each_count() -> None:
    with pytest.raises(ValueError, match="as many"):
        Latency(WINDOW).add_to(array("Q", bytes(8 * (COUNTS - 1))), 0)
