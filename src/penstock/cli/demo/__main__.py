"""Run an nsqd, publish, kill it with SIGKILL, start it again, and count: nothing that was answered OK is lost.

Exits with 1 where that is not so. Everything is in a temporary folder, on ports that are free.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Final

from penstock.cli.demo.outcome import Outcome
from penstock.cli.demo.process import Process
from penstock.cli.demo.wire import Wire
from penstock.cli.log import showing
from penstock.errors import PenstockError
from penstock.log.files import Files
from penstock.log.tools.store import LOG
from penstock.log.tools.verify import verify

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPIC: Final = "orders"
CHANNEL: Final = "billing"
PUBLISHERS: Final = 4
AT_ONCE: Final = 100  # messages in an MPUB
SIZE: Final = 200
DEFERRED: Final = 1000
READY: Final = 2500
PATIENCE: Final = 30.0  # seconds for an answer
QUIET: Final = 15.0  # seconds without a message, until none is expected any more


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m penstock.cli.demo", description=(__doc__ or "").strip())
    parser.add_argument("--load", type=float, default=1.0, metavar="SECONDS", help="from the first publish to the kill")
    parser.add_argument("--delay", type=float, default=5.0, metavar="SECONDS", help="of the deferred messages")
    arguments = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder:
            good = _show(folder, arguments.load, arguments.delay)
    except (PenstockError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        good = False
    print("nothing that was answered OK is lost" if good else "THIS IS NOT AS IT SHOULD BE")
    return 0 if good else 1


def _show(folder: str, load: float, delay: float) -> bool:
    outcome = Outcome()
    with Process(folder) as nsqd:
        _say("start", f"nsqd on 127.0.0.1:{nsqd.port} with its data in {folder}")
        _publish_and_kill(nsqd, outcome, load, delay)
    published, deferred = len(outcome.published), len(outcome.due)
    _say("kill -9", f"after {load:g} s: {published:,} messages were answered OK, and {deferred:,} deferred ones")
    begin = time.monotonic()
    with Process(folder) as nsqd:
        _say("restart", f"it listens again after {time.monotonic() - begin:.2f} s")
        _drain(nsqd, outcome)
    _tell(outcome)
    return _verify(folder) and outcome.good


def _say(step: str, text: str) -> None:
    print(f"{step:10}{text}", flush=True)


# --- before the kill


def _publish_and_kill(nsqd: Process, outcome: Outcome, load: float, delay: float) -> None:
    _make_channel(nsqd)
    deferring = Wire(nsqd.port, PATIENCE)
    _say("publish", f"{PUBLISHERS} connections, MPUB of {AT_ONCE} x {SIZE} bytes; {DEFERRED:,} deferred by {delay:g} s")
    publishers = [_Publisher(nsqd.port, number) for number in range(PUBLISHERS)]
    for publisher in publishers:
        publisher.start()
    end = time.monotonic() + load
    for first in range(0, DEFERRED, AT_ONCE):
        names = [b"deferred-%d" % number for number in range(first, first + AT_ONCE)]
        due = time.time() + delay
        deferring.defer(TOPIC, round(delay * 1000), names)
        outcome.due.update(dict.fromkeys(names, due))
    publishers[0].join(max(0.0, end - time.monotonic()))
    nsqd.kill()
    for publisher in publishers:
        publisher.join()
        outcome.published |= publisher.answered
    deferring.close()


def _make_channel(nsqd: Process) -> None:
    wire = Wire(nsqd.port, PATIENCE)
    wire.subscribe(TOPIC, CHANNEL, 0)
    wire.close()


class _Publisher(threading.Thread):
    """Publishes, an MPUB behind the other, until the connection breaks."""

    def __init__(self, port: int, number: int) -> None:
        super().__init__(daemon=True)
        self.answered: set[bytes] = set()
        self._wire = Wire(port, PATIENCE)
        self._number = number

    def run(self) -> None:
        first = 0
        try:
            while True:
                names = [b"%d-%d" % (self._number, each) for each in range(first, first + AT_ONCE)]
                self._wire.publish(TOPIC, [(name + b" ").ljust(SIZE, b".") for name in names])
                self.answered.update(names)
                first += AT_ONCE
        except OSError:
            self._wire.close()


# --- behind it


def _drain(nsqd: Process, outcome: Outcome) -> None:
    """Take what comes until nothing is missing, or nothing comes any more."""
    wire = Wire(nsqd.port, QUIET)
    try:
        wire.subscribe(TOPIC, CHANNEL, READY)
        for bodies in wire.messages():
            outcome.take([body.partition(b" ")[0] for body in bodies], time.time())
            if outcome.complete:
                break
    except TimeoutError:
        pass
    finally:
        wire.close()


def _tell(outcome: Outcome) -> None:
    came = len(outcome.published & outcome.came.keys())
    _say("drain", f"{came:,} of {len(outcome.published):,} came; {outcome.twice:,} twice")
    if outcome.unanswered:
        _say("", f"and {outcome.unanswered:,} more, written when the kill took their answers away")
    late = max(outcome.lateness, default=0.0)
    came = len(outcome.came_at)
    _say(
        "deferred",
        f"{came:,} of {len(outcome.due):,} came; {outcome.early:,} early, the last {late * 1000:.0f} ms late",
    )


def _verify(folder: str) -> bool:
    report = verify(Files(), folder)
    records = showing.records(sum(store.records for store in report.stores if store.store.kind == LOG))
    _say("verify", f"{records} in the log, every CRC is right" if report.clean else "the log is DAMAGED")
    return report.clean


if __name__ == "__main__":
    sys.exit(main())
