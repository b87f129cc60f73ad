"""Alarms: each thing rings once, at its earliest."""

from __future__ import annotations

import weakref

from penstock.nsqd.alarms import NEVER, Alarms


def test_each_rings_once_at_its_earliest() -> None:
    # given alarms of which one is set earlier, and one later, than before
    alarms: Alarms[str] = Alarms()
    alarms.set("a", 30)
    alarms.set("b", 20)
    alarms.set("a", 10)
    alarms.set("b", 40)
    # when time passes, then both ring once
    assert alarms.next == 10
    assert alarms.ring(9) == []
    assert alarms.ring(20) == ["a", "b"]
    assert alarms.ring(100) == []
    assert alarms.next == NEVER


def test_what_has_rung_may_be_set_again() -> None:
    alarms: Alarms[str] = Alarms()
    alarms.set("a", 10)
    alarms.ring(10)
    alarms.set("a", 50)
    assert alarms.ring(50) == ["a"]


def test_what_was_dropped_does_not_ring() -> None:
    alarms: Alarms[str] = Alarms()
    alarms.set("a", 10)
    alarms.drop("a")
    assert alarms.ring(10) == []


def test_no_more_ring_than_asked_for() -> None:
    alarms: Alarms[int] = Alarms()
    for thing in range(5):
        alarms.set(thing, thing)
    assert alarms.ring(10, 2) == [0, 1]
    assert alarms.ring(10) == [2, 3, 4]


def test_what_was_dropped_is_not_held_until_its_time() -> None:
    # given many things with alarms far away
    alarms: Alarms[Thing] = Alarms()
    things = [Thing() for _ in range(500)]
    watched = [weakref.ref(thing) for thing in things]
    for thing in things:
        alarms.set(thing, 10**18)
    # when they want nothing any more
    while things:
        alarms.drop(things.pop())
    del thing
    # then most of them are gone
    assert sum(ref() is not None for ref in watched) < 100


class Thing:
    pass
