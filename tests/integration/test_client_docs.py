"""The examples of docs/client.md, run as they stand there, against an nsqd."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.daemon import Nsqd

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
EXAMPLE = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
PATIENCE = 20.0


@pytest.fixture
def nsqd(tmp_path: Path) -> Iterator[Nsqd]:
    (tmp_path / "data").mkdir()
    daemon = Nsqd(tmp_path / "data")
    yield daemon
    assert daemon.stop() == 0
    daemon.assert_calm()


def run(code: str, expected: str, folder: Path) -> None:
    """One example, until it has written what stands below it; those that go on are interrupted then."""
    program = folder / "example.py"
    program.write_text(code)
    process = subprocess.Popen(
        [sys.executable, "-u", str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watch = threading.Timer(PATIENCE, process.kill)
    watch.start()
    lines = [process.stdout.readline() for _ in expected.splitlines()] if process.stdout else []
    if "SIGINT" in code:
        process.send_signal(signal.SIGINT)
    rest, errors = process.communicate()
    watch.cancel()
    assert "".join(lines) == expected
    assert (process.returncode, rest, errors) == (0, "", "")


def test_the_examples_do_what_the_page_says(nsqd: Nsqd, tmp_path: Path) -> None:
    # given a topic with the channels that the page consumes
    with nsqd.client() as client:
        client.subscribe("events", "archive", 0)
    with nsqd.client() as client:
        client.subscribe("events", "work", 0)
    # when its examples are run, one behind the other
    examples = list(EXAMPLE.finditer(PAGE.read_text()))
    assert len(examples) == 6
    for example in examples:
        code = example["code"].replace("127.0.0.1:4150", f"127.0.0.1:{nsqd.tcp}")
        run(code, example["output"] or "", tmp_path)
    # then everything is published, and what was consumed is gone
    assert nsqd.channel("events", "archive")["depth"] == 0
    assert nsqd.channel("events", "work")["depth"] == 0
    assert nsqd.stats("&topic=orders")["topics"][0]["message_count"] == 4
