"""The batch codec: records behind one checksummed header. Knows bytes; knows no file, no topic and no clock.

    batch   magic u32 | length u32 | crc u32 | first u64 | count u32 | appended u64 | flags u32 | key size u32
            | key | payload
    record  size u32 | timestamp u64 | attempts u16 | id, 16 hex digits | body

A batch's length and crc count what follows the crc; `first` is the offset of its first record, `appended` the time of
the append in ns. A record's size counts what follows it.

All numbers are big-endian. A topic's payload is records; other files (the journal) put entries of their own there.
The CRC is seeded, so that a run of zeros is no batch, nor is one of another topic's that a file held before.

Compiled where there is a compiler: everything here runs once per record or per batch.
"""

# What is read from a C array has no type that mypy knows.
# mypy: no-warn-return-any

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from zlib_ng.zlib_ng import crc32

from penstock.errors import CorruptLog

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]
if cython.compiled:
    from cython.cimports.libc.string import memcpy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

MAGIC: Final = b"\xf5PSK"
HEADER: Final = 40  # bytes before the key
RECORD: Final = 30  # bytes of a record before its body
MAX_BATCH: Final = 1 << 30  # no batch is larger, so that a damaged length asks for no absurd read
MAX_ID: Final = (1 << 63) - 1

KEYED: Final = 1  # flags: published under a producer's key
MOVED: Final = 2  # flags: moved here from the timetable; the key says from where

INCOMPLETE: Final = 0  # what `check` answers where the data end inside a batch that may still be good
BAD: Final = -1  # and where no batch can begin

_RECORD_HEAD: Final = struct.Struct(">IQH16s")


class Header(NamedTuple):
    """What stands before a batch's payload."""

    first: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    appended: int
    flags: int
    key: bytes
    payload: int  # where the payload begins
    end: int  # where the batch ends

    @property
    def next(self) -> int:
        return self.first + self.count


