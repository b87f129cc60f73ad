"""A channel's unfinished messages and a topic's holes, as plain Python holds them: for tools, imports and tests.

Knows the packed bytes of the journal; knows no channel, no topic and no file.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import groupby
from typing import TYPE_CHECKING, Final

from penstock.log.chain import Hole
from penstock.log.entries import END, MESSAGE, Message, unpack_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BITS: Final = 16  # offsets of one page: few pages where messages lie close, few messages in one where they do not


def _page_of(pair: tuple[int, ...]) -> int:
    return pair[0] >> _BITS


class Unfinished:
    """Offset -> packed value, in pages of offsets; about 100 bytes a message."""

    __slots__ = ("_numbers", "_pages")

    def __init__(self) -> None:
        self._pages: dict[int, dict[int, int]] = {}
        self._numbers: list[int] = []  # of the pages, in order

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def __len__(self) -> int:
        return sum(map(len, self._pages.values()))

    def __iter__(self) -> Iterator[Message]:
        for number in self._numbers:
            for offset, value in sorted(self._pages[number].items()):
                yield Message(offset, value & 0xFFFF, value >> 16)

    def put(self, packed: bytes) -> None:
        """These messages are unfinished."""
        for number, pairs in groupby(MESSAGE.iter_unpack(packed), _page_of):
            page = self._pages.get(number)
            if page is None:
                page = self._pages[number] = {}
                insort(self._numbers, number)
            page.update(pairs)

    def finish(self, packed: bytes) -> None:
        """What lies in these ranges is finished."""
        for first, next_ in unpack_ranges(packed):
            self.remove(first, next_)

    def remove(self, first: int, next_: int) -> None:
        """Nothing in `[first, next_)` is unfinished."""
        low = bisect_left(self._numbers, first >> _BITS)
        high = bisect_left(self._numbers, (next_ - 1 >> _BITS) + 1, low)
        for number in self._numbers[low:high]:
            page = self._pages[number]
            start, stop = max(first, number << _BITS), min(next_, number + 1 << _BITS)
            if stop - start < len(page):
                for offset in range(start, stop):
                    page.pop(offset, None)
            else:
                page = self._pages[number] = {o: value for o, value in page.items() if not start <= o < stop}
            if not page:
                del self._pages[number]
                del self._numbers[bisect_left(self._numbers, number)]

    def clear(self) -> None:
        self._pages.clear()
        self._numbers.clear()

    @property
    def low(self) -> int:
        """The lowest of them; there is one."""
        return min(self._pages[self._numbers[0]])

    def page(self, first: int, limit: int) -> tuple[int, bytes]:
        """The next `limit` messages from `first` on, packed, and the offset behind which others may follow, or END."""
        parts: list[bytes] = []
        for number in self._numbers[bisect_left(self._numbers, first >> _BITS) :]:
            page = self._pages[number]
            offsets = sorted([offset for offset in page if offset >= first])
            parts += [MESSAGE.pack(offset, page[offset]) for offset in offsets[: limit - len(parts)]]
            if len(parts) == limit:
                return int.from_bytes(parts[-1][:8], "big") + 1, b"".join(parts)
        return END, b"".join(parts)


def below(packed: bytes, cursor: int) -> bytes:
    """Those of the packed messages, which are in ascending order, that lie below the cursor."""
    count = len(packed) // MESSAGE.size
    if not count or _offset(packed, count - 1) < cursor:
        return packed
    return packed[: bisect_left(range(count), cursor, key=lambda place: _offset(packed, place)) * MESSAGE.size]


def _offset(packed: bytes, place: int) -> int:
    return int.from_bytes(packed[place * MESSAGE.size : place * MESSAGE.size + 8], "big")


class Holes:
    """Stretches of offsets that hold nothing: in order, none touching another of its kind."""

    __slots__ = ("_holes",)

    def __init__(self) -> None:
        self._holes: list[Hole] = []

    def __len__(self) -> int:
        return len(self._holes)

    def __iter__(self) -> Iterator[Hole]:
        return iter(self._holes)

    def replace(self, first: int, next_: int, holes: Iterable[Hole]) -> None:
        """The holes in `[first, next_)` are these."""
        low = bisect_left(self._holes, first, key=lambda hole: hole.next)  # one that only touches, too
        high = bisect_left(self._holes, next_ + 1, low, key=lambda hole: hole.first)
        touched = self._holes[low:high]
        pieces = [hole._replace(next=min(hole.next, first)) for hole in touched]
        pieces += [hole._replace(first=max(hole.first, next_)) for hole in touched]
        self._holes[low:high] = _merged([*pieces, *holes])

    def page(self, first: int, limit: int) -> tuple[int, list[Hole]]:
        """The next `limit` holes from `first` on, and the offset behind which others may follow, or END."""
        low = bisect_left(self._holes, first + 1, key=lambda hole: hole.next)
        found = [hole._replace(first=max(hole.first, first)) for hole in self._holes[low : low + limit]]
        return (found[-1].next if low + limit < len(self._holes) else END), found


def _merged(holes: list[Hole]) -> list[Hole]:
    merged: list[Hole] = []
    for hole in sorted(hole for hole in holes if hole.first < hole.next):
        if merged and merged[-1].next == hole.first and merged[-1].why == hole.why:
            merged[-1] = merged[-1]._replace(next=hole.next)
        else:
            merged.append(hole)
    return merged
