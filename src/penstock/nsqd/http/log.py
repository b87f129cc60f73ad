"""`/log`: a topic's log by offset, whatever its channels do. What Spark reads, and whoever else wants all of it.

    GET /log        where it begins and ends, its segments, its holes
    GET /log/read   whole batches as they stand in the files, each one's CRC checked
    GET /log/at     the offset that a time stands at

Nothing beyond the committed end is shown. A long answer goes out block by block, as its client takes them; what the
device has to give is read by a thread first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.errors import NotRetained
from penstock.http import Request, Response, json
from penstock.log.memory_log import MemoryLog
from penstock.nsqd.http.arguments import existing_topic, number, number_if_any, of_another_life, reader_name
from penstock.nsqd.http.blocks import BLOCK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.http import Piece
    from penstock.log.chain import Hole
    from penstock.log.segment import Block
    from penstock.log.topic_log import TopicLog
    from penstock.nsqd.home import Home
    from penstock.nsqd.http.blocks import Blocks
    from penstock.nsqd.service import Service

USUAL: Final = 1 << 20  # bytes of an answer where nobody says how many
SMALL: Final = 64 << 10  # bytes that are rather copied than streamed


class Log:
    """Handlers."""

    def __init__(self, service: Service, blocks: Blocks) -> None:
        self._service = service
        self._node = service.node
        self._blocks = blocks

    # --- what there is

    def log(self, request: Request) -> Response:
        home = existing_topic(request, self._node, check=True)
        log = home.log
        earliest, committed = log.kept_from, log.committed
        more: dict[str, Any] = {}
        if request.arg("reader") is not None:
            more["reader"], committed = self._look(home, reader_name(request))
        return json(
            {
                "node": self._node.data_path.identity,
                "topic": home.topic.name,
                "incarnation": log.birth.incarnation,
                "base": log.birth.base,
                "earliest": earliest,
                "routed": home.topic.routed,
                "committed": committed,
                "segments": _segments(log, earliest, committed),
                "holes": _merged(log.holes(earliest, committed)),
                **more,
            }
        )

    def _look(self, home: Home, name: str) -> tuple[dict[str, Any] | None, int]:
        """What there is of the reader, and of the log for it."""
        self._service.begin_turn()
        committed = self._node.readers.look(home, name)
        reader = home.topic.readers.get(name)
        return {"offset": reader.offset, "paused": reader.paused} if reader else None, committed

    async def at(self, request: Request) -> Response:
        home = existing_topic(request, self._node, check=True)
        return json({"offset": await self._blocks.at_time(home, number(request, "timestamp"))})

    # --- what stands in it

    async def read(self, request: Request) -> Response:
        home = existing_topic(request, self._node, check=True)
        log = home.log
        offset, until = number(request, "offset"), number_if_any(request, "until")
        size = number_if_any(request, "max_bytes")
        if (other := of_another_life(request, home)) is not None:
            return other
        if offset > log.end:
            return json({"message": "BEYOND_THE_END", "committed": log.committed}, 416)
        try:
            return await self._read(home, offset, USUAL if size is until is None else size, until)
        except NotRetained:
            return json({"message": "NOT_RETAINED", "earliest": log.kept_from}, 416)

    async def _read(self, home: Home, offset: int, size: int | None, until: int | None) -> Response:
        """Whole batches from the one that holds `offset`: about `size` bytes, those that begin below `until`."""
        log = home.log
        end = log.committed if until is None else min(until, log.committed)
        block = await self._blocks.read(home, offset, BLOCK if size is None else min(size, BLOCK))
        if block is None or block.first >= end:  # at the end, or in a hole that reaches there
            return self._answer(home, b"", max(offset, end), max(offset, end))
        stop = end if size is None else min(end, log.reach(block.next, max(0, size - len(block.data))))
        if stop > block.next:
            if stop == until and (last := await self._blocks.read(home, until - 1, 1)) and last.first < until:
                stop = last.next
            return self._answer(home, self._stream(home, block, stop), block.first, stop)
        block = block.until(end) if end < block.next else block
        small = len(block.data) <= SMALL
        body = bytes(block.data) if small else self._stream(home, block, block.next)
        return self._answer(home, body, block.first, block.next)

    def _answer(self, home: Home, body: bytes | AsyncIterator[Piece], first: int, next_: int) -> Response:
        headers = {
            "Content-Type": "application/octet-stream",
            "X-Penstock-First": str(first),
            "X-Penstock-Next": str(next_),
            "X-Penstock-Incarnation": home.log.birth.incarnation,
            "X-Penstock-Node": self._node.data_path.identity,
        }
        return Response(200, body, headers)

    async def _stream(self, home: Home, block: Block | None, stop: int) -> AsyncIterator[Piece]:
        """The block and what follows it; what goes wrong, or is deleted meanwhile, cuts the connection."""
        while block is not None and block.first < stop:
            yield block.data if block.next <= stop else block.until(stop).data
            if block.next >= stop:
                return
            block = await self._blocks.read(home, block.next, BLOCK)


def _segments(log: TopicLog | MemoryLog, earliest: int, committed: int) -> list[dict[str, Any]]:
    if isinstance(log, MemoryLog):
        return [
            {
                "first": earliest,
                "end": committed,
                "bytes": log.bytes,
                "first_time": log.first_time,
                "last_time": log.last_time,
            }
        ]
    return [
        {
            "first": segment.first,
            "end": min(segment.end, committed),
            "bytes": segment.position,
            "first_time": segment.first_time,
            "last_time": segment.last_time,
        }
        for segment in log.chain.segments
        if segment.end > earliest and segment.first < committed
    ]


def _merged(holes: list[Hole]) -> list[tuple[int, int, str]]:
    """In order, none of them over another, nor touching one that is there for the same reason."""
    found: list[tuple[int, int, str]] = []
    for first, next_, why in holes:
        begin = max(first, found[-1][1]) if found else first
        if found and begin <= found[-1][1] and why == found[-1][2]:
            found[-1] = (found[-1][0], max(next_, found[-1][1]), why)
        elif begin < next_:
            found.append((begin, next_, why))
    return found