class Record(NamedTuple):
    """One message as the log holds it; `id` as NSQ writes it."""

    offset: int
    timestamp: int
    attempts: int
    id: bytes
    body: bytes


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _u32(data: cython.const_uchar[::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    top: cython.Py_ssize_t = data[at]  # widened first: as a C int, `<< 24` turns negative from 0x80 on
    return (top << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _u64(data: cython.const_uchar[::1], at: cython.Py_ssize_t) -> cython.ulonglong:
    high: cython.ulonglong = _u32(data, at)
    low: cython.ulonglong = _u32(data, at + 4)
    return (high << 32) | low


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _u16(data: cython.const_uchar[::1], at: cython.Py_ssize_t) -> cython.uint:
    return (data[at] << 8) | data[at + 1]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _put_u32(data: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.ulonglong) -> cython.void:
    data[at] = (value >> 24) & 0xFF
    data[at + 1] = (value >> 16) & 0xFF
    data[at + 2] = (value >> 8) & 0xFF
    data[at + 3] = value & 0xFF


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _put_u64(data: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.ulonglong) -> cython.void:
    _put_u32(data, at, value >> 32)
    _put_u32(data, at + 4, value)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _put_head(
    data: cython.uchar[::1],
    at: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    timestamp: cython.ulonglong,
    attempts: cython.uint,
    id_value: cython.ulonglong,
) -> cython.void:
    """The 30 bytes before a record's body of `size` bytes."""
    place: cython.Py_ssize_t
    digit: cython.uint
    _put_u32(data, at, size + 26)
    _put_u64(data, at + 4, timestamp)
    data[at + 12] = (attempts >> 8) & 0xFF
    data[at + 13] = attempts & 0xFF
    for place in range(at + 29, at + 13, -1):
        digit = id_value & 15
        data[place] = digit + 48 if digit < 10 else digit + 87
        id_value >>= 4


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _put_next_head(
    data: cython.uchar[::1], at: cython.Py_ssize_t, before: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> cython.void:
    """As the head of the record that begins at `before`, with the id that follows on its own."""
    place: cython.Py_ssize_t = at + 29
    _put_u32(data, at, size + 26)
    if cython.compiled:
        memcpy(cython.address(data[at + 4]), cython.address(data[before + 4]), 26)
    else:
        data[at + 4 : at + 30] = data[before + 4 : before + 30]
    while data[place] == 102 and place > at + 14:  # f
        data[place] = 48
        place -= 1
    data[place] += 40 if data[place] == 57 else 1  # a follows 9


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _copy(
    data: cython.uchar[::1], at: cython.Py_ssize_t, body: bytes, start: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> cython.void:
    if cython.compiled:
        if size > 0:
            memcpy(cython.address(data[at]), cython.cast(cython.p_const_char, body) + start, size)
    else:
        data[at : at + size] = body[start : start + size]


@cython.cfunc
@cython.boundscheck(False)
@cython.wraparound(False)
def _move(
    data: cython.uchar[::1],
    at: cython.Py_ssize_t,
    source: cython.const_uchar[::1],
    start: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.void:
    if cython.compiled:
        memcpy(cython.address(data[at]), cython.address(source[start]), size)
    else:
        data[at : at + size] = source[start : start + size]


def seed_of(incarnation: str) -> int:
    """What the CRCs of an incarnation's batches begin with: another's batches are none there."""
    return crc32(incarnation.encode(), 0x50535432)


def size_of(bodies: Sequence[bytes]) -> int:
    """Bytes of the records that these bodies become."""
    body: bytes
    size: cython.Py_ssize_t = 0
    for body in bodies:
        size += 30 + len(body)
    return size


def put_record(
    data: cython.uchar[::1],
    at: cython.Py_ssize_t,
    body: bytes,
    timestamp: cython.ulonglong,
    id_value: cython.ulonglong,
    attempts: cython.uint = 0,
) -> int:
    """Write one record at `at`; where the next one goes. The room must be there: RECORD and the body."""
    size: cython.Py_ssize_t = len(body)
    if at < 0 or size > len(data) - at - 30:
        raise ValueError("no room for the record")
    _put_head(data, at, size, timestamp, attempts, id_value)
    _copy(data, at + 30, body, 0, size)
    return at + 30 + size


def put_records(
    data: cython.uchar[::1],
    at: cython.Py_ssize_t,
    bodies: Sequence[bytes],
    timestamp: cython.ulonglong,
    first_id: cython.ulonglong,
    step: cython.ulonglong = 1,
) -> int:
    """Write a record for each body, ids counting up from `first_id` in steps; where the next one goes."""
    body: bytes
    size: cython.Py_ssize_t
    room: cython.Py_ssize_t = len(data)
    if at < 0:
        raise ValueError("no room for the record")
    for body in bodies:
        size = len(body)
        if size > room - at - 30:
            raise ValueError("no room for the record")
        _put_head(data, at, size, timestamp, 0, first_id)
        _copy(data, at + 30, body, 0, size)
        at += 30 + size
        first_id += step
    return at


def put_framed(
    data: cython.uchar[::1],
    at: cython.Py_ssize_t,
    framed: Buffer,
    start: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    timestamp: cython.ulonglong,
    first_id: cython.ulonglong,
    skip: cython.Py_ssize_t = 0,
) -> int:
    """As `put_records` for `count` bodies that lie in `framed` from `start`, each behind its size (as in an MPUB).

    With `skip`, each size stands behind so many bytes that are nobody's (as in a run of PUBs by the same line).
    """
    size: cython.Py_ssize_t
    left: cython.Py_ssize_t
    before: cython.Py_ssize_t = -1
    source: cython.const_uchar[::1] = framed
    end: cython.Py_ssize_t = len(source)
    room: cython.Py_ssize_t = len(data)
    if at < 0 or start < 0 or skip < 0 or skip > end:
        raise ValueError("no room for the record")
    for left in range(count):  # noqa: B007 - a C loop
        if end - start - skip < 4:
            raise ValueError("the bodies end early")
        size = _u32(source, start + skip)
        start += skip + 4
        if size > end - start:
            raise ValueError("the bodies end early")
        if size > room - at - 30:
            raise ValueError("no room for the record")
        if before < 0:
            _put_head(data, at, size, timestamp, 0, first_id)
        else:
            _put_next_head(data, at, before, size)
        if size > 0:
            _move(data, at + 30, source, start, size)
        before = at
        at += 30 + size
        start += size
    return at


def put_moved(
    data: cython.uchar[::1],
    at: cython.Py_ssize_t,
    source: Buffer,
    places: array[int],
    first_id: cython.ulonglong,
) -> int:
    """Copy the records that begin at `places` in `source`, ids counting up from `first_id`; where the next one goes.

    Their timestamps and attempts stay, and with a `first_id` of 0 their ids too.
    """
    view: cython.const_uchar[::1] = source
    where: cython.uint[::1] = places
    number: cython.Py_ssize_t
    place: cython.Py_ssize_t
    length: cython.Py_ssize_t
    end: cython.Py_ssize_t = len(view)
    room: cython.Py_ssize_t = len(data)
    if at < 0:
        raise ValueError("no room for the record")
    for number in range(len(where)):
        place = where[number]
        length = _u32(view, place) + 4 if place <= end - 30 else 0
        if length < 30 or length > end - place:
            raise ValueError("no such record")
        if length > room - at:
            raise ValueError("no room for the record")
        _move(data, at, view, place, length)
        if first_id:
            _put_head(data, at, length - 30, _u64(view, place + 4), _u16(view, place + 12), first_id)
            first_id += 1
        at += length
    return at


def seal(
    data: Buffer,
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    first: cython.ulonglong,
    count: cython.ulonglong,
    appended: cython.ulonglong,
    flags: cython.ulonglong,
    key_size: cython.ulonglong,
    seed: int,
) -> None:
    """Write the header of the batch that lies in `[at, end)`: its key and payload stand behind the room for it."""
    view: cython.uchar[::1] = data
    if at < 0 or end > len(view) or end - at < 40 or end - at > 1 << 30 or first >> 63:
        raise ValueError("no such batch")
    view[at] = 0xF5
    view[at + 1] = 0x50
    view[at + 2] = 0x53
    view[at + 3] = 0x4B
    _put_u32(view, at + 4, end - at - 12)
    _put_u64(view, at + 12, first)
    _put_u32(view, at + 20, count)
    _put_u64(view, at + 24, appended)
    _put_u32(view, at + 32, flags)
    _put_u32(view, at + 36, key_size)
    _put_u32(view, at + 8, crc32(memoryview(data)[at + 12 : end], seed))


def encode(
    first: int, count: int, appended: int, payload: Buffer, seed: int, *, flags: int = 0, key: bytes = b""
) -> bytearray:
    """A whole batch around a payload that is ready."""
    batch = bytearray(HEADER)
    batch += key
    batch += payload
    seal(batch, 0, len(batch), first, count, appended, flags, len(key), seed)
    return batch


def encode_records(
    first: int, ids: int, bodies: Sequence[bytes], timestamp: int, seed: int, *, flags: int = 0, key: bytes = b""
) -> bytearray:
    """A whole batch of records; `ids` is what the id of offset 0 would be, `timestamp` also the time of the append."""
    start = HEADER + len(key)
    batch = bytearray(start + sum(map(len, bodies)) + RECORD * len(bodies))
    batch[HEADER:start] = key
    put_records(batch, start, bodies, timestamp, ids + first)
    seal(batch, 0, len(batch), first, len(bodies), timestamp, flags, len(key), seed)
    return batch


@cython.cfunc
@cython.boundscheck(False)
@cython.wraparound(False)
def _length(view: cython.const_uchar[::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The whole length of the batch whose header stands at `at`, unchecked; or INCOMPLETE, or BAD."""
    room: cython.Py_ssize_t = len(view) - at
    length: cython.Py_ssize_t
    if (
        (room > 0 and view[at] != 0xF5)
        or (room > 1 and view[at + 1] != 0x50)
        or (room > 2 and view[at + 2] != 0x53)
        or (room > 3 and view[at + 3] != 0x4B)
    ):
        return -1
    if room < 40:
        return 0
    length = _u32(view, at + 4) + 12
    if length < 40 or length > 1 << 30 or _u32(view, at + 36) > length - 40 or view[at + 12] > 0x7F:
        return -1  # the last: no offset is that large, and sums of those that can be do not run over
    return length


def check(data: Buffer, at: cython.Py_ssize_t, seed: int) -> int:
    """Where the batch at `at` ends, when it is whole and its CRC holds; else INCOMPLETE or BAD."""
    view: cython.const_uchar[::1] = data
    length: cython.Py_ssize_t
    if at < 0 or at > len(view):
        raise ValueError("not inside the data")
    length = _length(view, at)
    if length <= 0:
        return length
    if length > len(view) - at:
        return 0
    if crc32(memoryview(data)[at + 12 : at + length], seed) != _u32(view, at + 8):
        return -1
    return at + length


def length_at(data: Buffer, at: cython.Py_ssize_t) -> int:
    """How long the batch says it is whose header stands at `at` (its CRC is not looked at); else INCOMPLETE or BAD."""
    view: cython.const_uchar[::1] = data
    if at < 0 or at > len(view):
        raise ValueError("not inside the data")
    return _length(view, at)


def walk(
    data: Buffer,
    at: cython.Py_ssize_t,
    seed: int,
    expected: cython.ulonglong,
    enough: cython.Py_ssize_t,
    keyed: list[int] | None = None,
) -> tuple[int, int, int, int]:
    """Check batches from `at` on, each of which must begin with the offset that is expected there.

    Answers (where it stopped, the offset expected there, where the last good batch begins or -1, why): INCOMPLETE at
    the end of the data, BAD at what is no batch or not the expected one, 1 when `enough` bytes or more are behind it.
    Where batches with a key begin is added to `keyed`.
    """
    view: cython.const_uchar[::1] = data
    whole = memoryview(data)
    end: cython.Py_ssize_t = len(view)
    begin: cython.Py_ssize_t = at
    last: cython.Py_ssize_t = -1
    length: cython.Py_ssize_t
    if at < 0 or at > end:
        raise ValueError("not inside the data")
    while at - begin < enough:
        length = _length(view, at)
        if length < 0:
            return at, expected, last, -1
        if length == 0 or length > end - at:
            return at, expected, last, 0
        if _u64(view, at + 12) != expected or crc32(whole[at + 12 : at + length], seed) != _u32(view, at + 8):
            return at, expected, last, -1
        if keyed is not None and _u32(view, at + 32) & 1:
            keyed.append(at)
        expected += _u32(view, at + 20)
        last = at
        at += length
    return at, expected, last, 1


def seek(data: Buffer, at: cython.Py_ssize_t, offset: cython.ulonglong) -> int:
    """Where the batch begins that holds `offset` or the first after it, by headers from `at`; no CRC is looked at.

    Where the data end first, the place of the last header that could be read, or the end of the last whole batch.
    """
    view: cython.const_uchar[::1] = data
    end: cython.Py_ssize_t = len(view)
    length: cython.Py_ssize_t
    if at < 0 or at > end:
        raise ValueError("not inside the data")
    while at < end:
        length = _length(view, at)
        if length <= 0 or _u64(view, at + 12) + _u32(view, at + 20) > offset or length > end - at:
            break
        at += length
    return at


def span(data: Buffer, at: cython.Py_ssize_t, end: cython.Py_ssize_t, size: cython.Py_ssize_t) -> int:
    """Where the whole batches end that begin at `at` and fit `size` bytes (one at least), by headers up to `end`."""
    view: cython.const_uchar[::1] = data
    stop: cython.Py_ssize_t = at
    length: cython.Py_ssize_t
    if at < 0 or end > len(view):
        raise ValueError("not inside the data")
    while stop < end:
        length = _length(view, stop)
        if length <= 0 or length > end - stop or (stop > at and stop + length - at > size):
            break
        stop += length
    return stop


def first_at(data: Buffer, at: cython.Py_ssize_t) -> int:
    """The first offset of the batch whose header stands at `at`."""
    view: cython.const_uchar[::1] = data
    if at < 0 or len(view) - at < 40:
        raise ValueError("no header")
    return _u64(view, at + 12)


def header(data: Buffer, at: int = 0) -> Header:
    """The header at `at` of a batch that is known to be whole and good."""
    view: cython.const_uchar[::1] = data
    start: cython.Py_ssize_t = at
    length: cython.Py_ssize_t = _length(view, start) if 0 <= start <= len(view) else -1
    if length <= 0 or length > len(view) - start:
        raise ValueError("no whole batch")
    key_end = at + 40 + _u32(view, start + 36)
    return Header(
        _u64(view, start + 12),
        _u32(view, start + 20),
        _u64(view, start + 24),
        _u32(view, start + 32),
        bytes(memoryview(data)[at + 40 : key_end]),
        key_end,
        at + length,
    )


@cython.boundscheck(False)
@cython.wraparound(False)
def positions(data: Buffer, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> array[int]:
    """Where each record begins in the whole and good batches that fill `[at, end)`, in order."""
    view: cython.const_uchar[::1] = data
    place: cython.Py_ssize_t = at
    length: cython.Py_ssize_t
    total: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    filled: cython.Py_ssize_t = 0
    if at < 0 or end > len(view):
        raise ValueError("not inside the data")
    while place < end:
        length = _length(view, place)
        if length <= 0 or length > end - place:
            raise CorruptLog("a batch is not what its header says")
        total += _u32(view, place + 20)
        place += length
    if total > (end - at) // 30:
        raise CorruptLog("a batch is not what its header says")
    found = array("I", bytes(4 * total))
    fill: cython.uint[::1] = found
    while at < end:
        stop = at + _length(view, at)
        at += 40 + _u32(view, at + 36)
        while at < stop:
            if filled == total or stop - at < 30:
                raise CorruptLog("a batch is not what its header says")
            length = _u32(view, at) + 4
            if length < 30 or length > stop - at:
                raise CorruptLog("a record is not what its size says")
            fill[filled] = at
            filled += 1
            at += length
    if filled != total:
        raise CorruptLog("a batch is not what its header says")
    return found


@cython.boundscheck(False)
@cython.wraparound(False)
def moved_before(data: Buffer, first: cython.ulonglong, time: cython.ulonglong) -> list[int]:
    """The offsets of messages that were deferred, and published before `time`, in whole and good batches.

    `first` is the offset of the first record.
    """
    view: cython.const_uchar[::1] = data
    at: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    found: list[int] = []
    while at < len(view):
        stop = at + _length(view, at)
        if stop <= at or stop > len(view):
            raise CorruptLog("a batch is not what its header says")
        if not _u32(view, at + 32) & 2:
            first += _u32(view, at + 20)
            at = stop
            continue
        at += 40 + _u32(view, at + 36)
        while stop - at >= 30:
            if _u64(view, at + 4) < time:
                found.append(first)
            first += 1
            at += 4 + _u32(view, at)
        if at != stop:
            raise CorruptLog("a record is not what its size says")
    return found


def records(data: Buffer, at: int = 0, end: int | None = None) -> Iterator[Record]:
    """The records of the whole and good batches that fill `[at, end)`: for tools and tests, a Python object each."""
    whole = memoryview(data)
    stop = len(whole) if end is None else end
    while at < stop:
        head = header(whole, at)
        offset = head.first
        for place in positions(whole, at, head.end):
            yield record(whole, place, offset)
            offset += 1
        at = head.end


def record(data: Buffer, at: int, offset: int) -> Record:
    """The record that begins at `at`."""
    size, timestamp, attempts, id_ = _RECORD_HEAD.unpack_from(data, at)
    return Record(offset, timestamp, attempts, id_, bytes(memoryview(data)[at + RECORD : at + 4 + size]))
