"""`make demo` shows what it promises, and fails where a promise is not kept."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.demo import __main__ as demo
from penstock.cli.demo.events import event, number_of
from penstock.cli.demo.nodes import DidNotStart
from penstock.cli.demo.report import Report
from penstock.cli.demo.traffic import CHANNELS, Traffic


def run(*arguments: str) -> list[str]:
    command = [sys.executable, "-m", "penstock.cli.demo", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout.splitlines()


def test_no_channel_loses_anything_when_a_node_is_killed_under_load() -> None:
    said = run("--events=6000", "--without-spark")
    for channel in CHANNELS:
        assert any(line.endswith(f"lost on channel {channel}: 0, as it should be") for line in said)
    assert any(line.startswith("kill -9   nsqd-3, with ") for line in said)
    assert said[-1] == "all of it adds up"


@pytest.mark.slow
def test_archive_topic_and_replay_have_the_same_numbers(tmp_path: Path) -> None:
    # given a demo that keeps its files
    said = run("--events=6000", f"--folder={tmp_path}")
    # then each number matches its other one, and the archive is there
    assert sum(line.endswith("as it should be") for line in said) == 6
    assert list((tmp_path / "archive").glob("topic=sales/*/*/*.parquet"))
    assert said[-1] == "all of it adds up"


def test_one_number_that_does_not_match_is_enough_to_fail(capsys: pytest.CaptureFixture[str]) -> None:
    # given a report in which all but one matches
    report = Report()
    report.check("archive", "messages", 1000, 1000)
    report.check("replay", "messages", 999, 1000)
    report.check("sql", "messages", 1000, 1000)
    # then it says so, and which
    assert report.end() == 1
    shown = capsys.readouterr().out
    assert "replay    messages: 999, AND NOT 1000" in shown
    assert shown.endswith("THIS IS NOT AS IT SHOULD BE\n")


def test_it_fails_where_the_nodes_do_not_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(*_: Any) -> None:
        raise DidNotStart("penstock up: no")

    monkeypatch.setattr(demo, "Nodes", start)
    assert demo.main([]) == 1
    assert capsys.readouterr().err == "demo: penstock up: no\n"


@pytest.mark.parametrize(
    ("came", "lost", "twice"),
    [
        pytest.param([1, 2], 0, 0, id="all"),
        pytest.param([1, 2, 3], 0, 0, id="one-whose-answer-was-lost"),
        pytest.param([1, 2, 2], 0, 1, id="again"),
        pytest.param([1], 1, 0, id="lost"),
    ],
)
def test_what_is_lost_and_what_came_twice(came: list[int], lost: int, twice: int) -> None:
    traffic = Traffic.__new__(Traffic)
    traffic.answered = {1, 2}
    traffic.came = {"c": Counter(came)}
    assert (traffic.lost("c"), traffic.twice("c")) == (lost, twice)


def test_an_event_has_its_number_and_is_the_same_each_time() -> None:
    assert number_of(event(123_456)) == 123_456
    assert event(7) == event(7)
