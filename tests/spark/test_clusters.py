"""The source wherever Spark runs: local-cluster, standalone, Spark Connect, spark-submit; over three nodes."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http
from tests.spark import driver as program
from tests.spark.test_kills import Driver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

PATIENCE = 120.0
BIN = Path(pyspark.__file__).parent / "bin"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Nsqd]]:
    """Three, with 3,000 messages each."""
    found = [Nsqd(tmp_path_factory.mktemp("nsqd")) for _ in range(3)]
    for node, nsqd in enumerate(found):
        web = Http(nsqd.http)
        for first in range(0, 3000, 1000):
            bodies = (b"%d" % number for number in range(10_000 * node + first, 10_000 * node + first + 1000))
            assert web.post("/mpub?topic=t", b"\n".join(bodies)).body == b"OK"
        web.close()
    yield found
    for nsqd in found:
        assert nsqd.stop() == 0
        nsqd.assert_calm()


def settings(nodes: list[Nsqd], folder: Path, **more: object) -> dict[str, object]:
    options = {
        "nsqd": ",".join(f"127.0.0.1:{nsqd.http}" for nsqd in nodes),
        "topic": "t",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "5000",
        "minPartitions": "6",
    }
    return {"options": options, "path": str(folder / "out"), "checkpoint": str(folder / "checkpoint"), **more}


def check(spark: SparkSession, folder: Path) -> None:
    rows = spark.read.parquet(str(folder / "out")).selectExpr("CAST(CAST(body AS STRING) AS INT) AS body").collect()
    assert sorted(row.body for row in rows) == [10_000 * node + number for node in range(3) for number in range(3000)]


def test_two_workers_in_processes_of_their_own(spark: SparkSession, nodes: list[Nsqd], tmp_path: Path) -> None:
    conf = {"spark.worker.dir": str(tmp_path / "work"), "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    with Driver(settings(nodes, tmp_path, master="local-cluster[2,1,1024]", conf=conf)) as driver:
        driver.wait_until_started()
        driver.finish()
    check(spark, tmp_path)


@contextmanager
def started(line: str, *command: str, **environment: str) -> Iterator[re.Match[str]]:
    """A process, once it has written a line like this."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment}
    )
    assert process.stdout is not None
    found = next(filter(None, (re.search(line, each) for each in process.stdout)), None)
    rest = threading.Thread(target=lambda: [None for _ in process.stdout or ()])
    rest.start()
    try:
        assert found is not None, "it ended"
        yield found
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)
        rest.join()
        process.stdout.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def loud(tmp_path: Path) -> dict[str, str]:
    """For Spark's daemons, whose log says when they are ready."""
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "log4j2.properties").write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.stderr.ref = stderr\nappender.stderr.type = Console\n"
        "appender.stderr.name = stderr\nappender.stderr.target = SYSTEM_ERR\n"
        "appender.stderr.layout.type = PatternLayout\n"
        "appender.stderr.layout.pattern = %c: %m%n\n"
    )
    return {"SPARK_CONF_DIR": str(conf), "SPARK_NO_DAEMONIZE": "1", "PYSPARK_PYTHON": sys.executable}


def test_a_standalone_cluster(spark: SparkSession, nodes: list[Nsqd], tmp_path: Path, loud: dict[str, str]) -> None:
    port = str(free_port())
    master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0"]
    worker = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "2", "--memory", "1g"]
    worker += ["--webui-port", "0", "--work-dir", str(tmp_path / "work"), f"spark://127.0.0.1:{port}"]
    spark_class = str(BIN / "spark-class")
    with (
        started("I have been elected leader", spark_class, *master, **loud),
        started("Successfully registered with master", spark_class, *worker, **loud),
    ):
        conf = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}
        with Driver(settings(nodes, tmp_path, master=f"spark://127.0.0.1:{port}", conf=conf)) as driver:
            driver.wait_until_started()
            driver.finish()
    check(spark, tmp_path)


def test_spark_connect(spark: SparkSession, nodes: list[Nsqd], tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="the packages of pyspark[connect] are not installed")
    with Driver(settings(nodes, tmp_path, remote="local[2]")) as driver:
        driver.wait_until_started()
        driver.finish()
    check(spark, tmp_path)


def test_spark_submit(spark: SparkSession, nodes: list[Nsqd], tmp_path: Path) -> None:
    submit = [str(BIN / "spark-submit"), "--conf", "spark.driver.host=127.0.0.1", str(program.__file__)]
    with Driver(settings(nodes, tmp_path, master="local[2]"), *submit) as driver:
        driver.wait_until_started()
        driver.finish()
    check(spark, tmp_path)
