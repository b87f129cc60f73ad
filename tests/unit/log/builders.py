"""Small logs for tests, in memory: how they are made, opened again, and read to the end."""

from __future__ import annotations

from penstock.log.birth import Birth
from penstock.log.disk import Disk
from penstock.log.files import Files
from penstock.log.segment import Segment
from penstock.log.topic_log import LogOptions, TopicLog
from penstock.protocol.batch import Record, encode_records, records
from tests.kit import MemoryFiles

BASE = 0x0123456789ABCDEF >> 2
BIRTH = Birth("orders", "00c0ffee00c0ffee", BASE)
TOPICS = "/topics"
DIRECTORY = f"{TOPICS}/{BIRTH.folder}"
SEED = BIRTH.seed


# --- batches and segments


def batch(first: int, bodies: list[bytes], time: int = 0, *, key: bytes = b"") -> bytearray:
    """As a topic's log writes it."""
    return encode_records(first, BASE, bodies, time, SEED, flags=1 if key else 0, key=key)


def new_segment(files: Files | None = None, first: int = 0) -> Segment:
    """An empty one in a directory of its own."""
    files = files or MemoryFiles()
    files.make_directory("/log")
    return Segment(Disk(files), "/log", first, SEED)


def fill(segment: Segment, bodies: list[bytes], time: int = 0, *, key: bytes = b"") -> None:
    segment.append(batch(segment.end, bodies, time, key=key), len(bodies), time)


def flush(segment: Segment) -> None:
    """As a chain does it."""
    segment.disk.flush(segment.open())
    segment.write_index(segment.flushed_to(segment.position))


def recovered(segment: Segment, files: Files | None = None) -> Segment:
    """The same segment as the next process finds it."""
    again = Segment(Disk(files or segment.disk.files), "/log", segment.first, SEED)
    again.recover()
    return again


def content(segment: Segment, offset: int | None = None) -> list[Record]:
    """Its records from an offset on, each block checked to go on where the last one ended or behind it."""
    at = segment.first if offset is None else offset
    found: list[Record] = []
    while block := segment.read(at, 1):
        inside = list(records(block.data))
        assert [block.first, block.next] == [inside[0].offset, inside[-1].offset + 1]
        assert at < block.next
        found += [record for record in inside if record.offset >= at]
        at = block.next
    return found


def texts(found: list[Record]) -> list[tuple[int, bytes]]:
    """Offset and body; that the id says the same offset is checked."""
    assert all(int(record.id, 16) == BASE + record.offset for record in found)
    return [(record.offset, record.body) for record in found]


# --- topics


def new_log(
    files: Files | None = None,
    birth: Birth = BIRTH,
    *,
    limit: int = 512,
    max_bytes_per_file: int = 100 << 20,
    sync_every: int = 2500,
) -> TopicLog:
    files = files or MemoryFiles()
    if not files.exists(TOPICS):
        files.make_directory(TOPICS)
    options = LogOptions(max_bytes_per_file, sync_every)
    return TopicLog.create(Disk(files, limit=limit), f"{TOPICS}/{birth.folder}", birth, options)


def open_log(
    files: Files,
    *,
    limit: int = 512,
    after_power_cut: bool = False,
    max_bytes_per_file: int = 100 << 20,
    sync_every: int = 2500,
) -> TopicLog:
    """As the next process finds it."""
    options = LogOptions(max_bytes_per_file, sync_every)
    return TopicLog.open(Disk(files, limit=limit), DIRECTORY, options, after_power_cut=after_power_cut)


def flush_log(log: TopicLog) -> None:
    """All that a thread has to do now, done here."""
    while work := log.work():
        work()


def read_all(log: TopicLog, offset: int = 0, size: int = 256 << 10) -> list[Record]:
    """Every record from an offset to the committed end; each block is checked to move on."""
    found: list[Record] = []
    while block := log.read(offset, size):
        inside = list(records(block.data))
        assert offset < block.next <= log.committed
        assert [block.first, block.next] == [inside[0].offset, inside[-1].offset + 1]
        found += [record for record in inside if record.offset >= offset]
        offset = block.next
    return found
