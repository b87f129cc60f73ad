"""The project for Spark Declarative Pipelines in docs/declarative, run as docs/pipelines.md says: each message once."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.test_source import Node
from tests.spark.test_topic_to_topic import content

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"
(COMMAND,) = re.findall(r"^    (spark-pipelines .*)$", (DOCS / "pipelines.md").read_text(), re.MULTILINE)
PATIENCE = 240.0

pytestmark = pytest.mark.slow


def order(number: int) -> bytes:
    return json.dumps({"user": f"u{number % 3}", "amount": number}).encode()


def update(project: Path, java: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}
    environment |= {"PYSPARK_PYTHON": sys.executable, **({"JAVA_HOME": java} if java else {})}
    command, *words = shlex.split(COMMAND)
    program = Path(sys.executable).with_name(command)
    done = subprocess.run(
        [program, *words], cwd=project, env=environment, check=False, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_tables_and_a_topic_follow_what_is_published(spark: SparkSession, java: str, tmp_path: Path) -> None:
    for package in ("grpc", "grpc_status", "pandas", "yaml", "zstandard"):
        pytest.importorskip(package, reason="the packages of pyspark[connect,pipelines] are not installed")
    # given the project as it is in the docs, and a node of its own
    (tmp_path / "data").mkdir()
    node = Node(tmp_path / "data")
    project = tmp_path / "declarative"
    shutil.copytree(DOCS / "declarative", project)
    spec = project / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("127.0.0.1:4151", node.address).replace("/data", str(tmp_path)))
    # when it is run, and once more when there is more
    node.publish("orders", *map(order, range(60)), b"garbage")
    update(project, java)
    node.publish("orders", *map(order, range(60, 101)))
    update(project, java)
    # then each message is in the table once, in the sums of the view, and what is large in its topic
    rows = spark.read.parquet(str(project / "spark-warehouse" / "orders")).collect()
    assert len(rows) == 102
    assert sorted(row.amount for row in rows if row.amount is not None) == list(range(101))
    sums = spark.read.parquet(str(project / "spark-warehouse" / "by_user")).collect()
    assert {row.user: row.amount for row in sums} == {f"u{first}": sum(range(first, 101, 3)) for first in range(3)}
    large = content(node.nsqd, "large")
    assert sorted(json.loads(body)["amount"] for body in large.elements()) == list(range(51, 101))
    node.web.close()
    assert node.nsqd.stop() == 0
