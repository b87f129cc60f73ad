"""The queues of all channels of a topic as one sequence of messages. Knows queues; knows no folder.

Only (timestamp, id) and the place of each record are sorted, outside memory; a body is read when its turn comes, from
the first channel that has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.log.original.bodies import Bodies
from penstock.log.original.ranks import ENTRY, OWN, by_rank
from penstock.log.original.runs import HELD, Runs
from penstock.protocol.batch import RECORD

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from penstock.log.files import Files
    from penstock.log.original.queue import Queue

MANY: Final = 1 << 16  # records


class Unfinished(NamedTuple):
    """One message that channels have been given and have not finished; for each of them the attempts it took."""

    timestamp: int
    id: bytes
    body: bytes
    attempts: dict[str, int]


def merge(
    files: Files,
    queues: Sequence[tuple[str, Queue]],
    own: Queue | None,
    scratch: str,
    held: int = HELD,
    many: int = MANY,
) -> Generator[Unfinished, None, None]:
    """Each message that a channel's queue holds, once, by (timestamp, id); `queues` are (channel, queue).

    With more than `many` records, by (rank, timestamp, id): see ranks.py. What the topic's `own` queue holds as well is
    left out: all channels get it from there. A message twice in a channel counts with its highest attempts. `scratch`
    begins the names of files that exist while this runs.
    """
    channels = ["", *_by_depth(queues)]
    paths: list[str] = []
    runs = Runs(files, f"{scratch}.runs", ENTRY.size, held)
    ranked = Runs(files, f"{scratch}.ranked", ENTRY.size, held)
    bodies = Bodies(files, paths)
    try:
        for channel, queue in queues:
            _collect(runs, queue, channels.index(channel), paths)
        if own is not None and queues:
            _collect(runs, own, OWN, paths)
        blocks = runs.blocks()
        if runs.count > many:
            for entries in by_rank(blocks, len(channels) - 1):
                ranked.add(entries)
            runs.close()
            blocks = ranked.blocks()
        yield from _grouped(blocks, bodies, channels)
    finally:
        bodies.close()
        runs.close()
        ranked.close()


def _by_depth(queues: Sequence[tuple[str, Queue]]) -> list[str]:
    """The names of the channels, the one that holds most first, as far as can be told before they are read."""
    depths: dict[str, int] = {}
    for channel, queue in queues:
        depths[channel] = depths.get(channel, 0) + queue.depth
    return sorted(depths, key=lambda channel: (-depths[channel], channel))


def _collect(runs: Runs, queue: Queue, channel: int, paths: list[str]) -> None:
    """Add an entry for each record of the queue, and its files to `paths`."""
    pack = ENTRY.pack
    for number, block in queue.blocks():
        path = queue.path(number)
        if not paths or paths[-1] != path:
            paths.append(path)
        source = len(paths) - 1
        start = block.position + RECORD
        runs.add(
            [
                pack(0, timestamp, id_, channel, attempts, source, start + at, size + 4 - RECORD)
                for at, size, timestamp, attempts, id_ in block.places
            ]
        )


def _grouped(blocks: Iterable[bytes], bodies: Bodies, channels: list[str]) -> Iterator[Unfinished]:
    """One message for the entries that share timestamp and id; of one channel's the last has the most attempts."""
    message: Unfinished | None = None
    at, last = -1, b""
    for block in blocks:
        for _, timestamp, id_, channel, attempts, source, position, size in ENTRY.iter_unpack(block):
            if id_ == last and timestamp == at:
                if message is not None:
                    message.attempts[channels[channel]] = attempts
                continue
            if message is not None:
                yield message
            at, last = timestamp, id_
            if channel == OWN:
                message = None
            else:
                message = Unfinished(at, last, bodies.read(source, position, size), {channels[channel]: attempts})
    if message is not None:
        yield message
