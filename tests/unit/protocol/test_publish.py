"""What a client publishes becomes records as it lies in the buffer."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.batch import RECORD, put_framed, put_records
from penstock.protocol.commands import Mpub, Pubs
from tests.unit.protocol.conversation import greeted, mpub, pub

TIME = 1_700_000_000_123_456_789
IDS = 0x3FFF_0000_0000_0000
BODIES = st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=4)


def records(bodies: list[bytes]) -> bytes:
    data = bytearray(sum(map(len, bodies)) + RECORD * len(bodies))
    put_records(data, 0, bodies, TIME, IDS)
    return bytes(data)


@given(
    st.lists(st.tuples(st.sampled_from("tu"), BODIES), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n", " x\n"])
)
def test_runs_of_pubs_become_the_records_of_their_bodies(said: list[tuple[str, list[bytes]]], end: str) -> None:
    # given runs of PUBs, each a line and a body behind its size
    bodies = [(topic, body) for topic, run in said for body in run]
    data = bytearray(b"".join(pub(topic, body).replace(b"\n", end.encode(), 1) for topic, body in bodies))
    parser = greeted()
    at, found = 0, []
    # when each run is put into a batch at once
    while (command := parser.next(data, at, len(data))) is not None:
        at = parser.at
        assert isinstance(command, Pubs)
        room = bytearray(command.stop - command.start + command.count * (RECORD - 4 - command.skip))
        put_framed(room, 0, command.data, command.start, command.count, TIME, IDS, command.skip)
        found.append((command.topic, bytes(room)))
    # then it is as if its bodies had been put there one by one, in exactly that room
    assert found == [
        (topic, records([body for _, body in run])) for topic, run in groupby(bodies, lambda pair: pair[0])
    ]


@given(BODIES)
def test_an_mpub_becomes_the_records_of_its_bodies(bodies: list[bytes]) -> None:
    data = bytearray(mpub("t", bodies))
    command = greeted().next(data, 0, len(data))
    assert isinstance(command, Mpub)
    room = bytearray(command.stop - command.start + command.count * (RECORD - 4))
    put_framed(room, 0, memoryview(command.data), command.start, command.count, TIME, IDS, command.skip)
    assert bytes(room) == records(bodies)


@pytest.mark.parametrize("skip", [-1, -6, 2, 3, 11, 12, 2**31, 2**62])
def test_a_skip_that_leads_elsewhere_is_refused(skip: int) -> None:
    # given one body behind a line of one byte, when another length is told
    data = b"\n\0\0\0\1x....."
    with pytest.raises(ValueError, match=r"end early|no room"):
        put_framed(bytearray(200), 0, data, 0, 1, TIME, IDS, skip)
