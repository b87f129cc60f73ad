"""Three nodes under load, one of them killed; archives, SQL, a replay: and every message is counted.

Exits with 1 where something does not add up. Everything is in one folder, which stays, on ports that are free.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import logging
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.cli.demo import jobs
from penstock.cli.demo.events import HOUR, SCHEMA, TOPIC
from penstock.cli.demo.nodes import Nodes
from penstock.cli.demo.report import Report
from penstock.cli.demo.traffic import CHANNELS, PRODUCERS, Traffic
from penstock.cli.log.showing import aligned
from penstock.errors import PenstockError
from penstock.spark.java import java_home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.cli.demo.nodes import Node

NODES: Final = 3
NOON: Final = "noon"  # the topic that an hour is replayed into
SESSION: Final = "--conf=spark.driver.memory=1g"
BY_SHOP: Final = f"""
    SELECT shop, count(*) events, round(sum(amount), 2) amount, (SELECT count(*) FROM kept WHERE hour(at) = {HOUR}) noon
    FROM (SELECT DISTINCT s.n, s.shop, s.amount FROM {TOPIC} s JOIN kept k ON s.id = k.id)
    GROUP BY shop ORDER BY amount DESC
"""  # an event whose answer was lost may be there twice


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m penstock.cli.demo", description=(__doc__ or "").strip())
    parser.add_argument("--events", type=int, default=200_000, metavar="N", help="that are published (%(default)s)")
    parser.add_argument("--without-spark", action="store_true", help="leave out archives, SQL and the replay")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="for all data: new, or empty (a temporary one)")
    arguments = parser.parse_args(argv)
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    if folder.exists() and any(folder.iterdir()):
        print(f"demo: {folder} is not empty", file=sys.stderr)
        return 2
    logging.getLogger("penstock.client").setLevel(logging.CRITICAL)  # that a node is gone is told here
    began, report = time.monotonic(), Report()
    print(f"{arguments.events:,} sales through {NODES} nodes, of which one is killed on the way\n", flush=True)
    try:
        _show(folder, arguments.events, report, without_spark=arguments.without_spark)
    except (PenstockError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        report.fail()
    code = report.end(time.monotonic() - began)
    _what_next(report, folder)
    return code


def _show(folder: Path, events: int, report: Report, *, without_spark: bool) -> None:
    with Nodes(folder / "nodes", NODES) as nodes:
        report.say("nodes", f"nsqlookupd and {', '.join(node.name for node in nodes.nsqd)}, by `penstock up`")
        answered = _traffic(nodes, events, report)
        if missing := "as was asked" if without_spark else _spark_lacks():
            report.say("spark", f"left out: {missing}")
        else:
            _pipelines(nodes, folder, answered, report)


def _traffic(nodes: Nodes, events: int, report: Report) -> int:
    """How many were answered OK."""
    nodes.create(TOPIC, CHANNELS)
    traffic = Traffic(nodes)
    others = " and pynsq" if traffic.foreign else ""
    report.say("publish", f"{PRODUCERS} producers{others}; {len(CHANNELS)} channels consume: {', '.join(CHANNELS)}")
    victim = nodes.nsqd[-1]

    def kill() -> Node:
        nodes.kill(victim)
        report.say("kill -9", f"{victim.name}, when {len(traffic.answered):,} events were answered OK")
        return victim

    asyncio.run(traffic.run(events, kill))
    published, came = len(traffic.answered), sum(each.total() for each in traffic.came.values())
    again = ", ".join(f"{traffic.twice(channel):,} on {channel}" for channel in CHANNELS)
    report.say(
        "",
        f"started again, it answers after {traffic.seconds_gone:.1f} s",
        f"sent again, since their answers were lost: {traffic.sent_again:,}",
        f"came twice, finished within 2 s before the kill: {again}",
    )
    report.say(
        "rates",
        f"{published / traffic.seconds_in:,.0f} events a second in, {came / traffic.seconds_out:,.0f} out, "
        f"over {traffic.seconds_out:.1f} s with clients in Python on the same machine",
    )
    for channel in CHANNELS:
        report.match("events answered OK", published, f"came on channel {channel}", traffic.got(channel))
    return published


def _spark_lacks() -> str:
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    return "" if java_home() is not None else "there is no Java"


def _pipelines(nodes: Nodes, folder: Path, answered: int, report: Report) -> None:
    where = f"--nsqd={','.join(node.http for node in nodes.nsqd)}"
    archive, stored = str(folder / "archive"), nodes.messages(TOPIC)
    found = jobs.run(
        "archive", where, f"--topic={TOPIC}", f"--to={archive}", f"--schema={SCHEMA}", "--json",
        f"--checkpoint={folder / 'checkpoints' / 'archive'}", SESSION,
    )  # fmt: skip
    report.say(
        "archive",
        f"{found.total('rows'):,} messages to Parquet, in {found.total('files')} files; "
        f"{found.seconds:.0f} s with the start of Spark",
    )
    report.match("messages in the nodes' logs", stored, "rows of the archive", found.total("rows"))
    found = jobs.run("sql", where, f"--topic={TOPIC}", f"--archive=kept={archive}", "--format=json", BY_SHOP, SESSION)
    report.say("sql", f"topic and archive joined, message by message; {found.seconds:.0f} s", "", *_table(found), "")
    joined, noon = sum(row["events"] for row in found.lines), found.lines[0]["noon"] if found.lines else 0
    report.match("events answered OK", answered, "that the join found", joined)
    found = jobs.run(
        "replay", where, f"--from={archive}", f"--where=hour(body.at) = {HOUR}", f"--topic={NOON}", "--json",
        f"--checkpoint={folder / 'checkpoints' / 'replay'}", SESSION,
    )  # fmt: skip
    report.say("replay", f"the sales of {HOUR}:00 to {HOUR}:59 into the topic {NOON}; {found.seconds:.0f} s")
    report.match(f"rows of {HOUR}:00 to {HOUR}:59", noon, "published again", found.total("rows"))
    report.match("published again", found.total("rows"), f"messages of topic {NOON}", nodes.messages(NOON))


def _table(found: jobs.Done) -> list[str]:
    rows = [(row["shop"], f"{row['events']:,}", f"{row['amount']:,.2f}") for row in found.lines]
    return [f"  {line}" for line in aligned([("shop", "events", "amount"), *rows], right=(1, 2))]


def _what_next(report: Report, folder: Path) -> None:
    """Where all is, and commands to go on with, as they can be typed here."""
    shown = os.path.relpath(folder) if folder.is_relative_to(Path.cwd()) else str(folder)
    print()
    report.say("files", f"{shown}/nodes: logs of the topics, and what nsqd said")
    if (folder / "archive").exists():
        report.say("", f"{shown}/archive: Parquet, by topic, date and hour")
    penstock = "penstock" if shutil.which("penstock") else os.path.relpath(Path(sys.executable).with_name("penstock"))
    query = f"SELECT item, count(*), sum(amount) FROM {TOPIC} GROUP BY item"
    up = f"{penstock} up --nodes {NODES} --data {shown}/nodes"
    asking = f'{penstock} sql --lookupd 127.0.0.1:4161 "{query}"'
    report.say("next", f"{up}      (the same nodes, until Ctrl-C)", asking, "docs/pipelines.md has more of these")


if __name__ == "__main__":
    sys.exit(main())
