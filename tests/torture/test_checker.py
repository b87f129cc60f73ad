"""The checker finds each kind of violation, and excuses what was allowed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.torture import bodies
from tests.torture.checker import RULES, check, summary
from tests.torture.copied import missing_in_copy
from tests.torture.history import (
    OK,
    REFUSED,
    UNKNOWN,
    Bounds,
    Connected,
    Died,
    Event,
    Figures,
    Finish,
    Harmed,
    History,
    Hole,
    Jumped,
    Kept,
    Promise,
    Publish,
    Receipt,
    Reported,
    Requeue,
    Rewound,
    Trouble,
    Wrong,
)
from tests.torture.preload import Preload

BASE = 1000
CHANNELS = ("archive", "ordered")


def good() -> History:
    """Ten messages, the last one deferred; each came on each channel and was finished, and all else agrees."""
    history = History(Promise(sync_every=2500, sync_timeout=0.5), CHANNELS)
    history += [
        Publish(1, 8, "MPUB", 10.0, 10.1, OK),
        Publish(9, 1, "PUB", 10.2, 10.3, OK),
        Publish(10, 1, "DPUB", 10.4, 10.5, OK, delay=2.0),
    ]
    for connection, channel in enumerate(CHANNELS, 1):
        history.append(Connected(channel, connection, 9.0, ready=1))
        for number in range(1, 11):
            at = 11.0 + number / 100 if number < 10 else 12.5
            history.append(receipt(channel, number, at))
            history.append(Finish(channel, number, 1, at, at + 0.1))
        history.append(Figures(20.0, channel, 0, 10, 0, True))
    history += [Kept(number - 1, number) for number in range(1, 11)]
    history += [Bounds(0, 10, BASE), Figures(20.0, "", 0, 10, 0, True)]
    return history


def receipt(channel: str, number: int, at: float, attempts: int = 1, connection: int = 0) -> Receipt:
    return Receipt(channel, number, BASE + number - 1, attempts, connection or CHANNELS.index(channel) + 1, at, True)


Part: TypeAlias = Event | Callable[[History], None]


def changed(history: History, *parts: Part) -> History:
    """What is done to it, in turn; an event is added."""
    for part in parts:
        if isinstance(part, tuple):
            history.append(part)
        else:
            part(history)
    return history


def lost(*numbers: int, channels: tuple[str, ...] = CHANNELS, log: bool = False) -> Callable[[History], None]:
    """So many never came; nor are they in the log, with `log`."""

    def gone(event: Event) -> bool:
        if isinstance(event, Kept):
            return log and event.number in numbers
        return isinstance(event, (Receipt, Finish)) and event.number in numbers and event.channel in channels

    def lose(history: History) -> None:
        history[:] = [event for event in history if not gone(event)]

    return lose


def replaced(
    kind: type[Event], where: Callable[[Event], bool] = lambda _: True, **fields: object
) -> Callable[[History], None]:
    """Events of the kind are others."""

    def change(history: History) -> None:
        for at, event in enumerate(history):
            if isinstance(event, kind) and where(event):
                history[at] = event._replace(**fields)  # type: ignore[arg-type]

    return change


def promised(promise: Promise) -> Callable[[History], None]:
    return lambda history: setattr(history, "promise", promise)


def number(wanted: int, channel: str = "") -> Callable[[Event], bool]:
    return lambda event: getattr(event, "number", -2) == wanted and channel in ("", getattr(event, "channel", ""))


KILLED = Died("kill", 15.0, 16.0)
AGAIN = receipt("archive", 3, 16.5, 2, 7)
LATER = Connected("archive", 7, 16.4, 10)
CUT = Died("cut", 10.6, 11.0)
REQUEUED = Requeue("archive", 9, 1, 11.10, 11.11, 0.5)
FLIPPED = Harmed(11.0, "segment", "")

VIOLATIONS: dict[str, tuple[str, *tuple[Part, ...]]] = {
    "a message lost on both channels": ("nothing_is_lost", lost(4)),
    "a message lost on one channel": ("nothing_is_lost", lost(4, channels=("ordered",))),
    "a deferred message lost": ("nothing_is_lost", lost(10)),
    "a loss by a kill": ("nothing_is_lost", lost(4), CUT._replace(how="kill")),
    "a loss by a cut, answered long before": ("nothing_is_lost", lost(4, log=True), CUT._replace(at=14.0, back=15.0)),
    "a loss by a cut, with a flush each": ("nothing_is_lost", lost(4, log=True), promised(Promise(1, 0.5)), CUT),
    "a larger loss than the damage": ("nothing_is_lost", lost(4, 5, log=True), FLIPPED, Hole(3, 4, "damaged")),
    "a loss beside the damage": ("nothing_is_lost", lost(5, channels=("archive",)), FLIPPED, Hole(3, 4, "damaged")),
    "a deferred message lost long before its file was hurt": (
        "nothing_is_lost",
        lost(10, log=True),
        Harmed(18.0, "timetable", ""),
    ),
    "a deferred message lost, which nobody tells of": (
        "what_is_lost_is_told",
        lost(10, log=True),
        Harmed(11.0, "timetable", ""),
    ),
    "a message that nobody published": ("nothing_comes_that_was_not_published", receipt("archive", 77, 12.0)),
    "a body that says no number": ("nothing_comes_that_was_not_published", replaced(Receipt, number(4), number=-1)),
    "a message whose publish was refused": (
        "nothing_comes_that_was_not_published",
        replaced(Publish, lambda event: event[0] == 9, outcome=REFUSED),
    ),
    "another body": ("each_body_is_intact", replaced(Receipt, number(4), intact=False)),
    "finished, and there again": ("nothing_finished_comes_back", receipt("archive", 3, 12.0, attempts=2)),
    "finished long before a kill, and there again": ("nothing_finished_comes_back", KILLED, LATER, AGAIN),
    "finished before a clean stop, and there again": (
        "nothing_finished_comes_back",
        Died("stop", 11.2, 11.4),
        LATER._replace(at=11.5),
        AGAIN._replace(at=12.0),
    ),
    "there again, another channel rewound": ("nothing_finished_comes_back", Rewound("ordered", 14.0), LATER, AGAIN),
    "a deferred message that is early": ("nothing_is_early", replaced(Receipt, number(10), at=12.3)),
    "one that was requeued and is early": ("nothing_is_early", REQUEUED, receipt("archive", 9, 11.3, attempts=2)),
    "early by a clock that jumped in a life that goes on": (
        "nothing_is_early",
        replaced(Receipt, number(10), at=11.5),
        Jumped(10.6, 3600.0),
    ),
    "a deferred message that is late": ("nothing_deferred_is_late", replaced(Receipt, number(10), at=19.0)),
    "an MPUB in another order": ("a_batch_comes_in_order", replaced(Receipt, number(3, "ordered"), at=11.065)),
    "one that is not in the log": ("the_log_agrees", replaced(Kept, number(5), number=6)),
    "one that is in the log twice": ("the_log_agrees", Kept(10, 5)),
    "one in the log that nobody published": ("the_log_agrees", Kept(10, 99)),
    "an id that is another message's": ("the_log_agrees", replaced(Receipt, number(4), id=BASE + 7)),
    "an id beyond the end": ("the_log_agrees", replaced(Receipt, number(4), id=BASE + 70)),
    "an id that named another before": ("an_id_names_one_message", replaced(Receipt, number(4), id=BASE + 7)),
    "messages that nobody gets": ("stats_agree", replaced(Figures, waiting=2)),
    "fewer messages than are unfinished": ("stats_agree", lost(4), Figures(13.0, "archive", 0, 0, 0, False)),
    "more messages than are unfinished": ("stats_agree", Figures(13.0, "archive", 1, 0, 0, False)),
    "a topic that counts less than was published": ("stats_agree", replaced(Figures, messages=9)),
    "a topic that counts more": ("stats_agree", replaced(Figures, messages=11)),
    "a requeue that is not counted": ("stats_agree", REQUEUED, receipt("archive", 9, 11.7, attempts=2)),
    "damage that no log line tells of": (
        "what_is_lost_is_told",
        lost(4, log=True),
        FLIPPED,
        Hole(3, 4, "damaged"),
    ),
    "a hole that nobody made": ("what_is_lost_is_told", Hole(20, 30, "lost")),
    "damage that nobody did": ("what_is_lost_is_told", Reported("DISK: damage: ...")),
    "whatever else went wrong": ("nothing_else_went_wrong", Wrong(1.0, "it did not start")),
}


def broken(history: History) -> set[str]:
    return {violation.rule for violation in check(history)}


def test_where_all_is_well_nothing_is_found() -> None:
    assert check(good()) == []


@pytest.mark.parametrize("what", VIOLATIONS)
def test_it_finds(what: str) -> None:
    rule, *parts = VIOLATIONS[what]
    assert rule in broken(changed(good(), *parts))


def test_each_rule_has_a_history_that_breaks_it() -> None:
    assert {rule.__name__ for rule in RULES} == {rule for rule, *_ in VIOLATIONS.values()}


COUNTS_ANEW = replaced(Figures, messages=0)  # in another life than the publishes
EXCUSED: dict[str, tuple[Part, ...]] = {
    "finished just before a kill, and there again": (
        KILLED._replace(at=11.3, back=11.5),
        LATER._replace(at=11.6),
        AGAIN._replace(at=12.0),
        COUNTS_ANEW,
    ),
    "finished while the journal could not be told, and there again after a kill": (
        Trouble("full-disk", 11.0, 14.9, True),
        KILLED,
        LATER,
        AGAIN,
        COUNTS_ANEW,
    ),
    "finished, and there again after a rewind": (Rewound("archive", 14.0), LATER, AGAIN),
    "read late, but sent before it was finished": (Connected("archive", 7, 9.0, 10), receipt("archive", 3, 18.0, 1, 7)),
    "an unknown publish that did not come": (Publish(50, 3, "MPUB", 11.0, 0.0, UNKNOWN),),
    "a loss by a cut as soon behind the answer as the flags allow": (
        lost(4, log=True),
        CUT,
        Hole(3, 4, "lost"),
        COUNTS_ANEW,
    ),
    "a loss by damage that is told": (
        lost(4, log=True),
        FLIPPED,
        Hole(3, 4, "damaged"),
        Reported("DISK: damage: ..."),
    ),
    "a deferred message whose file was hurt": (
        lost(10, log=True),
        Harmed(11.0, "timetable", ""),
        Reported("DISK: damage: ..."),
    ),
    "early after a rewind": (
        REQUEUED,
        receipt("billing", 9, 11.3, attempts=2, connection=1),
        replaced(Receipt, number(9, "billing"), channel="archive"),
        Rewound("archive", 11.2),
        replaced(Figures, lambda event: "archive" in event, requeues=1),
    ),
    "late, because the node was down": (
        replaced(Receipt, number(10), at=19.0),
        replaced(Finish, number(10), sent=19.0, known=19.1),
        Trouble("freeze", 12.0, 18.0, True),
    ),
    "early after a restart by as much as the clock had jumped": (
        replaced(Receipt, number(10), at=11.9),
        Jumped(10.6, 600.0),
        Died("stop", 10.7, 10.8),
        COUNTS_ANEW,
    ),
}


@pytest.mark.parametrize("what", EXCUSED)
def test_it_excuses(what: str) -> None:
    assert check(changed(good(), *EXCUSED[what])) == []


def test_a_history_that_was_saved_is_judged_the_same(tmp_path: Path) -> None:
    history = changed(good(), KILLED, LATER, AGAIN)
    history.save(tmp_path / "history")
    loaded = History.load(tmp_path / "history")
    assert (check(loaded), summary(loaded)) == (check(history), summary(history))
    assert check(loaded)


def test_what_a_copy_has_to_deliver_is_what_was_answered_before_it_and_not_finished_meanwhile() -> None:
    history = changed(good(), Publish(11, 2, "MPUB", 30.0, 30.1, OK))
    assert list(missing_in_copy(history, "archive", [11, 12], 31.0, 32.0)) == []
    assert list(missing_in_copy(history, "archive", [], 29.0, 32.0)) == []  # it was too late for the copy
    assert len(list(missing_in_copy(history, "archive", [11], 31.0, 32.0))) == 1
    assert len(list(missing_in_copy(history, "archive", [11, 12, 99], 31.0, 32.0))) == 1


def test_a_body_is_right_to_the_byte() -> None:
    for wanted in range(1, 1000):
        data = bodies.body(wanted)
        assert bodies.read(data) == (wanted, True)
        assert bodies.read(data + b"x") == (wanted, False)
    assert bodies.read(b"anything") == (-1, False)
    assert max(len(bodies.body(each)) for each in range(1000)) > 5000


def test_calls_fail_below_the_folder_only_and_only_as_long_as_they_are_told_to(tmp_path: Path) -> None:
    # given a process with the library, and a program that writes to both
    (tmp_path / "data").mkdir()
    preload = Preload(tmp_path, tmp_path / "data")
    program = (
        "import os, sys, time\n"
        "fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)\n"
        "print(os.pwrite(fd, bytes(1000), 0), time.time())\n"
    )

    def run(path: Path) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            env=preload.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    # when its writes fail, then those below the folder do
    with preload.failing(write_error=28, often=1000):
        assert run(tmp_path / "data" / "a")[0] == 1
        assert run(tmp_path / "other")[0] == 0
    assert preload.get("met") == 1
    # when they are short, then they say so
    with preload.failing(short_writes=1000):
        assert run(tmp_path / "data" / "a")[1].startswith("500 ")
    # when the clock jumps, then the wall clock is another
    now = float(run(tmp_path / "data" / "a")[1].split()[1])
    preload.set(clock=3600 * 10**9)
    assert 3590 < float(run(tmp_path / "data" / "a")[1].split()[1]) - now < 3660
