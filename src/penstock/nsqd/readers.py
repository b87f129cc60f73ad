"""A node's readers: made by their first commit, remembered in the journal, dropped when nobody renews them.

Knows topics, the journal's scribe and the clock that it is given; no HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.reader import Reader
from penstock.errors import LogError
from penstock.log import entries as e
from penstock.nsqd.alarms import Alarms

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.daemon.logging import Logger
    from penstock.nsqd.home import Clock, Home
    from penstock.nsqd.scribe import Scribe

LOOKS: Final = 10  # in a reader's timeout, that are written down; one part of so many it has left after a start


class Readers:
    """All readers of one node; a topic knows its own."""

    def __init__(
        self, timeout: int, scribe: Scribe, clock: Clock, logger: Logger, moved: Callable[[Home], None]
    ) -> None:
        self._timeout = timeout
        self._scribe = scribe
        self._clock = clock
        self._logger = logger
        self._moved = moved  # what it held may be let go of
        self._ends: Alarms[tuple[Home, str]] = Alarms()  # when they are to be looked at (wall)

    def commit(self, home: Home, name: str, offset: int) -> tuple[Reader, bool]:
        """All below `offset` is read; the reader, made if it is not there, and False where it had read more."""
        reader = home.topic.readers.get(name)
        before = reader.offset if reader else home.log.kept_from  # nobody reads what is gone
        self._write(home, name, max(offset, before), paused=reader is not None and reader.paused)
        if reader is None:
            reader = self._add(home, Reader(name, before, self._clock.wall))
            self._logger.info("TOPIC(%s): new reader(%s)", home.topic.name, name)
        reader.renewed = self._clock.wall
        ahead = reader.move(offset)
        self._moved(home)
        return reader, ahead

    def look(self, home: Home, name: str) -> int:
        """The end of the log for the reader, which is renewed; for one that is not there, as it is."""
        reader = home.topic.readers.get(name)
        if reader is None:
            return home.log.committed
        if self._timeout and self._clock.wall - reader.renewed >= self._timeout // LOOKS:
            self._renew(home, reader)
        return reader.look(home.log.committed)

    def _renew(self, home: Home, reader: Reader) -> None:
        try:
            self._write(home, reader.name, reader.offset, paused=reader.paused)
        except LogError as error:
            self._logger.error("journal: %s", error)
        else:
            reader.renewed = self._clock.wall

    def pause(self, home: Home, reader: Reader, paused: bool) -> None:
        self._write(home, reader.name, reader.offset, paused=paused)
        reader.renewed = self._clock.wall
        reader.paused = paused

    def delete(self, home: Home, reader: Reader) -> None:
        if home.number >= 0:
            self._scribe.order(e.ReaderDropped(home.number, reader.name))
        del home.topic.readers[reader.name]
        self._ends.drop((home, reader.name))
        self._moved(home)

    def drop_old(self) -> None:
        """Nobody renewed them for too long."""
        wall = self._clock.wall
        for home, name in self._ends.ring(wall):
            reader = home.topic.readers.get(name)
            if reader is None:
                continue
            if wall - reader.renewed >= self._timeout:
                self._logger.warn("TOPIC(%s): reader(%s) is dropped, nobody renewed it", home.topic.name, name)
                self._drop(home, reader)
            else:
                self._watch(home, reader)

    def _drop(self, home: Home, reader: Reader) -> None:
        try:
            self.delete(home, reader)
        except LogError as error:  # the next round tries it again
            self._logger.error("journal: %s", error)
            self._ends.set((home, reader.name), self._clock.wall)

    def forget(self, home: Home) -> None:
        """The topic is gone."""
        for name in home.topic.readers:
            self._ends.drop((home, name))

    def restore(self, home: Home, said: e.ReaderMoved) -> None:
        """As the journal says; while the node was down nobody could renew it, so it is given some time for that.

        A power cut may bring one back that was dropped, and below which all was let go of since.
        """
        since = max(said.renewed, self._clock.wall - self._timeout + self._timeout // LOOKS)
        offset = max(said.offset, home.log.kept_from)  # nobody reads what is gone
        self._add(home, Reader(said.name, offset, since, paused=said.paused))

    def _add(self, home: Home, reader: Reader) -> Reader:
        home.topic.readers[reader.name] = reader
        self._watch(home, reader)
        return reader

    def _watch(self, home: Home, reader: Reader) -> None:
        if self._timeout:
            self._ends.set((home, reader.name), reader.renewed + self._timeout)

    def _write(self, home: Home, name: str, offset: int, *, paused: bool) -> None:
        """Down, as it is from now on; an ephemeral topic's is not."""
        if home.number >= 0:
            self._scribe.order(e.ReaderMoved(home.number, name, offset, self._clock.wall, paused))
