"""A small node's data path in memory: topics, what is deferred and held, a journal; and what a person does to it."""

from __future__ import annotations

from penstock.log import entries as e
from penstock.log.data_path import DataPath
from penstock.log.disk import Disk
from penstock.log.files import Files, read_whole
from penstock.log.journal import Journal
from penstock.log.timetable import Timetable
from penstock.log.topic_log import LogOptions, TopicLog
from penstock.log.work import Work
from tests.kit import MemoryFiles

PATH = "/data"
SECOND = 10**9
START = 1_763_500_000 * SECOND


def start(files: Files | None = None, path: str = PATH, *, segment: int = 1000, boot: str = "boot") -> DataPath:
    """A node on what is there, if anything; its segments hold a few batches."""
    files = files or MemoryFiles()
    if not files.exists(path):
        files.make_directory(path)
    return DataPath(path, disk=Disk(files), options=LogOptions(max_bytes_per_file=segment), boot=boot)


def fill(log: TopicLog, count: int, *, at_once: int = 5, size: int = 40) -> list[bytes]:
    """Append so many messages, a second between batches; their bodies."""
    bodies = [b"%d %s " % (log.end + number, log.birth.name.encode()) for number in range(count)]
    bodies = [body.ljust(size, b".") for body in bodies]
    for number in range(0, count, at_once):
        log.append(bodies[number : number + at_once], max(START, log.last_time) + SECOND)
    return bodies


def flush(log: TopicLog) -> None:
    while work := log.work():
        work()


def defer(timetable: Timetable, bodies: list[bytes], due: int, now: int = START) -> None:
    """Put and flush."""
    timetable.put(bodies, due, now)
    work = Work()
    timetable.flush(work)
    work()


def timetable_of(log: TopicLog) -> Timetable:
    return Timetable(log.disk, log.directory, log.birth.seed)


def write_journal(node: DataPath, *blocks: list[e.Entry]) -> Journal:
    journal = Journal(node.disk, f"{PATH}/journal")
    for number, block in enumerate(blocks):
        journal.append(block, START + number * SECOND)
    while work := journal.flush_work():
        work()
    return journal


def segment_paths(log: TopicLog) -> list[str]:
    return [segment.path for segment in log.chain.segments]


# --- what happens to files


def content(files: Files, path: str) -> bytes:
    return read_whole(files, path)


def overwrite(files: Files, path: str, position: int, data: bytes) -> None:
    """Bytes go bad behind the back of everybody."""
    fd = files.open(path)
    files.write(fd, data, position)
    files.close(fd)


def put_file(files: Files, path: str, data: bytes) -> None:
    fd = files.open(path, create=True, truncate=True)
    files.write(fd, data, 0)
    files.close(fd)
