"""What the journal remembers, one kind of entry for each change, and their bytes. Knows no file and folds nothing.

    entry     kind u8 | size u32 | field | field | ... | texts and bytes of the fields, in order
    field     a number as its type says; a text or bytes as its length u32
    message   offset u64 | due u48 | attempts u16      16 bytes, packed in ascending order of offset
    range     first u64 | next u64                     offsets `[first, next)`
    hole      first u64 | next u64 | why u8

All numbers are big-endian; size counts what follows it. Topics and channels are numbers here: their first entry names
them, and no number is given again while an entry that means another one may still be replayed.

An entry says how things are, not what to add: the same one twice, or once more later with what was asked meanwhile,
does no harm. What must not be torn apart goes into one block.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias, get_type_hints

from penstock.errors import CorruptLog, DataPathError
from penstock.log.chain import Hole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Buffer

U32: TypeAlias = Annotated[int, "I"]
U64: TypeAlias = Annotated[int, "Q"]
I64: TypeAlias = Annotated[int, "q"]
FLAG: TypeAlias = Annotated[bool, "?"]

END: Final = (1 << 64) - 1  # no offset lies behind it
NODE: Final = (1 << 32) - 1  # in the place of a topic: it is the node's, and no topic's
NODES: Final = -1  # retention that is not set for the topic: the node's holds

IN_FLIGHT: Final = 0  # a message's due: a consumer has it
READY: Final = 1  # to be delivered again at once
# else the wall clock in ms at which it is ready again, rounded up


class TopicCreated(NamedTuple):
    """The topic is there; said again of one that is, it changes nothing."""

    topic: U32
    name: str
    incarnation: str


class TopicDeleted(NamedTuple):
    """The topic is gone, and all that is its."""

    topic: U32


class TopicPaused(NamedTuple):
    topic: U32
    paused: FLAG


class Routed(NamedTuple):
    """R stands at `offset`, or, `following`, was there and goes with the committed end from `when` on."""

    topic: U32
    offset: U64
    following: FLAG
    when: U64


class Retention(NamedTuple):
    """What the topic keeps of consumed data; NODES where the node's limit holds."""

    topic: U32
    bytes: I64
    time: I64


class Holes(NamedTuple):
    """The holes in the topic's `[first, next)` are these and no others."""

    topic: U32
    first: U64
    next: U64
    holes: bytes


class ChannelCreated(NamedTuple):
    """The channel is there and begins at `cursor`; of one that is there its cursor stays where it is.

    `since` is when it was created or last emptied: what was deferred before is not for it. In a slice `cursor` is the
    low-water mark, and pages from there on follow, the first in the same block.
    """

    channel: U32
    topic: U32
    name: str
    cursor: U64
    since: U64


class ChannelDeleted(NamedTuple):
    channel: U32


class ChannelPaused(NamedTuple):
    channel: U32
    paused: FLAG


class Emptied(NamedTuple):
    """The cursor is there, nothing below it is unfinished, and what was deferred before is not for this channel."""

    channel: U32
    cursor: U64
    when: U64


class Rewound(NamedTuple):
    """The cursor is there and nothing below it is unfinished."""

    channel: U32
    cursor: U64


class Progress(NamedTuple):
    """What a channel did since its last entry of this kind: all at once, so that a cursor never moves alone.

    Its cursor went from `start` to `cursor`; of what it passed, `unfinished` (packed messages) lists all that is not
    finished. Of what lies below, `finished` (packed ranges) and `unfinished` list what changed.
    A `start` above the channel's cursor says that an entry is lost: then the cursor stays, and messages come again.
    """

    channel: U32
    start: U64
    cursor: U64
    finished: bytes
    unfinished: bytes


class Page(NamedTuple):
    """What is unfinished in the channel's `[first, next)`: these packed messages and no others.

    All of it was taken: a cursor that stands there moves to `next`. One that stands below stays, as with `Progress`.
    """

    channel: U32
    first: U64
    next: U64
    unfinished: bytes


class ReaderMoved(NamedTuple):
    topic: U32
    name: str
    offset: U64
    renewed: U64
    paused: FLAG


class ReaderDropped(NamedTuple):
    topic: U32
    name: str


class ProducerSeen(NamedTuple):
    """The last batch that the producer `key` published to the topic; with NODE a mark, and no batch."""

    topic: U32
    key: bytes
    sequence: U64
    digest: bytes
    when: U64


class ProducerDropped(NamedTuple):
    topic: U32
    key: bytes


class Complete(NamedTuple):
    """The file says everything: those before it are not needed. The journal's own."""


Entry: TypeAlias = (
    TopicCreated | TopicDeleted | TopicPaused | Routed | Retention | Holes
    | ChannelCreated | ChannelDeleted | ChannelPaused | Emptied | Rewound | Progress | Page
    | ReaderMoved | ReaderDropped | ProducerSeen | ProducerDropped | Complete
)  # fmt: skip

