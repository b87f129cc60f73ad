"""Jobs from their start to their end: a session, their queries, signals, the exit code.

0    done, or stopped by a signal where they were to go on
1    a job failed: one sentence says why, and where Spark's own words are
2    the call was wrong; nothing was started
130  a signal stopped them before they were done
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from penstock.cli.jobs import arguments as args
from penstock.cli.jobs.showing import show_for
from penstock.cli.places import state_folder
from penstock.errors import BadOption
from penstock.options import duration

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.cli.jobs.showing import Show
    from penstock.spark.jobs.job import Job
    from penstock.spark.jobs.watching import Watch

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130
LOOK: Final = 0.3  # seconds
SPARK: Final = "spark"  # the folder with Spark's log


def run_jobs(
    command: str,
    table: type[Any],
    start: Callable[[SparkSession, Job[Any]], list[StreamingQuery]],
    arguments: argparse.Namespace,
) -> int:
    """All jobs of a call in one session."""
    try:
        conf = args.settings(arguments.conf)
        jobs = _jobs(command, table, arguments)
        for job in jobs:
            _reach(job.options)
    except BadOption as error:
        print(f"penstock {command}: {error}", file=sys.stderr)
        return WRONG
    show = show_for(as_json=arguments.json)
    return with_spark(f"penstock {command}", arguments.master, conf, lambda spark: _go(spark, jobs, start, show))


def with_spark(name: str, master: str, conf: dict[str, str], work: Callable[[SparkSession], int]) -> int:
    """What `work` answers; a failure is a sentence, and the place of Spark's own words."""
    from penstock.spark import session

    folder = state_folder(SPARK)
    spark = None
    try:
        spark = session.start(name, master, conf, folder)
        return work(spark)
    except BadOption as error:
        print(f"{name}: {error}", file=sys.stderr)
        return WRONG
    except session.failures() as error:
        print(f"{name}: {session.complaint(error)}\nSpark's own words: {folder / 'spark.log'}", file=sys.stderr)
        return FAILED
    finally:
        if spark is not None:
            spark.stop()


def _jobs(command: str, table: type[Any], arguments: argparse.Namespace) -> list[Job[Any]]:
    from penstock.spark.jobs.job import Job

    found = []
    for name, (options, also) in args.jobs(table, arguments).items():
        name = name or _name_of(command, options)
        checkpoint = arguments.checkpoint or also.get("checkpoint", "")
        if arguments.checkpoint and arguments.config:
            raise BadOption("--checkpoint: with --config each job has its own, in the file")
        every = arguments.every or ("" if arguments.once else also.get("every", ""))
        where = checkpoint or str(state_folder(command, name))
        found.append(Job(name, options, where, _every(every)))
    return found


def _name_of(command: str, options: Any) -> str:
    """The same where the same is read and written, so that it goes on where it was."""
    return f"{command}-{blake2b(repr(options.identity).encode(), digest_size=6).hexdigest()}"


def _every(text: str) -> str:
    if not text:
        return ""
    try:
        return f"{duration(text) // 10**6} milliseconds"
    except ValueError as error:
        raise BadOption(f"--every: {error}") from None


def _reach(options: Any) -> None:
    """Somebody answers there: else this is told now, and not when Spark has started."""
    from penstock.spark.http import Access, Connection

    for url in options.lookupd or options.nsqd:
        connection = Connection(url, Access.of(options, 5.0))
        try:
            connection.ask("GET", "/ping")
        finally:
            connection.close()


def _go(
    spark: SparkSession,
    jobs: Sequence[Job[Any]],
    start: Callable[[SparkSession, Job[Any]], list[StreamingQuery]],
    show: Show,
) -> int:
    from penstock.spark.jobs.watching import Watch

    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    for job in jobs:
        if os.path.exists(job.checkpoint):
            show.note(f"{job.name}: goes on where it was, by {job.checkpoint}")
    watches = [Watch(query) for job in jobs for query in start(spark, job)]
    goes_on = any(job.every for job in jobs)
    while not stopping.wait(LOOK) and any(each.query.isActive for each in watches):
        show.running([each.look() for each in watches])
        _raise_failed(watches)
    stopped = any(each.query.isActive for each in watches)
    if stopped:
        show.note("stopping after the batch in hand")
        _stop(watches)
    show.ended([each.look() for each in watches])
    _raise_failed(watches)
    if stopped and not goes_on:
        return INTERRUPTED
    for job in jobs:
        if not stopped and job.options.ends:
            shutil.rmtree(job.checkpoint, ignore_errors=True)  # the same call would do it once more
    return DONE


def _stop(watches: Sequence[Watch]) -> None:
    """Each when its batch is over: what a batch had begun would be done again."""
    pause = threading.Event()
    for each in watches:
        each.look()
    while any(each.busy for each in watches):
        pause.wait(LOOK)
    for each in watches:
        each.stop()


def _raise_failed(watches: Sequence[Watch]) -> None:
    for each in watches:
        if (error := each.query.exception()) is not None:
            raise error
