"""A Spark session for a command: finds Java, is quiet, starts quickly. Whoever has a session needs none of this.

What Spark and Java say goes to a file, to be shown when something fails. What makes it start quickly:

- Java remembers the classes that it loaded (class data sharing): the first command of a machine has it write them down
  when it ends, the others start from that.
- What runs now and then is compiled by C1 alone for longer than is usual: C2 would have a core while nothing is gained.
- Python's workers import Spark from where it is installed, with its bytecode: Spark's zip in front has none.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import sys
from typing import TYPE_CHECKING, Final

from penstock.errors import SparkError
from penstock.spark.java import java_home, script

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

LOGGING: Final = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""
WRITERS: Final = "spark.sql.maxConcurrentOutputFileWriters"
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",  # dates and hours of archives are UTC's
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    WRITERS: "8",  # a task that writes to no more hours at once does not sort its rows by them first
}
LATE_C2: Final = (  # ten times what is usual; loops within a method become fast as ever
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
)
_PYTHON: Final = """#!/bin/sh
set -f
IFS=:
kept=
for part in $PYTHONPATH; do
    case $part in */pyspark.zip) ;; *) kept=$kept:$part ;; esac
done
unset IFS
PYTHONPATH=${{kept#:}} exec {python} "$@"
"""
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
CONFIGURED: Final = ("SPARK_CONF_DIR", "SPARK_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
LOCAL: Final = {  # where everything runs in this machine
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
}


def start(name: str, master: str, conf: Mapping[str, str], folder: Path) -> SparkSession:
    """A session, whose noise goes to `folder`/spark.log."""
    home = java_home()
    if home is None:
        raise SparkError("there is no Java: install one (17 or later), or: pip install 'penstock[java]'")
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SETTINGS, **(LOCAL if master.startswith("local") else {}), **conf}
    java = [*_logging(folder), *_class_sharing(folder), *LATE_C2, settings.get(JAVA_OPTIONS, "")]
    settings[JAVA_OPTIONS] = " ".join(java).strip()
    os.environ.setdefault("PYSPARK_PYTHON", _python(folder, master))  # workers would take the `python3` of the PATH
    if home:
        os.environ["JAVA_HOME"] = home
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # pages of JSON beside each error
    with _quiet(folder / "spark.log"):
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise SparkError("pyspark is not installed: pip install 'penstock[spark]'") from error
        builder = SparkSession.builder.master(master).appName(name)
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def _logging(folder: Path) -> list[str]:
    """Errors alone, on standard error; where the user has a configuration of Spark's, that one counts."""
    if _configured():
        return []
    path = folder / "log4j2.properties"
    path.write_text(LOGGING)
    return [f"-Dlog4j2.configurationFile=file:{path}"]


def _configured() -> bool:
    """Folders of configuration stand in Java's class path."""
    return any(os.environ.get(name) for name in CONFIGURED)


def _python(folder: Path, master: str) -> str:
    """What workers are run by."""
    if not master.startswith("local") or _configured():
        return sys.executable
    return str(script(folder / "python", _PYTHON.format(python=shlex.quote(sys.executable))))


@contextlib.contextmanager
def _quiet(log: Path) -> Iterator[None]:
    """What is started meanwhile has the file for all that it says; and who reads our output does not wait for it."""
    kept = {number: os.dup(number) for number in (1, 2)}
    _flush()
    with log.open("wb") as file:
        for number in kept:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        _flush()
        for number, was in kept.items():
            os.dup2(was, number)
            os.close(was)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _class_sharing(folder: Path) -> list[str]:
    """Java's options for it. An archive that does not fit this Java or this Spark is passed over by Java itself."""
    if _configured():
        return []  # Java refuses to share classes behind a folder
    archive = folder / f"classes-{_spark_version()}.jsa"
    flag = "SharedArchiveFile" if archive.exists() else "ArchiveClassesAtExit"
    return [f"-XX:{flag}={archive}", "-Xlog:disable"]


def _spark_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "none"


def failures() -> tuple[type[Exception], ...]:
    """What Spark raises where something fails."""
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException
    except ImportError:
        return (SparkError,)
    return (PySparkException, Py4JError, SparkError)
