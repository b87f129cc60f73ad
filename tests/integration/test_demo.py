"""`make demo` shows what it promises, and fails where a promise is not kept."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.demo import __main__ as demo
from penstock.cli.demo.events import SHOPS, event, number_of
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
        assert any(line.endswith("ok") and f"came on channel {channel} " in line for line in said)
    assert any(line.startswith("kill -9   nsqd-3, when ") for line in said)
    assert any(line.startswith("all of it adds up, in ") for line in said)


@pytest.mark.slow
def test_archive_topic_and_replay_have_the_same_numbers(tmp_path: Path) -> None:
    # given a demo that keeps its files
    said = run("--events=6000", f"--folder={tmp_path}")
    # then each number matches its other one, the archive is there, and all that was sold is in the table
    assert sum(line.endswith("  ok") for line in said) == 6
    assert list((tmp_path / "archive").glob("topic=sales/*/*/*.parquet"))
    table = [line.split() for line in said[said.index("sql") :] if line.startswith(" " * 12)]
    assert sum(int(row[1].replace(",", "")) for row in table if row[0] in SHOPS) >= 6000
    assert any(line.startswith("all of it adds up, in ") for line in said)


def test_one_number_that_does_not_match_is_enough_to_fail(capsys: pytest.CaptureFixture[str]) -> None:
    # given a report in which all but one matches
    report = Report()
    report.match("in the logs", 1000, "archived", 1000)
    report.match("archived", 1000, "published again", 999)
    report.match("answered OK", 7, "that the join found", 7)
    # then it says so, and which
    assert report.end(61.4) == 1
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in shown[2:-1]] == ["ok", "SAME", "ok"]
    assert shown[-1] == "THIS IS NOT AS IT SHOULD BE"


def test_it_fails_where_the_nodes_do_not_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def start(*_: Any) -> None:
        raise DidNotStart("penstock up: no")

    monkeypatch.setattr(demo, "Nodes", start)
    assert demo.main([f"--folder={tmp_path}"]) == 1
    assert capsys.readouterr().err == "demo: penstock up: no\n"


@pytest.mark.parametrize(
    ("came", "got", "twice"),
    [
        pytest.param([1, 2], 2, 0, id="all"),
        pytest.param([1, 2, 3], 2, 0, id="one-whose-answer-was-lost"),
        pytest.param([1, 2, 2], 2, 1, id="again"),
        pytest.param([1], 1, 0, id="lost"),
    ],
)
def test_what_came_of_what_was_answered_and_what_came_twice(came: list[int], got: int, twice: int) -> None:
    traffic = Traffic.__new__(Traffic)
    traffic.answered = {1, 2}
    traffic.came = {"c": Counter(came)}
    assert (traffic.got("c"), traffic.twice("c")) == (got, twice)


def test_it_does_not_count_what_an_earlier_one_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nodes").mkdir()
    assert demo.main([f"--folder={tmp_path}"]) == 2
    assert capsys.readouterr().err == f"demo: {tmp_path} is not empty\n"


def test_an_event_has_its_number_and_is_the_same_each_time() -> None:
    assert number_of(event(123_456)) == 123_456
    assert event(7) == event(7)
