"""`make demo` shows what it promises, and fails where a promise is not kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.demo import __main__ as demo
from penstock.cli.demo.outcome import Outcome
from penstock.cli.demo.process import Process

SHORT = ["--load", "0.3", "--delay", "1.5"]


def test_nothing_is_lost_to_a_kill_and_what_is_deferred_keeps_its_delay() -> None:
    command = [sys.executable, "-m", "penstock.cli.demo", *SHORT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = {line.partition(" ")[0]: line for line in done.stdout.splitlines()}
    assert "1,000 deferred ones" in said["kill"]
    assert said["drain"].endswith(" came; 0 twice")
    assert "1,000 of 1,000 came; 0 early" in said["deferred"]
    assert said["verify"].endswith("every CRC is right")
    assert done.stdout.endswith("\nnothing that was answered OK is lost\n")


def test_it_fails_where_something_is_lost(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # given a disk that forgets what is deferred, at the kill
    folder = Path()

    class Forgetful(Process):
        def __init__(self, data_path: str) -> None:
            nonlocal folder
            folder = Path(data_path)
            super().__init__(data_path)

        def kill(self) -> None:
            super().kill()
            for path in folder.glob("topics/*/timetable/*"):
                path.unlink()

    monkeypatch.setattr(demo, "Process", Forgetful)
    monkeypatch.setattr(demo, "QUIET", 1.0)
    # when it is shown
    code = demo.main(["--load", "0.1", "--delay", "60"])
    # then it says so
    shown = capsys.readouterr().out
    assert code == 1
    assert "deferred  0 of 1,000 came" in shown
    assert shown.endswith("\nTHIS IS NOT AS IT SHOULD BE\n")


@pytest.mark.parametrize(
    ("came", "good"),
    [
        pytest.param([(b"a", 1.0), (b"later", 9.0)], True, id="all"),
        pytest.param([(b"a", 1.0), (b"later", 9.0), (b"unanswered", 1.0)], True, id="one-that-was-not-answered"),
        pytest.param([(b"later", 9.0)], False, id="lost"),
        pytest.param([(b"a", 1.0)], False, id="deferred-lost"),
        pytest.param([(b"a", 1.0), (b"later", 8.5)], False, id="early"),
        pytest.param([(b"a", 1.0), (b"a", 2.0), (b"later", 9.0)], False, id="twice"),
    ],
)
def test_what_is_good_and_what_is_not(came: list[Any], good: bool) -> None:
    outcome = Outcome({b"a"}, {b"later": 9.0})
    for name, now in came:
        outcome.take([name], now)
    assert outcome.good is good
