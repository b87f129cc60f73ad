"""`penstock up`, as a user runs it."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

COMMAND = [sys.executable, "-m", "penstock.cli.main", "up", "--free-ports"]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts it; what is left of it in the end is killed."""
    started = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [*COMMAND, f"--data={tmp_path}", *arguments]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str], text: str) -> str:
    """The next line of standard error with this text."""
    for said in process.stderr or ():
        if text in said:
            return said
    raise AssertionError(f"no line with {text!r}")


def where(process: subprocess.Popen[str]) -> dict[str, dict[str, Any]]:
    said = process.stdout.readline() if process.stdout else ""
    return {each["name"]: each for each in json.loads(said)["daemons"]}


def get(address: str, target: str, body: bytes | None = None) -> bytes:
    with urllib.request.urlopen(f"http://{address}{target}", body, timeout=10) as answer:
        found = answer.read()
    if not isinstance(found, bytes):
        raise TypeError("no bytes")
    return found


def producers(lookupd: dict[str, Any], topic: str) -> list[str]:
    """Who has the topic, as soon as somebody has."""
    client = http.client.HTTPConnection(lookupd["http"], timeout=20)
    since = ""
    try:
        for _ in range(5):
            client.request("GET", f"/lookup?topic={topic}&wait=10s&since={since}")
            answer = client.getresponse()
            found, since = json.load(answer).get("producers"), answer.headers["X-Penstock-Revision"]
            if found:
                return [f"127.0.0.1:{each['tcp_port']}" for each in found]
    finally:
        client.close()
    raise AssertionError("nobody")


def test_nodes_find_each_other_one_that_is_killed_comes_back_and_one_signal_stops_all(
    up: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    # given two nodes that are up, with a message in the second
    process = up("--nodes=2", "--json")
    daemons = where(process)
    get(daemons["nsqd-2"]["http"], "/pub?topic=orders", b"hello")
    # when that one is killed
    os.kill(daemons["nsqd-2"]["pid"], signal.SIGKILL)
    assert "SIGKILL" in line(process, "nsqd-2 ended")
    # then it comes back where it was, with what it had
    line(process, "nsqd-2 listens again")
    stats = json.loads(get(daemons["nsqd-2"]["http"], "/stats?format=json"))
    assert [topic["depth"] for topic in stats["topics"]] == [1]
    assert producers(daemons["nsqlookupd"], "orders") == [daemons["nsqd-2"]["tcp"]]
    # and when a signal asks to stop, all stop in order
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0
    for name in daemons:
        assert "NSQ: bye" in (tmp_path / f"{name}.log").read_text()


def test_nobody_is_left_when_it_is_killed_itself(up: Callable[..., subprocess.Popen[str]]) -> None:
    # given nodes that are up
    process = up("--json")
    daemons = where(process)
    watched = [os.pidfd_open(each["pid"]) for each in daemons.values()]
    # when nothing is left to it but to end
    process.kill()
    # then its daemons end as well
    for each in watched:
        assert select.select([each], [], [], 20)[0]
        os.close(each)


def test_a_node_that_cannot_start_says_why_and_the_others_end(up: Callable[..., subprocess.Popen[str]]) -> None:
    # given a flag that no nsqd knows
    process = up("--nodes=2", "--", "--nonsense=1")
    # then that is what is said
    _, said = process.communicate(timeout=20)
    assert process.returncode == 1
    assert said.startswith("penstock: nsqd-1 did not start: nsqd: there is no flag --nonsense")


def test_it_says_for_people_where_to_begin(up: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    # given one node, started by hand
    process = up()
    # then it says where its data is, what listens where, and what to try
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(4)]
    assert str(tmp_path) in said[0]
    assert said[1].split()[0] == "nsqlookupd"
    assert "/pub?topic=" in said[3]


def test_a_number_of_nodes_that_makes_no_sense_is_refused(up: Callable[..., subprocess.Popen[str]]) -> None:
    process = up("--nodes=0")
    assert "--nodes: 0" in process.communicate(timeout=20)[1]
    assert process.returncode == 2
