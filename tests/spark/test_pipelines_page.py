"""Each command of docs/pipelines.md, run as the page says it, in its order."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.command import run
from tests.spark.test_source import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "pipelines.md"
RECIPES = re.findall(r"^    (penstock \w+ --nsqd.*)$", PAGE.read_text(), re.MULTILINE)
COMMANDS = {line.split()[1]: line for line in RECIPES}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    found = Node(tmp_path_factory.mktemp("nsqd"))
    orders = [json.dumps({"user": f"u{number % 3}", "amount": number}).encode() for number in range(101)]
    found.publish("orders", *orders, b"garbage")
    yield found
    found.web.close()
    assert found.nsqd.stop() == 0
    found.nsqd.assert_calm()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def recipe(name: str, node: Node, folder: Path, java: str) -> subprocess.CompletedProcess[str]:
    line = COMMANDS[name].replace("127.0.0.1:4151", node.address).replace("/data", str(folder / "data"))
    return run(folder / "state", java, *shlex.split(line)[1:])


def test_the_page_has_a_recipe_for_each_command() -> None:
    assert set(COMMANDS) == {"archive", "sql", "transform", "replay"}


def test_the_recipes_do_what_the_page_says(node: Node, folder: Path, java: str) -> None:
    # given a node with orders, of which one is garbage
    # when they are archived
    archived = recipe("archive", node, folder, java)
    # then it says how many, and how many were bad
    assert archived.returncode == 0, archived.stderr
    assert "101 rows" in archived.stdout
    assert ":bad: 1 row," in archived.stdout
    # and when they are asked for
    asked = recipe("sql", node, folder, java)
    assert asked.returncode == 0, asked.stderr
    assert "u0" in asked.stdout
    # and transformed
    transformed = recipe("transform", node, folder, java)
    assert transformed.returncode == 0, transformed.stderr
    assert "50 rows" in transformed.stdout
    # and replayed
    replayed = recipe("replay", node, folder, java)
    assert replayed.returncode == 0, replayed.stderr
    counts = {topic["topic_name"]: topic["message_count"] for topic in node.nsqd.stats()["topics"]}
    # then topics have what they should
    assert counts == {"orders": 102, "large": 50, "unparsable": 1, "again": 1}


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        pytest.param(["archive", "--nsqd=127.0.0.1:1", "--topic=x", "--to=/d"], 1, "127.0.0.1:1", id="nobody-there"),
        pytest.param(["archive", "--nsqd=127.0.0.1:1", "--topic=x"], 2, "--to: it has to be given", id="no-target"),
        pytest.param(["sql", "--nsqd=nowhere", "SELECT 1"], 2, "'nowhere' is not host:port", id="no-address"),
        pytest.param(["transform", "--config=/nowhere.toml"], 2, "/nowhere.toml", id="no-file"),
    ],
)
def test_a_call_that_cannot_work_is_told_so_before_spark_starts(words: list[str], code: int, sentence: str) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "penstock.cli.main", *words], check=False, capture_output=True, text=True, timeout=30
    )
    assert found.returncode == code
    assert sentence in found.stderr
    assert found.stderr.count("\n") == 1
    assert found.stdout == ""
