"""How far something is stands on one line of a terminal, and nowhere else."""

from __future__ import annotations

import io
from contextlib import suppress

import pytest

from penstock.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time now, as a list of one."""
    now = [100.0]
    monkeypatch.setattr("penstock.cli.progress.time.monotonic", lambda: now[0])
    return now


def test_a_terminal_shows_it_ten_times_a_second_and_is_clean_afterwards(clock: list[float]) -> None:
    # given a terminal
    terminal = Terminal()
    with progress("messages", terminal) as tell:
        # when it is told more often than one can read
        for tick in range(100):
            clock[0] = 100 + tick / 100
            tell("orders", tick * 1000)
    # then it shows some of it, each in place of the one before, and nothing in the end
    shown = terminal.getvalue().split("\r\x1b[K")
    assert shown[0] == shown[-1] == ""
    assert 9 <= len(shown) - 2 <= 11
    assert shown[-2].endswith(" a second, now in orders")
    assert "\n" not in terminal.getvalue()


def test_what_takes_long_is_named_when_it_begins(clock: list[float]) -> None:
    terminal = Terminal()
    with progress("messages", terminal) as tell:
        tell("orders", 1000)
        tell("mail: sorting", 1000)  # and nothing for a while
    assert terminal.getvalue().split("\r\x1b[K")[-2].endswith("now in mail: sorting")


def test_the_rate_is_that_of_the_whole_time(clock: list[float]) -> None:
    terminal = Terminal()
    with progress("messages", terminal) as tell:
        clock[0] = 102
        tell("orders", 1_000_000)
    assert "1,000,000 messages, 500,000 a second, now in orders" in terminal.getvalue()


def test_what_is_no_terminal_shows_nothing() -> None:
    stream = io.StringIO()
    with progress("messages", stream) as tell:
        tell("orders", 1000)
    assert stream.getvalue() == ""


def test_the_line_goes_when_the_work_fails(clock: list[float]) -> None:
    terminal = Terminal()
    with suppress(KeyboardInterrupt), progress("messages", terminal) as tell:
        tell("orders", int(clock[0]))
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("\r\x1b[K")
