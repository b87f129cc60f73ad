"""When a consumer holds back, and when it goes on."""

from __future__ import annotations

import math

from penstock.client.backoff import Backoff, State


def test_a_failure_stops_the_flow_for_a_while_and_then_one_message_is_tried() -> None:
    backoff = Backoff(first=1.0)
    # when a message fails
    assert backoff.failed(10.0)
    # then nothing is allowed for a second, and then one message
    assert (backoff.allows(100), backoff.until) == (0, 11.0)
    assert not backoff.tick(10.9)
    assert backoff.tick(11.0)
    assert (backoff.allows(100), backoff.until) == (1, math.inf)


def test_a_success_of_the_one_goes_back_to_the_flow() -> None:
    backoff = Backoff()
    backoff.failed(0.0)
    backoff.tick(1.0)
    assert backoff.succeeded(1.5)
    assert (backoff.state, backoff.allows(100)) == (State.FLOWING, 100)


def test_failures_one_behind_the_other_wait_twice_as_long_each_and_successes_half() -> None:
    backoff = Backoff(first=1.0, longest=120.0)
    now = 0.0
    waited = []
    for good in (False, False, False, True, True, True):
        (backoff.succeeded if good else backoff.failed)(now)
        if backoff.state is State.WAITING:
            waited.append(backoff.until - now)
            now = backoff.until
            backoff.tick(now)
    assert waited == [1.0, 2.0, 4.0, 2.0, 1.0]
    assert backoff.state is State.FLOWING


def test_many_failures_at_once_are_one() -> None:
    backoff = Backoff()
    backoff.failed(0.0)
    # when those that were in flight before fail, or succeed, while it waits
    assert not backoff.failed(0.5)
    assert not backoff.succeeded(0.6)
    # then nothing is different
    assert (backoff.level, backoff.until) == (1, 1.0)


def test_it_never_waits_longer_than_it_may() -> None:
    backoff = Backoff(first=1.0, longest=3.0)
    for _ in range(10):
        backoff.failed(0.0)
        assert backoff.until <= 3.0
        backoff.tick(3.0)
    # and goes back as quickly as it could have come there
    assert backoff.level == 3


def test_where_it_may_not_wait_at_all_nothing_holds_it_back() -> None:
    backoff = Backoff(longest=0.0)
    assert not backoff.failed(0.0)
    assert backoff.allows(5) == 5


def test_a_paused_consumer_does_not_even_try_one() -> None:
    backoff = Backoff()
    backoff.failed(0.0)
    backoff.tick(1.0)
    assert backoff.allows(0) == 0
