"""The meta file of one queue: five numbers as text, where reading and writing go on. Knows no other file."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_META: Final = re.compile(rb"\s*(-?\d{1,19})\s+(\d{1,18}),(\d{1,18})\s+(\d{1,18}),(\d{1,18})\s*")


class Meta(NamedTuple):
    """Positions are bytes in the file of that number; after a kill they are as old as the last sync."""

    depth: int  # messages between the two positions; below zero after some crashes
    read_file: int
    read_at: int
    write_file: int
    write_at: int


def parse(text: bytes) -> Meta | None:
    found = _META.fullmatch(text)
    return Meta(*map(int, found.groups())) if found else None


def encode(meta: Meta) -> bytes:
    return b"%d\n%d,%d\n%d,%d\n" % meta
