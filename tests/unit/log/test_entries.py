"""The journal's entries and their bytes."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptLog, DataPathError
from penstock.log import entries as e
from penstock.log.chain import Hole

_VALUES = {
    e.U32: st.integers(0, 2**32 - 1),
    e.U64: st.integers(0, 2**64 - 1),
    e.I64: st.integers(-(2**63), 2**63 - 1),
    e.FLAG: st.booleans(),
    str: st.text(st.characters(codec="utf-8"), max_size=70),
    bytes: st.binary(max_size=70),
}


def any_of(kind: type[e.Entry]) -> st.SearchStrategy[e.Entry]:
    hints = get_type_hints(kind, include_extras=True)
    make: Any = kind
    return st.tuples(*(_VALUES[hints[field]] for field in kind._fields)).map(lambda fields: make(*fields))


ANY = st.one_of([any_of(kind) for kind in e.KINDS.values()])


# The bytes


@pytest.mark.parametrize("kind", e.KINDS.values(), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_entry_is_read_as_it_was_written(kind: type[e.Entry], data: st.DataObject) -> None:
    # given any entry of the kind, when it is written and read
    entry = data.draw(any_of(kind))
    found = list(e.decode(e.encode([entry])))
    # then it is the same, and of the same kind
    assert found == [entry]
    assert type(found[0]) is kind


@given(st.lists(ANY, max_size=20))
def test_entries_are_read_in_the_order_in_which_they_were_written(written: list[e.Entry]) -> None:
    found = list(e.decode(e.encode(written)))
    assert [(type(entry), entry) for entry in found] == [(type(entry), entry) for entry in written]


def test_every_kind_of_entry_has_a_number() -> None:
    assert set(e.KINDS.values()) == set(e.Entry.__args__)


@pytest.mark.parametrize(
    ("entry", "written"),
    [
        pytest.param(e.Complete(), "ff 00000000", id="no-field"),
        pytest.param(e.ChannelDeleted(7), "11 00000004 00000007", id="a-number"),
        pytest.param(e.TopicPaused(1, True), "03 00000005 00000001 01", id="a-flag"),
        pytest.param(e.Retention(1, -1, 2), "05 00000014 00000001 ffffffffffffffff 0000000000000002", id="unset"),
        pytest.param(e.TopicCreated(2, "ab", "cde"), "01 00000011 00000002 00000002 00000003 6162 636465", id="texts"),
        pytest.param(
            e.Progress(3, 1, 2, e.pack_ranges([(0, 1)]), e.pack_messages([(1, 5, 0x123456789ABC)])),
            "15 0000003c 00000003 0000000000000001 0000000000000002 00000010 00000010"
            "0000000000000000 0000000000000001 0000000000000001 123456789abc 0005",
            id="packed",
        ),
    ],
)
def test_an_entry_is_written_in_these_bytes(entry: e.Entry, written: str) -> None:
    assert e.encode([entry]) == bytes.fromhex(written)


def test_packed_bytes_may_come_in_any_buffer() -> None:
    # given packed messages in a part of a larger buffer, as compiled code hands them over
    packed = e.pack_messages([(1, 1, e.READY)])
    part = memoryview(bytearray(b"xx" + packed))[2:]
    # when they are written without a copy
    page = e.Page(1, 0, 9, part)  # type: ignore[arg-type]
    # then they are read as bytes
    assert list(e.decode(e.encode([page]))) == [e.Page(1, 0, 9, packed)]


# What is no entry


def test_a_kind_of_a_newer_format_is_refused_by_name() -> None:
    # given an entry of a kind that does not exist, behind one that does
    payload = e.encode([e.TopicDeleted(1)]) + bytes([200, 0, 0, 0, 1, 0])
    found = e.decode(payload)
    # then the known one is read and the other one refused
    assert next(found) == e.TopicDeleted(1)
    with pytest.raises(DataPathError, match="kind 200 was written by a newer Penstock"):
        next(found)


@pytest.mark.parametrize("kind", e.KINDS.values(), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_an_entry_that_ends_early_is_refused(kind: type[e.Entry], data: st.DataObject) -> None:
    # given an entry, when it is read without its end
    payload = e.encode([data.draw(any_of(kind))])
    cut = data.draw(st.integers(1, len(payload) - 1))
    # then it is none
    with pytest.raises(CorruptLog):
        list(e.decode(payload[:cut]))


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param("11 00000005 00000007 00", id="a-byte-too-many"),
        pytest.param("11 00000003 000000 11", id="a-byte-too-few"),
        pytest.param("21 0000000a 00000001 00000003 6162 ", id="a-text-too-long"),
        pytest.param("21 0000000a 00000001 ffffffff 6162", id="a-text-of-4-gib"),
        pytest.param("21 0000000a 00000001 00000002 fffe", id="no-utf-8"),
        pytest.param("11 ffffffff 00000007", id="an-entry-of-4-gib"),
    ],
)
def test_an_entry_that_is_not_what_its_sizes_say_is_refused(payload: str) -> None:
    with pytest.raises(CorruptLog, match="no entry stands at byte 0"):
        list(e.decode(bytes.fromhex(payload)))


@given(st.lists(ANY, min_size=1, max_size=3), st.data())
def test_no_bytes_raise_anything_but_our_errors(written: list[e.Entry], data: st.DataObject) -> None:
    # given entries of which any byte is changed
    payload = bytearray(e.encode(written))
    payload[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(st.integers(1, 255))
    # when they are read
    try:
        found = list(e.decode(payload))
    except (CorruptLog, DataPathError):
        return  # then they are refused
    # or something else than what was written is read
    assert [(type(entry), entry) for entry in found] != [(type(entry), entry) for entry in written] or _flags(written)


def _flags(entries: list[e.Entry]) -> bool:
    """Whether any is a flag: of which each byte but 0 is the same."""
    return any(isinstance(field, bool) for entry in entries for field in entry)


# What is packed


@given(
    st.lists(
        st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**16 - 1), st.integers(0, 2**48 - 1)), unique=True
    ).map(sorted)
)
def test_messages_are_packed_into_sixteen_bytes_each(messages: list[tuple[int, int, int]]) -> None:
    packed = e.pack_messages(messages)
    assert len(packed) == 16 * len(messages)
    assert list(e.unpack_messages(packed)) == messages


def test_attempts_stop_at_what_sixteen_bits_hold() -> None:
    assert list(e.unpack_messages(e.pack_messages([(1, 70_000, e.IN_FLIGHT)]))) == [e.Message(1, 65_535, e.IN_FLIGHT)]


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))))
def test_ranges_are_unpacked_as_they_were_packed(ranges: list[tuple[int, int]]) -> None:
    assert list(e.unpack_ranges(e.pack_ranges(ranges))) == ranges


def test_holes_are_unpacked_with_their_reason() -> None:
    holes = [Hole(1, 2, "emptied"), Hole(4, 2**64 - 1, "lost"), Hole(7, 9, "damaged")]
    assert list(e.unpack_holes(e.pack_holes(holes))) == holes
