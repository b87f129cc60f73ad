"""Where in a topic's log `to=` and `from=` point: `earliest`, `latest`, an offset, a time, or how long ago.

Knows no channel. A place that is not kept, or lies beyond what channels may have been given, is answered 416.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from penstock.errors import HttpError
from penstock.http import json
from penstock.options.duration import duration
from penstock.protocol.batch import MAX_ID

if TYPE_CHECKING:
    from penstock.http import Request, Response
    from penstock.nsqd.home import Home
    from penstock.nsqd.http.blocks import Blocks
    from penstock.nsqd.service import Service

_OFFSET: Final = re.compile(r"[0-9]{1,19}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Places:
    """Times are found by the blocks of the log."""

    def __init__(self, service: Service, blocks: Blocks) -> None:
        self._service = service
        self._blocks = blocks

    async def find(self, request: Request, what: str, home: Home) -> int:
        """The offset that the argument means, wherever it lies; HttpError where it means none."""
        text = request.arg(what)
        if text is None:
            raise HttpError(400, f"MISSING_ARG_{what.upper()}")
        if text in ("earliest", "latest"):
            latest = home.topic.latest
            return latest if text == "latest" else min(home.log.kept_from, latest)
        if _OFFSET.fullmatch(text) and int(text) <= MAX_ID:
            return int(text)
        try:
            time = self._time(text)
        except (ValueError, OverflowError):
            raise HttpError(400, f"INVALID_ARG_{what.upper()}") from None
        return min(await self._blocks.at_time(home, time), home.topic.latest)

    def _time(self, text: str) -> int:
        """In ns of the wall, not before 1970."""
        if text.startswith("-"):
            return max(0, self._service.clock.wall + duration(text))
        time = datetime.fromisoformat(text.replace(" ", "+").upper())  # a query makes a space of the plus
        if time.tzinfo is None:
            raise ValueError("a time of no zone")
        since = time - _EPOCH
        return max(0, (since.days * 86400 + since.seconds) * 10**9 + since.microseconds * 1000)


def outside(home: Home, offset: int) -> Response | None:
    """What is answered where no channel can go on there."""
    if offset > home.topic.latest:
        return json({"message": "BEYOND_THE_END", "routed": home.topic.latest}, 416)
    if offset < min(home.log.kept_from, home.topic.latest):
        return json({"message": "NOT_RETAINED", "earliest": home.log.kept_from}, 416)
    return None
