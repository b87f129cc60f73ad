"""The memory of a process that writes a topic of 4 GiB and reads it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.child import in_a_child, peak, resident
from bench.load import Load, fill, folder, new_log, room
from bench.measure import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOUND: Final = 60_000_000
_BLOCK: Final = 256 << 10


def rows(load: Load) -> Iterator[Row]:
    name = f"memory with a topic of {load.large / (1 << 30):.3g} GiB"
    if room(load.directory) < load.large * 3 // 2:
        yield Row(name, "SKIPPED: the disk has no room for it", target="< 60 MB")
        return
    with folder(load) as directory:
        found = in_a_child(write_and_read, directory, load.large)
    yield Row(
        name,
        f"{found['peak'] / 1e6:.1f} MB at most; {found['start'] / 1e6:.1f} MB before the first append",
        target="< 60 MB",
        met=found["peak"] < _BOUND,
        figures=found,
    )


def write_and_read(directory: str, size: int) -> dict[str, float]:
    start = resident()
    log = new_log(directory)
    fill(log, size)
    offset = 0
    while block := log.read(offset, _BLOCK):
        offset = block.next
    if offset != log.end:
        raise RuntimeError(f"only {offset} of {log.end} records could be read")
    log.close()
    return {"start": float(start), "peak": float(peak())}
