"""An order of a topic's messages in which a place says nearly all of what each channel holds. Knows merged entries.

    rank    0        1           2               3
          | others | a's alone | a's and b's   | a's, b's and c's |      a holds most, then b, then c
                   '-- a holds all from here on, with no attempts made
                               '-- and b all from here on

The others are few: with attempts made, or not held as the rest is. By time alone, one message in flight lies behind
thousands that wait, and so does one that another channel has finished: of each of those it would have to be said one
by one that the channel holds it. Within a rank messages keep their order.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# rank, timestamp, id, channel, attempts, file, position and size of the body: as bytes it sorts by these in this order
ENTRY: Final = struct.Struct(">HQ16sHHIQI")
OWN: Final = 0  # stands for the topic itself among the channels, and sorts first; 1 is the channel that holds most

_HOLDER: Final = struct.Struct(">HH")  # channel and attempts, behind what is the same in all entries of a message


def by_rank(blocks: Iterable[bytes], channels: int) -> Iterator[list[bytes]]:
    """Sorted entries with their ranks, to be sorted again."""
    regular = [*(_HOLDER.pack(channel, 0) for channel in range(1, channels + 1)), b"none, where one comes twice"]
    ranks = [rank.to_bytes(2) for rank in range(channels + 1)]
    message = b""
    group: list[bytes] = []  # the entries of the message, without their ranks
    is_regular = False
    for block in blocks:
        out: list[bytes] = []
        for at in range(2, len(block), ENTRY.size):
            entry = block[at : at + ENTRY.size - 2]
            if entry[:24] == message:
                is_regular = is_regular and entry[24:28] == regular[len(group)]
                group.append(entry)
                continue
            rank = ranks[len(group) if is_regular else 0]
            out += [rank + each for each in group]
            message = entry[:24]
            group = [entry]
            is_regular = entry[24:28] == regular[0]
        yield out
    rank = ranks[len(group) if is_regular else 0]
    yield [rank + each for each in group]
