"""`penstock import` and `penstock export` as a person runs them, on real files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TypeAlias

import pytest

from penstock.log.files import Files
from penstock.log.original import Folder, FolderWriter

RUN = "import sys; from penstock.cli.main import main; sys.exit(main())"
COUNT = 3000

Queues: TypeAlias = dict[str, list[tuple[int, int, bytes]]]
"""(timestamp, attempts, body), in order."""


def penstock(*arguments: str | Path, first: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command; `first` is Python that is run before it in the same process."""
    command = [sys.executable, "-c", first + RUN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A folder as nsqd leaves it: one channel has everything, one is paused with half of it, tried once each."""
    folder = tmp_path / "nsqd"
    with FolderWriter(Files(), str(folder), max_bytes_per_file=100_000) as writer:
        own = writer.topic("t")
        queues = {"all": writer.channel("t", "all"), "half": writer.channel("t", "half", paused=True)}
        for n in range(COUNT):
            queues["all"].put(n, b"%016x" % n, 0, b"body %d" % n)
            if n < COUNT // 2:
                queues["half"].put(n, b"%016x" % n, 1, b"body %d" % n)
        own.put(COUNT, b"%016x" % COUNT, 0, b"the last")
        writer.topic("idle", paused=True)
        writer.finish()
    return folder


def holds(folder: Path) -> Queues:
    """What each queue has."""
    found: Queues = {}
    with Folder(Files(), str(folder)) as opened:
        for topic in opened.topics.values():
            found[topic.name] = [(m.timestamp, m.attempts, m.body) for m in topic.unrouted()]
            for channel in topic.channels.values():
                messages = [message for queue in channel.queues for message in queue.messages()]
                found[f"{topic.name}:{channel.name}"] = [(m.timestamp, m.attempts, m.body) for m in messages]
    return found


def handed_out(queues: Queues) -> Queues:
    """The same, once the topic has given what it holds to its channels."""
    last = [(COUNT, 0, b"the last")]
    return queues | {"t": [], "t:all": queues["t:all"] + last, "t:half": queues["t:half"] + last}


def test_there_and_back(original: Path, tmp_path: Path) -> None:
    # given an original folder, when it is imported
    node, back = tmp_path / "node", tmp_path / "back"
    done = penstock("import", original, "--data-path", node)
    # then the command says what became of it
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "idle            0  given to no channel, paused",
        "t               1  given to no channel",
        "t     all   3,000  to deliver",
        "t     half  1,500  to deliver, paused",
        f"2 topics, 3,001 messages: in {node}, flushed, read back and counted",
    ]
    # and when it is exported
    done = penstock("export", back, "--data-path", node, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads(done.stdout)
    assert [topic["name"] for topic in summary["topics"]] == ["idle", "t"]
    assert summary["messages"] == 4502
    assert summary["notes"] == []
    # then all queues have what they had
    assert holds(back) == handed_out(holds(original))


def test_what_cannot_be_done_is_one_sentence_and_an_exit_code(original: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    node.mkdir()
    (node / "something").touch()
    done = penstock("import", original, "--data-path", node)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"penstock: {node} is not empty (something)\n"
    done = penstock("export", tmp_path / "back", "--data-path", original)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"penstock: {original} is no data path of Penstock\n"


@pytest.mark.parametrize(
    ("name", "time"),
    [
        pytest.param("importing/node.json", 2, id="when all is written"),
        pytest.param("importing/node.json", 4, id="when all is counted"),
        pytest.param("topics", 1, id="half published"),
    ],
)
def test_an_import_that_is_killed_is_run_again(original: Path, tmp_path: Path, name: str, time: int) -> None:
    # given an import that is killed before it renames something for the nth time
    node = tmp_path / "node"
    kill = f"""
import os, signal
from penstock.log.files import Files
rename, left = Files.rename, [{time}]
def counted(self, source, target):
    left[0] -= target == {str(node / name)!r}
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(self, source, target)
Files.rename = counted
"""
    done = penstock("import", original, "--data-path", node, first=kill)
    assert done.returncode == -signal.SIGKILL
    assert (node / "importing").exists()
    assert not (node / "node.json").exists()
    # when it is run again, then it works
    done = penstock("import", original, "--data-path", node)
    assert done.returncode == 0
    assert sorted(os.listdir(node)) == ["journal", "node.json", "topics"]
    assert penstock("export", tmp_path / "back", "--data-path", node).returncode == 0
    assert holds(tmp_path / "back") == handed_out(holds(original))


def test_an_import_that_is_interrupted_takes_away_what_it_made(original: Path, tmp_path: Path) -> None:
    interrupt = """
import signal
from penstock.log.files import Files
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where whoever runs the tests ignores it
Files.flush = lambda self, fd: signal.raise_signal(signal.SIGINT)
"""
    done = penstock("import", original, "--data-path", tmp_path / "node", first=interrupt)
    assert (done.returncode, done.stdout) == (130, "")
    assert not (tmp_path / "node").exists()
