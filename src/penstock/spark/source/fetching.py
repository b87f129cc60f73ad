"""What a task does: reads a range of a topic's log from its node, over one connection, whatever the network does.

    GET /log/read --> bytes --> whole batches, each one's CRC and place checked --> chunks

An answer that breaks off goes on where its last whole batch ended. A gap that the plan does not name is asked about:
what somebody emptied meanwhile is passed over, anything else is a loss.
"""

from __future__ import annotations

import http.client
import json
import logging
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from penstock.errors import NodeFailed
from penstock.protocol.batch import BAD, first_at, length_at, seed_of, walk
from penstock.spark.http import Answer, patiently, pause_after
from penstock.spark.source import loss
from penstock.spark.source.log import Log, log_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.spark.http import Connection
    from penstock.spark.source.ranges import Range

ROOM: Final = 4 << 20  # bytes that are read before they are decoded: about 20,000 messages of 200 bytes

_logger = logging.getLogger("penstock.spark")


class Chunk(NamedTuple):
    """Whole batches in `[0, end)` of `data`, their offsets without a gap; good until the next chunk is asked for."""

    data: memoryview
    end: int
    first: int
    next: int


class Fetch:
    """One range, read once."""

    def __init__(
        self,
        connection: Connection,
        wanted: Range,
        *,
        tries: int,
        careful: bool,
        pause: Callable[[float], None],
        room: int = ROOM,
    ) -> None:
        self._connection = connection
        self._wanted = wanted
        self._tries = tries
        self._careful = careful  # a loss ends it
        self._pause = pause
        self._room = bytearray(room)
        self._seed = seed_of(wanted.incarnation)
        self._at = wanted.first  # all below was given out, or is not there
        self._failures = 0  # since something came

    def chunks(self) -> Iterator[Chunk]:
        while self._at < self._wanted.until:
            answer = patiently(self._ask, self._tries, self._pause)
            if isinstance(answer, Answer):
                self._refused(answer)
            else:
                yield from self._read(answer)

    # --- one answer

    def _target(self) -> str:
        place, incarnation, _, until, _ = self._wanted
        return f"/log/read?topic={quote(place.topic)}&incarnation={incarnation}&offset={self._at}&until={until}"

    def _ask(self) -> http.client.HTTPResponse | Answer:
        target = self._target()
        answer = self._connection.stream(target)
        if isinstance(answer, Answer):
            if answer.status not in (404, 409, 416):
                raise self._connection.refused(target, answer)
        elif answer.headers["X-Penstock-Node"] != self._wanted.place.node:
            self._connection.close()
            raise NodeFailed(f"{self._connection.url} is not node {self._wanted.place.node} any more")
        return answer

    def _read(self, answer: http.client.HTTPResponse) -> Iterator[Chunk]:
        before = self._at
        try:
            yield from self._batches(answer)
        except (OSError, http.client.HTTPException) as error:
            self._failed(self._connection.failed(error), before)
        except NodeFailed as error:
            self._connection.close()
            self._failed(error, before)
        else:
            next_ = int(answer.headers["X-Penstock-Next"])
            if self._at < next_:
                self._missing(min(next_, self._wanted.until))
            elif self._at == before:  # the log ends before what was planned
                self._missing(self._wanted.until)

    def _failed(self, error: NodeFailed, before: int) -> None:
        """Again from where it broke off, unless nothing came too often."""
        if not error.passing:
            raise error
        self._failures = 0 if self._at > before else self._failures + 1
        if self._failures >= self._tries:
            raise error
        _logger.warning("%s; reading goes on at offset %d of topic %s", error, self._at, self._wanted.place.topic)
        self._pause(pause_after(self._failures))

    def _batches(self, answer: http.client.HTTPResponse) -> Iterator[Chunk]:
        """The answer, a room full at a time; NodeFailed for what is no batch."""
        have, expected = 0, int(answer.headers["X-Penstock-First"])
        while True:
            came = answer.readinto(memoryview(self._room)[have:])
            have += came
            view, at = memoryview(self._room)[:have], 0
            while True:
                stop, next_, _, why = walk(view, at, self._seed, expected, have)
                if stop > at:
                    yield from self._chunk(view[at:stop], expected, next_)
                at = stop
                if why != BAD:
                    break
                expected = self._next_batch(view, at, next_)
            expected = next_
            if not came:
                if at < have or answer.length:  # of a length that was told, http.client lets some be missing
                    raise NodeFailed(f"{self._connection.url} cannot be reached: an answer ended early", passing=True)
                return
            have = self._keep(at, have)

    def _next_batch(self, view: memoryview, at: int, expected: int) -> int:
        """The offset that the batch at `at` begins with, behind a hole."""
        if length_at(view, at) <= 0 or (found := first_at(view, at)) <= expected:
            raise NodeFailed(
                f"{self._connection.url}: what it sent for offset {expected} of topic {self._wanted.place.topic} is no "
                "good batch",
                passing=True,
            )
        return found

    def _keep(self, at: int, have: int) -> int:
        """What is left moves to the front, in a room that its batch fits in."""
        rest = self._room[at:have]
        length = length_at(rest, 0) if rest else 0
        if length > len(self._room):
            self._room = bytearray(length)
        self._room[: len(rest)] = rest
        return len(rest)

    def _chunk(self, data: memoryview, first: int, next_: int) -> Iterator[Chunk]:
        if first > self._at:
            self._missing(min(first, self._wanted.until))
        if next_ > self._at:
            yield Chunk(data, len(data), first, next_)
            self._at = next_

    # --- what is missing

    def _refused(self, answer: Answer) -> None:
        """404, 409, 416: what was planned is not there any more."""
        until = self._wanted.until
        if answer.message == "NOT_RETAINED":
            until = min(until, int(json.loads(answer.body)["earliest"]))
        self._missing(until)

    def _missing(self, next_: int) -> None:
        """Nothing stands between here and `next_`: as it was planned, or ordered meanwhile, or it is a loss."""
        unplanned = list(self._wanted.after(self._at).to(next_).solid())
        log = self._log() if unplanned else None
        for first, until in unplanned:
            lost = loss.between(self._wanted.place, self._wanted.incarnation, first, until, log)
            loss.judge(lost, careful=self._careful, logger=_logger)
        self._at = next_

    def _log(self) -> Log | None:
        url, target = self._connection.url, f"/log?topic={quote(self._wanted.place.topic)}"
        found = patiently(lambda: self._connection.json_if_any(target), self._tries, self._pause)
        return None if found is None else log_of(url, found)
