"""`penstock bench` against an nsqd of ours: each load once, small, and what it counted is what the server counted."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from penstock.bench.probe import probe
from penstock.bench.settings import Address, Settings
from penstock.cli.main import main
from tests.integration.daemon import Nsqd

if TYPE_CHECKING:
    from pathlib import Path

SMALL = {
    "pub": ["--seconds=0.2"],
    "sub": ["--messages=5000"],
    "pubsub": ["--seconds=0.5", "--processes=2"],
    "latency": ["--seconds=0.3", "--rate=200", "--beside", "--unbuffered"],
    "fanout": ["--messages=2000", "--channels=2"],
    "http": ["--seconds=0.2", "--batch=3"],
    "connections": ["--connections=10"],
    "deferred": ["--seconds=0.2", "--rate=100", "--defer=50"],
    "sustained": ["--seconds=1.1"],
    "workers": ["--messages=2000", "--connections=20"],
}


def bench(nsqd: Nsqd, load: str, folder: Path) -> dict[str, float]:
    """Its figures, by name."""
    pid = f"--pid={nsqd.process.pid}"
    http = [f"--http=127.0.0.1:{nsqd.http}"] if load == "http" else []  # with it, the topic is gone afterwards
    code = main(["bench", load, f"127.0.0.1:{nsqd.tcp}", pid, *http, f"--json={folder / 'found'}", *SMALL[load]])
    assert code == 0
    found: dict[str, Any] = json.loads((folder / "found").read_text())
    return {each["name"]: each["value"] for each in found["rounds"][0][0]} | {"topic": found["topics"][0]}


@pytest.mark.parametrize("load", SMALL)
def test_each_load_finds_figures(load: str, nsqd: Nsqd, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # when a load is put on an nsqd
    figures = bench(nsqd, load, tmp_path)
    # then it has figures of the load, of the server and of itself, on the terminal as well
    shown = capsys.readouterr().out
    assert all(name in shown for name in figures if name != "topic")
    assert next(iter(figures.values())) > 0
    assert any(name.startswith("server's memory") for name in figures)


def test_what_was_consumed_is_what_was_there(nsqd: Nsqd, tmp_path: Path) -> None:
    # when 5,000 messages are published and consumed
    figures = bench(nsqd, "sub", tmp_path)
    # then the server saw no more and no fewer, each finished at its first attempt
    channel = nsqd.channel(str(figures["topic"]), "bench")
    assert (channel["message_count"], channel["depth"], channel["in_flight_count"]) == (5000, 0, 0)
    assert (channel["requeue_count"], figures["delivered again"]) == (0, 0)


def test_what_was_to_be_sent_while_the_server_stood_still_counts_as_late(nsqd: Nsqd) -> None:
    # given 200 messages in a second
    settings = Settings(rate=200, seconds=1.0)

    def stand_still() -> None:
        nsqd.process.send_signal(signal.SIGSTOP)
        threading.Timer(0.3, nsqd.process.send_signal, (signal.SIGCONT,)).start()

    # when the server stands still in the first 0.3 of them
    found = probe(Address("127.0.0.1", nsqd.tcp), settings, "bench", ready=stand_still)
    # then a third of all waited, longest those that were to be sent first, and not one alone
    assert len(found.latencies) == found.messages == 200
    assert found.latencies.largest >= 295_000_000
    assert found.latencies.at(85) >= 100_000_000


def test_a_backlog_outlives_a_restart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # given an nsqd that the load starts itself, on a port that was free a moment ago
    with socket.create_server(("127.0.0.1", 0)) as free:
        server = f"127.0.0.1:{free.getsockname()[1]}"
    command = f"{sys.executable} -m penstock.nsqd.main --data-path={tmp_path} --tcp-address={server}"
    # when it is filled, stopped, started and drained
    small = ["--messages=5000", f"--start={command} --http-address=127.0.0.1:0", f"--json={tmp_path / 'found'}"]
    assert main(["bench", "backlog", server, *small]) == 0
    # then all is there
    figures = {each["name"]: each["value"] for each in json.loads((tmp_path / "found").read_text())["rounds"][0][0]}
    assert (figures["lost"], figures["delivered again"]) == (0, 0)
    assert figures["delivered after the restart"] > 0


def test_two_servers_are_compared_in_rounds(nsqd: Nsqd, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # when an nsqd is compared with itself
    server = f"127.0.0.1:{nsqd.tcp}"
    files = [f"--svg={tmp_path / 'chart'}", f"--json={tmp_path / 'found'}"]
    code = main(["bench", "compare", "pub", server, server, "--rounds=3", "--seconds=0.1", *files])
    # then there is a ratio with its spread, a chart, and the figures of each round
    assert code == 0
    assert "published" in capsys.readouterr().out
    assert ElementTree.parse(tmp_path / "chart").getroot().tag.endswith("svg")
    assert [len(rounds) for rounds in json.loads((tmp_path / "found").read_text())["rounds"]] == [3, 3]


def test_a_server_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "pub", "127.0.0.1:1"]) == 1
    assert "127.0.0.1:1: " in capsys.readouterr().err


def test_an_error_of_the_server_is_told(nsqd: Nsqd, capsys: pytest.CaptureFixture[str]) -> None:
    # when messages are larger than the server takes
    code = main(["bench", "pub", f"127.0.0.1:{nsqd.tcp}", "--size=2000000", "--batch=1", "--seconds=1"])
    # then its answer is what stands there
    assert code == 1
    assert "E_BAD_MESSAGE" in capsys.readouterr().err
