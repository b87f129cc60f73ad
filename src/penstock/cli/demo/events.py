"""The events of the demo: what shops sell, over six hours of a day; each has a number of its own."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Final

TOPIC: Final = "sales"
SCHEMA: Final = "n BIGINT, shop STRING, item STRING, amount DOUBLE, at TIMESTAMP"
HOUR: Final = 12  # of the day: what is replayed
_BEGIN: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
_HOURS: Final = 6
SHOPS: Final = ("Bern", "Chur", "Genf", "Luzern", "Zug")
_ITEMS: Final = ("apples", "bread", "cheese", "chocolate", "milk", "wine")


def event(number: int) -> bytes:
    """The same for the same number."""
    chance = random.Random(number)
    at = _BEGIN + timedelta(seconds=chance.randrange(_HOURS * 3600))
    return json.dumps(
        {
            "n": number,
            "shop": chance.choice(SHOPS),
            "item": chance.choice(_ITEMS),
            "amount": chance.randrange(50, 20_000) / 100,
            "at": at.isoformat(),
        }
    ).encode()


def number_of(body: bytes) -> int:
    """Of an event, without reading all of it."""
    return int(body[6 : body.index(b",")])
