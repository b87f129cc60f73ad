from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from penstock.daemon.logging import Level, Logger, StandardError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOON = 1_767_355_445_123_456_789  # 2026-01-02 12:04:05.123456789 UTC


class Lines:
    """Takes lines while it is `open`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.open = True

    def write(self, line: bytes) -> bool:
        if self.open:
            self.lines.append(line.decode())
        return self.open


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield Lines()
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def log(lines: Lines) -> Logger:
    return Logger("[nsqd] ", Level.DEBUG, write=lines.write, clock=lambda: NOON)


def test_a_line_looks_as_nsq_s(log: Logger, lines: Lines) -> None:
    log.info("TCP: listening on %s", "127.0.0.1:4150")
    assert lines.lines == ["[nsqd] 2026/01/02 12:04:05.123456 INFO: TCP: listening on 127.0.0.1:4150\n"]


def test_the_second_is_written_anew_when_it_is_another(lines: Lines) -> None:
    # given a clock that moves on by a second, backwards by two, and by a microsecond
    times = iter([NOON, NOON + 10**9, NOON - 10**9, NOON - 10**9 + 1000])
    log = Logger("", write=lines.write, clock=lambda: next(times))
    # when a line is written each time
    for _ in range(4):
        log.info("")
    # then each has its time
    assert [line.split()[1] for line in lines.lines] == [
        "12:04:05.123456",
        "12:04:06.123456",
        "12:04:04.123456",
        "12:04:04.123457",
    ]


@pytest.mark.parametrize("level", list(Level), ids=lambda level: level.name)
def test_what_is_below_the_level_is_not_written(log: Logger, lines: Lines, level: Level) -> None:
    # given a logger whose level is set while it runs
    log.level = level
    # when a line of each level comes
    for write in (log.debug, log.info, log.warn, log.error, log.fatal):
        write("text")
    # then those of the level and above are written, with the words of NSQ
    names = [line.split()[3] for line in lines.lines]
    assert names == ["DEBUG:", "INFO:", "WARNING:", "ERROR:", "FATAL:"][level - 1 :]


def test_a_text_is_not_formatted_when_its_line_is_not_written(log: Logger) -> None:
    class Dear:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    log.level = Level.INFO
    log.debug("%s", Dear())


def test_a_text_without_values_may_hold_a_percent_sign(log: Logger, lines: Lines) -> None:
    log.info("100%")
    assert lines.lines[0].endswith(" INFO: 100%\n")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("a\n[nsqd] b", "a\n\t[nsqd] b", id="a-newline-begins-no-line"),
        pytest.param("a\rb", "a\\x0db", id="carriage-return"),
        pytest.param("\x1b[2J", "\\x1b[2J", id="terminal-escape"),
        pytest.param("\x9b2J", "\\x9b2J", id="terminal-escape-in-one"),
        pytest.param("a\tb", "a\tb", id="tab"),
        pytest.param("größer", "größer", id="umlauts"),
        pytest.param("\udcff", "\\udcff", id="no-unicode"),
    ],
)
def test_what_a_client_sends_can_neither_forge_a_line_nor_drive_a_terminal(
    log: Logger, lines: Lines, text: str, written: str
) -> None:
    log.info("name=%s", text)
    assert lines.lines[0].endswith(f" INFO: name={written}\n")


def test_dropped_lines_are_counted_and_told_when_lines_are_taken_again(log: Logger, lines: Lines) -> None:
    # given a standard error that took nothing for two lines
    lines.open = False
    log.info("one")
    log.info("two")
    # when it takes lines again
    lines.open = True
    log.info("three")
    log.info("four")
    # then the first says what is missing
    assert [line.partition(" 12:04:05.123456 ")[2] for line in lines.lines] == [
        "WARNING: LOG: 2 lines were dropped, nobody read them\n",
        "INFO: three\n",
        "INFO: four\n",
    ]
    assert log.dropped == 0


def test_a_pipe_that_nobody_reads_makes_nobody_wait() -> None:
    # given a pipe that nobody reads
    reader, writer = os.pipe()
    out = StandardError(writer)
    # when more is written than it holds: a writer that waits would wait for ever
    taken = [out.write(b"x" * 999 + b"\n") for _ in range(1000)]
    # then the first lines are in it, and the rest were not taken
    assert taken == sorted(taken, reverse=True)
    assert 0 < sum(taken) < 1000
    # and when it is read, it takes lines again
    os.read(reader, 1 << 20)
    assert out.write(b"again\n")
    assert os.read(reader, 1 << 20).endswith(b"again\n")
    os.close(reader)
    os.close(writer)


def test_a_line_that_was_torn_does_not_run_into_the_next() -> None:
    # given a pipe in which half of a line stands, because it was full then
    reader, writer = os.pipe()
    out = StandardError(writer)
    assert not out.write(b"x" * (1 << 20) + b"\n")
    # when it is read, and another line comes
    assert set(os.read(reader, 1 << 20)) == {ord("x")}
    assert out.write(b"next\n")
    # then that begins on a line of its own
    assert os.read(reader, 1 << 20) == b"\nnext\n"
    os.close(reader)
    os.close(writer)


def test_a_long_line_is_written_whole(tmp_path: Path) -> None:
    # given a file as standard error
    with (tmp_path / "log").open("wb") as file:
        # when a line comes that is longer than a pipe takes at once
        assert StandardError(file.fileno()).write(b"x" * 100_000 + b"\n")
    # then all of it is there
    assert (tmp_path / "log").stat().st_size == 100_001


@pytest.mark.parametrize("end", ["reader", "both"])
def test_a_closed_standard_error_fails_nobody(end: str) -> None:
    # given a pipe whose reader is gone, or a descriptor that is closed
    reader, writer = os.pipe()
    out = StandardError(writer)
    os.close(reader)
    if end == "both":
        os.close(writer)
    # when a line is written, then it is not taken, and that is all
    assert not out.write(b"line\n")
    if end == "reader":
        os.close(writer)


def test_no_file_becomes_standard_error_where_the_process_has_none(tmp_path: Path) -> None:
    # given a process that is started with no standard descriptor open
    program = (
        "import os, sys\n"
        "from penstock.daemon.logging import Logger\n"
        "log = Logger('')\n"
        "file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\n"
        "log.info('a line')\n"
        "os.write(file, f'descriptor {file}'.encode())\n"
    )
    shell = f'"{sys.executable}" -c "$0" "$1" <&- >&- 2>&-'
    # when it logs, and opens a file
    subprocess.run(["sh", "-c", shell, program, str(tmp_path / "data")], check=True, timeout=30)
    # then the log went nowhere, and the file holds only what was written to it
    name, _, number = (tmp_path / "data").read_text().partition(" ")
    assert name == "descriptor"
    assert int(number) > 2
