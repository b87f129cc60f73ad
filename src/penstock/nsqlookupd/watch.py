"""Clients of the TCP port that do not say who they are, or said it and fell silent. Knows no socket and no clock."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from penstock.nsqlookupd.registrations import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST: Final = 10 * 10**9  # ns in which a client has to say who it is
LEAST: Final = 60 * 10**9  # ns of silence that are borne at least: nsqd pings each 15 s

_Client = TypeVar("_Client")


class Watch(Generic[_Client]):
    """Each is looked at when it was silent for too long: `silence` ns, behind which its nsqd is told of no more."""

    def __init__(self, silence: int) -> None:
        self._silence = max(silence, LEAST)
        self._new: OrderedDict[_Client, int] = OrderedDict()  # since when they are here, the first ones first
        self._heard: OrderedDict[_Client, int] = OrderedDict()  # when they were heard last, in that order

    @property
    def next(self) -> int:
        """When `look` has something to do."""
        when = NEVER
        if self._new:
            when = next(iter(self._new.values())) + FIRST
        if self._heard:
            when = min(when, next(iter(self._heard.values())) + self._silence)
        return when

    def add(self, client: _Client, now: int) -> None:
        self._new[client] = now

    def heard(self, client: _Client, now: int) -> None:
        """It has said who it is, and a whole command."""
        self._new.pop(client, None)
        self._heard[client] = now
        self._heard.move_to_end(client)

    def remove(self, client: _Client) -> None:
        self._new.pop(client, None)
        self._heard.pop(client, None)

    def look(self, now: int) -> Iterator[tuple[_Client, str]]:
        """Those that are to be dropped, which are forgotten here, and why."""
        while self._new and next(iter(self._new.values())) + FIRST <= now:
            yield self._new.popitem(last=False)[0], f"it did not say who it is in {FIRST // 10**9} s"
        while self._heard and next(iter(self._heard.values())) + self._silence <= now:
            yield self._heard.popitem(last=False)[0], f"nothing was heard of it in {self._silence // 10**9} s"
