"""A process to be killed: it appends and defers messages in a data path, and tells each answer on its standard output.

python appender.py PATH SEED        "<first offset> <count>" or "deferred <number> <count>", a line each
"""

from __future__ import annotations

import os
import random
import sys
import time

from penstock.log.data_path import DataPath
from penstock.log.topic_log import LogOptions, TopicLog

OPTIONS = LogOptions(20_000, 2500)


def body(offset: int) -> bytes:
    """What stands at this offset."""
    return b"%d " % offset + b"x" * (offset * 7919 % 300)


def deferred(number: int) -> bytes:
    return b"deferred %d" % number


def tell(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def work_off(log: TopicLog) -> None:
    while work := log.work():
        work()


def go_on(path: str, seed: int) -> None:
    data = DataPath(path, options=OPTIONS)
    log = data.logs[0] if data.logs else data.create("t")
    rng = random.Random(seed)
    number = seed << 32
    tell("open")
    while True:
        now = time.time_ns()
        deed = rng.random()
        if deed < 0.7:
            count = rng.choice((1, 1, 3, 20))
            first = log.append([body(log.end + each) for each in range(count)], now)
            tell(f"{first} {count}")
        elif deed < 0.8:
            count = rng.choice((1, 5))
            log.defer([deferred(number + each) for each in range(count)], now + rng.choice((0, 10**6, 10**12)), now)
            tell(f"deferred {number} {count}")
            number += count
        elif deed < 0.95:
            while work := log.timetable.prepare(now):
                work()
            log.move_due(now)
        else:
            work_off(log)


if __name__ == "__main__":
    go_on(sys.argv[1], int(sys.argv[2]))