KINDS: Final[dict[int, type[Entry]]] = {
    1: TopicCreated,
    2: TopicDeleted,
    3: TopicPaused,
    4: Routed,
    5: Retention,
    6: Holes,
    16: ChannelCreated,
    17: ChannelDeleted,
    18: ChannelPaused,
    19: Emptied,
    20: Rewound,
    21: Progress,
    22: Page,
    32: ReaderMoved,
    33: ReaderDropped,
    34: ProducerSeen,
    35: ProducerDropped,
    255: Complete,
}

_HEAD: Final = struct.Struct(">BI")


class _Form(NamedTuple):
    """How the entries of one kind are written."""

    kind: int
    make: type[Any]
    head: struct.Struct  # kind, size, and a number for each field
    loose: tuple[tuple[int, bool], ...]  # the places of the fields of any length, and whether they are texts


def _form(kind: int, make: type[Any]) -> _Form:
    hints = get_type_hints(make, include_extras=True)
    types = [hints[field] for field in make._fields]
    numbers = "".join(getattr(type_, "__metadata__", "I")[0] for type_ in types)
    loose = tuple((place, type_ is str) for place, type_ in enumerate(types) if type_ in (str, bytes))
    return _Form(kind, make, struct.Struct(f"{_HEAD.format}{numbers}"), loose)


_BY_KIND: Final = {kind: _form(kind, make) for kind, make in KINDS.items()}
_BY_TYPE: Final = {form.make: form for form in _BY_KIND.values()}


def encode(entries: Iterable[Entry]) -> bytes:
    """The payload of a block."""
    parts: list[Buffer] = []
    for entry in entries:
        kind, _, head, loose = _BY_TYPE[type(entry)]
        fields: list[Any] = [*entry]
        size = head.size - _HEAD.size
        tails: list[Buffer] = []
        for place, text in loose:
            tail = fields[place].encode() if text else fields[place]
            fields[place] = len(tail)
            size += len(tail)
            tails.append(tail)
        parts.append(head.pack(kind, size, *fields))
        parts += tails
    return b"".join(parts)


def decode(payload: Buffer) -> Iterator[Entry]:
    """The entries of a payload; CorruptLog at what is none, DataPathError at a kind that a newer Penstock wrote."""
    data = memoryview(payload)
    at = 0
    while at < len(data):
        try:
            entry, at = _entry(data, at)
        except (struct.error, UnicodeDecodeError) as error:
            raise CorruptLog(f"no entry stands at byte {at} of a block") from error
        yield entry


def _entry(data: memoryview, at: int) -> tuple[Entry, int]:
    kind, size = _HEAD.unpack_from(data, at)
    form = _BY_KIND.get(kind)
    if form is None:
        raise DataPathError(f"an entry of kind {kind} was written by a newer Penstock: use that one")
    fields = list(form.head.unpack_from(data, at))[2:]
    stop = at + _HEAD.size + size
    at += form.head.size
    for place, text in form.loose:
        tail = bytes(data[at : at + fields[place]])
        at += fields[place]
        fields[place] = tail.decode() if text else tail
    if at != stop or stop > len(data):
        raise struct.error("an entry is not what its size says")
    return form.make(*fields), stop


class Message(NamedTuple):
    """An unfinished message; `due` is IN_FLIGHT, READY, or when it is ready again."""

    offset: int
    attempts: int
    due: int


MESSAGE: Final = struct.Struct(">QQ")  # offset, value: `due << 16 | attempts`
RANGE: Final = struct.Struct(">QQ")
_HOLE: Final = struct.Struct(">QQB")
_REASONS: Final = ("emptied", "lost", "damaged")


def pack_messages(messages: Iterable[tuple[int, int, int]]) -> bytes:
    """(offset, attempts, due) of each, in ascending order of offset; attempts stop at 65,535."""
    return b"".join(MESSAGE.pack(offset, due << 16 | min(attempts, 0xFFFF)) for offset, attempts, due in messages)


def unpack_messages(packed: bytes) -> Iterator[Message]:
    for offset, value in MESSAGE.iter_unpack(packed):
        yield Message(offset, value & 0xFFFF, value >> 16)


def pack_ranges(ranges: Iterable[tuple[int, int]]) -> bytes:
    return b"".join(RANGE.pack(first, next_) for first, next_ in ranges)


def unpack_ranges(packed: bytes) -> Iterator[tuple[int, int]]:
    return RANGE.iter_unpack(packed)


def pack_holes(holes: Iterable[Hole]) -> bytes:
    return b"".join(_HOLE.pack(first, next_, _REASONS.index(why)) for first, next_, why in holes)


def unpack_holes(packed: bytes) -> Iterator[Hole]:
    for first, next_, why in _HOLE.iter_unpack(packed):
        yield Hole(first, next_, _REASONS[why])
