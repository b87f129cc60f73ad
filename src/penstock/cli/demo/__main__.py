"""Three nodes under load, one of them killed; archives, SQL, a replay: and every message is counted.

Exits with 1 where something does not add up. Everything is in a temporary folder (or --folder), on ports that are free.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.demo import jobs
from penstock.cli.demo.events import HOUR, SCHEMA, TOPIC
from penstock.cli.demo.nodes import Nodes
from penstock.cli.demo.report import Report
from penstock.cli.demo.traffic import CHANNELS, PRODUCERS, Traffic
from penstock.errors import PenstockError
from penstock.spark.java import java_home

if TYPE_CHECKING:
    from collections.abc import Sequence

NODES = 3


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m penstock.cli.demo", description=(__doc__ or "").strip())
    parser.add_argument("--events", type=int, default=200_000, metavar="N", help="that are published (%(default)s)")
    parser.add_argument("--without-spark", action="store_true", help="leave out archives, SQL and the replay")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="for all data, which stays there")
    arguments = parser.parse_args(argv)
    logging.getLogger("penstock.client").setLevel(logging.CRITICAL)  # that a node is gone is told here
    report = Report()
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as temporary:
        folder = arguments.folder or Path(temporary)
        try:
            _show(folder, arguments.events, report, without_spark=arguments.without_spark)
        except (PenstockError, OSError) as error:
            print(f"demo: {error}", file=sys.stderr)
            report.good = False
        if arguments.folder and report.good:
            report.say("files", f"{folder}: data of the nodes, and the archive")
    return report.end()


def _show(folder: Path, events: int, report: Report, *, without_spark: bool) -> None:
    with Nodes(folder / "nodes", NODES) as nodes:
        report.say("up", f"{NODES} nsqd and nsqlookupd, their data in {folder}")
        traffic = _traffic(nodes, events, report)
        if missing := "as was asked" if without_spark else _spark_lacks():
            report.say("spark", f"left out: {missing}")
            return
        _pipelines(nodes, folder, len(traffic.answered), report)
    report.say("next", "penstock up --nodes 3; penstock sql --nsqd 127.0.0.1:4151 'SELECT ...'; docs/pipelines.md")


def _traffic(nodes: Nodes, events: int, report: Report) -> Traffic:
    nodes.create(TOPIC, CHANNELS)
    traffic = Traffic(nodes)
    others = " and pynsq" if traffic.foreign else ""
    report.say("publish", f"{PRODUCERS} producers{others}, {len(CHANNELS)} channels: {', '.join(CHANNELS)}")
    victim = nodes.nsqd[-1]

    def kill() -> None:
        nodes.kill(victim)
        report.say("kill -9", f"{victim.name}, with {len(traffic.answered):,} events answered OK; it is started again")

    begin = time.monotonic()
    asyncio.run(traffic.run(events, kill))
    seconds = time.monotonic() - begin
    published = len(traffic.answered)
    report.say("", f"{published:,} events in {seconds:.1f} s; {traffic.sent_again:,} sent again, their answers lost")
    for channel in CHANNELS:
        report.check("consume", f"lost on channel {channel}", traffic.lost(channel), 0)
        report.say("", f"{len(traffic.came[channel]):,} came, {traffic.twice(channel):,} of them more than once")
    return traffic


def _spark_lacks() -> str:
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    return "" if java_home() is not None else "there is no Java"


def _pipelines(nodes: Nodes, folder: Path, published: int, report: Report) -> None:
    where = f"--nsqd={','.join(node.http for node in nodes.nsqd)}"
    archive, session = str(folder / "archive"), ["--conf=spark.driver.memory=1g"]
    stored = nodes.messages(TOPIC)
    begin = time.monotonic()
    found = jobs.run(
        "archive", where, f"--topic={TOPIC}", f"--to={archive}", f"--schema={SCHEMA}", "--json",
        f"--checkpoint={folder / 'checkpoint'}", *session,
    )  # fmt: skip
    report.check("archive", "messages in Parquet", jobs.rows(found), stored)
    report.say("", f"in {time.monotonic() - begin:.0f} s, Spark's start included; of the nodes' logs: {stored:,}")
    (row,) = jobs.run(
        "sql", where, f"--topic={TOPIC}", f"--schema={TOPIC}={SCHEMA}", f"--archive=kept={archive}", "--format=json",
        "SELECT count(DISTINCT s.n) found, "
        f"(SELECT count(*) FROM kept WHERE hour(at) = {HOUR}) noon FROM {TOPIC} s JOIN kept k ON s.id = k.id", *session,
    )  # fmt: skip
    report.check("sql", "events in the topic that are in the archive too", row["found"], published)
    replayed = jobs.run(
        "replay", where, f"--from={archive}", f"--where=hour(body.at) = {HOUR}", "--topic=noon", "--json",
        f"--checkpoint={folder / 'replay'}", *session,
    )  # fmt: skip
    report.check("replay", f"events of {HOUR}:00 to {HOUR}:59, published again", jobs.rows(replayed), row["noon"])
    report.check("", "and in their topic", nodes.messages("noon"), row["noon"])


if __name__ == "__main__":
    sys.exit(main())
