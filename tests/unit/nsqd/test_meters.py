"""What a node measures of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.nsqd.meters import BOUNDS, Histogram, Meters
from penstock.nsqd.timed_files import TimedFiles
from tests.unit.nsqd.world import S, World


@pytest.mark.parametrize(
    ("duration", "place"),
    [(0, 0), (BOUNDS[0], 0), (BOUNDS[0] + 1, 1), (BOUNDS[-1], len(BOUNDS) - 1), (BOUNDS[-1] + 1, len(BOUNDS))],
)
def test_a_duration_counts_under_the_first_bound_that_it_does_not_pass(duration: int, place: int) -> None:
    histogram = Histogram()
    histogram.add(duration, 3)
    assert [at for at, count in enumerate(histogram.counts) if count] == [place]
    assert (sum(histogram.counts), histogram.total) == (3, 3 * duration)


def test_a_publish_takes_until_the_turn_that_answers_it_is_over() -> None:
    meters = Meters()
    # given three publishes of this turn, and one that waited for a flush
    meters.answered(0, 2)
    meters.answered(0, 1)
    meters.answered(5 * S, 1)
    assert sum(meters.publishes.counts) == 0
    # when the turn ends after a second
    meters.turn_over(S)
    # then each took what it waited and that second
    assert (sum(meters.publishes.counts), meters.publishes.total) == (4, 3 * S + 6 * S)
    # and is counted once
    meters.turn_over(S)
    assert (sum(meters.publishes.counts), meters.turns.total) == (4, 2 * S)


def test_a_publish_that_waits_for_its_flush_takes_as_long() -> None:
    world = World(sync_every=1)
    # given two publishes of one turn, that are flushed a second later
    world.publish("t", b"a", b"b")
    world.publish("t", b"c")
    world.node.meters.turn_over(0)
    assert sum(world.node.meters.publishes.counts) == 0
    world.clock.now += S
    world.work()
    world.node.meters.turn_over(0)
    # then that is what they took
    assert (sum(world.node.meters.publishes.counts), world.node.meters.publishes.total) == (2, 2 * S)


def test_each_flush_is_timed(tmp_path: Path) -> None:
    flushes = Histogram()
    files = TimedFiles(flushes)
    fd = files.open(str(tmp_path / "f"), create=True)
    files.write(fd, b"a", 0)
    files.flush(fd)
    files.close(fd)
    assert sum(flushes.counts) == 1
    assert flushes.total > 0
