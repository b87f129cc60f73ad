"""Readers: positions that go forward, and what a paused one is told."""

from __future__ import annotations

import pytest

from penstock.broker.reader import Reader
from tests.unit.broker.world import World


@pytest.mark.parametrize(("offset", "moved", "stands"), [(5, True, 5), (3, True, 3), (2, False, 3)])
def test_a_reader_goes_forward_alone(offset: int, moved: bool, stands: int) -> None:
    reader = Reader("q", 3, 0)
    assert reader.move(offset) is moved
    assert reader.offset == stands


def test_a_paused_reader_is_told_no_new_end() -> None:
    # given a reader that saw an end, and committed less
    reader = Reader("q", 0, 0)
    assert reader.look(10) == 10
    reader.move(5)
    # when it is paused
    reader.paused = True
    # then it is told the same, whatever comes
    assert reader.look(20) == 10
    # and what it commits all the same is no old end
    reader.move(15)
    assert reader.look(20) == 15
    # until it goes on
    reader.paused = False
    assert reader.look(20) == 20


def test_a_reader_lags_behind_the_end_and_holds_what_it_has_not_read() -> None:
    # given four messages that a channel had, and a reader that read one
    world = World()
    world.topic.readers["q"] = reader = Reader("q", 1, 0)
    channel = world.channel()
    world.publish(b"1", b"2", b"3", b"4")
    world.finish(channel, world.consumer(channel, 10), 0, 1, 2, 3)
    assert (world.topic.lag_of(reader), world.topic.low_water) == (3, 1)
    # when a part of it is a hole, that is no lag
    world.topic.add_hole(2, 4)
    assert world.topic.lag_of(reader) == 1
    # and R does not wait for a reader, nor go for it
    reader.move(4)
    assert (world.topic.routed, world.topic.low_water) == (4, 4)


def test_r_stands_although_there_is_a_reader() -> None:
    world = World()
    world.topic.readers["q"] = reader = Reader("q", 0, 0)
    world.publish(b"1")
    assert (world.topic.routed, world.topic.depth, world.topic.lag_of(reader)) == (0, 1, 1)
