"""Jobs from their start to their end: a session, their queries, signals, the exit code.

0    done, or stopped by a signal where they were to go on
1    a job failed: one sentence says why, and where Spark's own words are
2    the call was wrong; nothing was started
130  a signal stopped them before they were done
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
from contextlib import ExitStack
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from penstock.cli.jobs import arguments as args
from penstock.cli.jobs.holding import held
from penstock.cli.jobs.showing import passing, show_for
from penstock.cli.places import state_folder
from penstock.errors import BadOption, NodeFailed, SparkError
from penstock.options import duration

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import SparkSession

    from penstock.cli.jobs.showing import Show
    from penstock.spark.jobs.job import Job
    from penstock.spark.jobs.watching import Watch

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130
LOOK: Final = 0.3  # seconds
SPARK: Final = "spark"  # the folder with Spark's log


def run_jobs(
    command: str,
    table: type[Any],
    start: Callable[[SparkSession, Job[Any]], list[Watch]],
    arguments: argparse.Namespace,
) -> int:
    """All jobs of a call in one session."""
    name = f"penstock {command}"
    with ExitStack() as holding:
        try:
            conf = args.settings(arguments.conf)
            jobs = _jobs(command, table, arguments)
            for job in jobs:
                reach(job.options)
            show = show_for(as_json=arguments.json)
            for job in jobs:
                for topic in absent(job.options):
                    show.note(f"{job.name}: no node has the topic {topic} yet")
                if _began(job):
                    show.note(f"{job.name}: goes on where it was, by {job.checkpoint}")
                holding.enter_context(held(job.name, job.checkpoint))
        except (BadOption, SparkError) as error:
            return refused(name, error)
        return with_spark(name, arguments.master, conf, lambda spark: _go(spark, jobs, start, show))


def refused(name: str, error: BadOption | SparkError) -> int:
    """Say why nothing is started."""
    print(f"{name}: {error}", file=sys.stderr)
    return WRONG if isinstance(error, BadOption) else FAILED


def with_spark(name: str, master: str, conf: dict[str, str], work: Callable[[SparkSession], int]) -> int:
    """What `work` answers; a failure is a sentence, and the place of Spark's own words."""
    from penstock.spark import session
    from penstock.spark.saying import sentence

    folder = state_folder(SPARK)
    spark = None
    try:
        passing("starting Spark ...")
        spark = session.start(name, master, conf, folder)
        return work(spark)
    except (BadOption, SparkError) as error:
        passing("")
        return refused(name, error)
    except session.failures() as error:
        passing("")
        print(f"{name}: {sentence(error)}\nSpark's own words: {folder / 'spark.log'}", file=sys.stderr)
        return FAILED
    finally:
        passing("")
        if spark is not None:
            spark.stop()


def reach(options: Any) -> None:
    """Somebody answers there: else this is told now, and not when Spark has started."""
    from penstock.spark.http import Access, Connection

    asked = [(url, "/nodes", "nsqlookupd", "--lookupd", 4161) for url in options.lookupd]
    asked += [(url, "/ping", "nsqd", "--nsqd", 4151) for url in options.nsqd]
    for url, route, daemon, flag, port in asked:
        connection = Connection(url, Access.of(options, 5.0))
        try:
            if connection.ask("GET", route).status == 404:
                raise NodeFailed(f"{url} is no {daemon}")
        except NodeFailed as error:
            raise NodeFailed(f"{error}; {flag} wants the HTTP address of one, as 127.0.0.1:{port}") from None
        finally:
            connection.close()


def absent(options: Any) -> list[str]:
    """Topics that it names and nobody has: most often they are written otherwise."""
    from penstock.spark.jobs.topics import topics_of

    there = topics_of(options) if options.reads else ()
    return [topic for topic in options.reads if topic not in there]


def _jobs(command: str, table: type[Any], arguments: argparse.Namespace) -> list[Job[Any]]:
    from penstock.spark.jobs.job import Job

    if arguments.config and arguments.checkpoint:
        raise BadOption("--checkpoint: with --config each job has its own, in the file")
    found = []
    for name, (options, also) in args.jobs(table, arguments).items():
        name = name or _name_of(command, options)
        every = arguments.every or ("" if arguments.once else also.get("every", ""))
        checkpoint = arguments.checkpoint or also.get("checkpoint", "") or str(state_folder(command, name))
        found.append(Job(name, options, checkpoint, _every(every)))
    _differ((job.checkpoint for job in found), "have the checkpoint")
    _differ((job.options.files for job in found), "write to the folder")
    return found


def _differ(places: Iterable[str], what: str) -> None:
    """What one job notes down or writes, another would take for its own."""
    seen: set[str] = set()
    for place in filter(None, places):
        if place in seen:
            raise BadOption(f"two jobs {what} {place}: each needs its own")
        seen.add(place)


def _name_of(command: str, options: Any) -> str:
    """The same where the same is read and written, so that it goes on where it was."""
    about = re.sub(r"[^A-Za-z0-9_.]+", "-", options.about).strip("-.")[:40]
    return f"{command}-{about}-{blake2b(repr(options.identity).encode(), digest_size=4).hexdigest()}"


def _every(text: str) -> str:
    if not text:
        return ""
    try:
        return f"{duration(text) // 10**6} milliseconds"
    except ValueError as error:
        raise BadOption(f"--every: {error}") from None


def _began(job: Job[Any]) -> bool:
    return os.path.isdir(job.checkpoint) and bool(os.listdir(job.checkpoint))


def _go(
    spark: SparkSession, jobs: Sequence[Job[Any]], start: Callable[[SparkSession, Job[Any]], list[Watch]], show: Show
) -> int:
    stopping = _asked_to_stop()
    passing("reading what is there ...")
    watches = [watch for job in jobs for watch in start(spark, job)]
    passing("")
    goes_on = any(job.every for job in jobs)
    while not stopping.wait(LOOK) and any(each.query.isActive for each in watches):
        show.running([each.look() for each in watches])
        _raise_failed(watches)
    stopped = any(each.query.isActive for each in watches)
    if stopped:
        show.note("stopping after the batch in hand; a second signal does not wait for it")
        _stop(watches, show)
    _raise_failed(watches)
    show.ended([each.look() for each in watches])
    if stopped and not goes_on:
        return INTERRUPTED
    for job in jobs:
        if not stopped and job.options.ends:
            shutil.rmtree(job.checkpoint, ignore_errors=True)  # the same call would do it once more
    return DONE


def _asked_to_stop() -> threading.Event:
    """Set by the first signal; the second ends all at once, as any other program."""
    asked = threading.Event()

    def ask(*_: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    return asked


def _stop(watches: Sequence[Watch], show: Show) -> None:
    """Each when its batch is over: what a batch had begun would be done again."""
    pause = threading.Event()
    show.running([each.look() for each in watches])
    while any(each.busy for each in watches):
        pause.wait(LOOK)
    for each in watches:
        each.stop()


def _raise_failed(watches: Sequence[Watch]) -> None:
    for each in watches:
        if (error := each.query.exception()) is not None:
            raise error
