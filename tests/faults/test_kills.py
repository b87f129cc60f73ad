"""A process that appends is killed with SIGKILL at any moment, again and again: all that it reported is there."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from penstock.log.data_path import DataPath
from penstock.protocol.batch import records

from . import appender


class Killed:
    """A data path whose writer does not live long."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.told: dict[int, int] = {}  # first offset and count of each append that was answered
        self.deferred: list[bytes] = []
        self.seen: dict[int, bytes] = {}  # whatever a reader saw

    def round(self, seed: int, lines: int) -> None:
        """Let a process live for about so many answers, and look at what it leaves."""
        command = [sys.executable, appender.__file__, str(self.path), str(seed)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            answers = [process.stdout.readline() for _ in range(lines + 1)]
            process.kill()
            answers += process.stdout.readlines()  # told before it died
        assert answers[0] == b"open\n"
        for answer in answers[1:]:
            assert answer.endswith(b"\n")
            self.take(answer.split())

    def take(self, words: list[bytes]) -> None:
        if words[0] == b"deferred":
            first, count = int(words[1]), int(words[2])
            self.deferred += [appender.deferred(first + each) for each in range(count)]
        else:
            self.told[int(words[0])] = int(words[1])

    def check(self) -> None:
        data = DataPath(str(self.path), options=appender.OPTIONS)
        (log,) = data.logs
        found: dict[int, bytes] = {}
        offset = 0
        while block := log.read(offset):
            assert block.first == offset
            for record in records(block.data):
                assert int(record.id, 16) == log.birth.base + record.offset
                found[record.offset] = record.body
            offset = block.next
        assert data.disk.damages == []
        assert list(found) == list(range(log.end))
        for first, count in self.told.items():
            for offset in range(first, first + count):
                assert found[offset] == appender.body(offset)
        times = Counter(found.values()) + Counter(entry.body for entry in log.timetable.entries(1 << 40))
        assert {body: times[body] for body in self.deferred} == dict.fromkeys(self.deferred, 1)
        assert max(times.values()) == 1
        assert {offset: found[offset] for offset in self.seen} == self.seen
        self.seen = found
        data.abandon()


def kill_again_and_again(path: Path, rounds: int) -> None:
    rng = random.Random(rounds)
    killed = Killed(path)
    for number in range(rounds):
        killed.round(number, rng.choice((0, 1, 5, 50, 200)) + rng.randrange(20))
        killed.check()
    assert len(killed.told) > rounds
    assert killed.deferred


def test_everything_that_a_killed_process_reported_is_there(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, 5)


@pytest.mark.slow
def test_everything_that_200_killed_processes_reported_is_there(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, 200)
