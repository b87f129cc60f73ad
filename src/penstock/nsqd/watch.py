"""Clients that begin what they never end: no magic, or a command that comes drop by drop. No socket, no clock."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from penstock.nsqd.alarms import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.nsqd.session import Session

FIRST: Final = 10 * 10**9  # ns in which a client has to say that it speaks V2
EACH: Final = 30 * 10**9  # ns in which a command has to become whole,
SLOWEST: Final = 16 << 10  # or to come at this rate, in bytes a second


class Watch:
    """Each client is looked at when it has been there for a while, and then again and again, which costs little."""

    def __init__(self) -> None:
        self._new: OrderedDict[Session, int] = OrderedDict()  # when they are looked at, the first ones first
        self._old: OrderedDict[Session, tuple[int, int]] = OrderedDict()  # and how much of a command they had sent
        self.next = NEVER  # when `look` may find somebody; perhaps a little before

    def add(self, session: Session, now: int) -> None:
        self._new[session] = now + FIRST
        self.next = min(self.next, now + FIRST)

    def remove(self, session: Session) -> None:
        self._new.pop(session, None)
        self._old.pop(session, None)

    def look(self, now: int) -> Iterator[tuple[Session, str]]:
        """Those that are to be dropped, and why."""
        while self._new and next(iter(self._new.values())) <= now:
            session, _ = self._new.popitem(last=False)
            if session.moved or session.held:
                self._again(session, now)
            else:
                yield session, f"it said nothing in {FIRST // 10**9} s"
        while self._old and next(iter(self._old.values()))[0] <= now:
            session, (_, before) = self._old.popitem(last=False)
            if session.moved or session.held or not self._stuck(session, before):
                self._again(session, now)
            else:
                yield session, f"a command that does not become whole in {EACH // 10**9} s"
        new = next(iter(self._new.values()), NEVER)
        self.next = min(new, next(iter(self._old.values()), (NEVER, 0))[0])

    def _again(self, session: Session, now: int) -> None:
        session.moved = False
        self._old[session] = (now + EACH, session.inbox.kept)

    def _stuck(self, session: Session, before: int) -> bool:
        """Nothing became whole since it was looked at last."""
        kept = session.inbox.kept
        return kept > 0 and before > 0 and kept - before < SLOWEST * (EACH // 10**9)
