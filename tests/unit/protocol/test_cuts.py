"""The same conversation is heard the same, however its bytes are cut and whichever build hears it."""

from __future__ import annotations

import struct
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.protocol.commands import Opening
from penstock.protocol.v2 import State
from tests.unit.protocol.conversation import ID, V2, byte_by_byte, greeted, hear, mpub, plain, pub, sized

SIZE = struct.Struct(">I")
PLAIN = plain("penstock.protocol.parser").Parser

NAMES = st.sampled_from(["t", "u", "topic.with-a_name", "t#ephemeral"])
BODIES = st.binary(min_size=1, max_size=100)
LINES = [
    b"NOP\n",
    b"RDY 5\n",
    b"RDY\r\n",
    b"FIN %s\n" % ID,
    b"FIN %s\n" % ID[::-1],
    b"FIN %s\r\n" % ID,
    b"FIN xyxyxyxyxyxyxyxy\n",
    b"TOUCH %s\n" % ID,
    b"REQ %s 100\n" % ID,
]
SAID = st.lists(
    st.one_of(
        st.sampled_from(LINES),
        st.builds(pub, NAMES, BODIES),
        st.builds(lambda times, topic, body: pub(topic, body) * times, st.integers(2, 5), NAMES, BODIES),
        st.builds(mpub, NAMES, st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=4)),
        st.builds(lambda topic, body: b"DPUB " + topic.encode() + b" 5\n" + sized(body), NAMES, BODIES),
    ),
    max_size=20,
).map(b"".join)
WRONG = st.one_of(
    st.just(b""),
    st.sampled_from([b"what\n", b"FIN x\n", b"PUB $\n", b"CLS\nSUB t c\n"]),
    st.builds(
        lambda line, size: line + SIZE.pack(size),
        st.sampled_from(
            [b"PUB t\n", b"DPUB t 1\n", b"MPUB t\n", b"MPUB t\n\0\0\1\0", b"MPUB t\n\0\0\1\0\0\0\0\2\0\0\0\1x"]
        ),
        st.sampled_from([0, 1, 100, 101, 300, 301, 2**31 - 1, 2**31, 2**32 - 1]),
    ),
    st.binary(max_size=40),
)


@given(SAID, WRONG, st.lists(st.integers(0, 10_000), max_size=30), st.sampled_from([64, 128, 500, 1 << 16]))
@example(pub("t", b"m" * 99), b"", [], 64)
def test_a_conversation_is_heard_the_same_however_it_is_cut(
    said: bytes, wrong: bytes, places: list[int], shared: int
) -> None:
    # given a conversation that may end in something wrong
    whole = V2 + b"SUB t c\n" + said + wrong
    expected = hear([whole])
    # when it is cut anywhere, or everywhere, and the shared buffer is small, then it is heard the same
    cuts = [0, *sorted(place % (len(whole) + 1) for place in places), len(whole)]
    assert hear([whole[start:stop] for start, stop in pairwise(cuts)], shared=shared) == expected
    assert hear(byte_by_byte(whole), shared=shared) == expected


HOSTILE = st.lists(
    st.one_of(
        st.sampled_from(LINES),
        st.sampled_from([b"PUB t", b"MPUB t", b"SUB t c", b"FIN ", b"\n", b"\r", b" ", b"\0\0\0\1", b"\0\0\0"]),
        st.sampled_from([0, 1, 2, 100, 101, 300, 2**31 - 1, 2**31, 2**32 - 1]).map(SIZE.pack),
        st.binary(max_size=20),
    ),
    max_size=12,
).map(b"".join)


@settings(max_examples=300)
@given(HOSTILE, st.sampled_from(list(State)), st.booleans())
def test_both_builds_hear_the_same_in_anything(said: bytes, state: State, cut: bool) -> None:
    pieces = byte_by_byte(V2 + said) if cut else [V2 + said]
    assert hear(pieces, state=state) == hear(pieces, state=state, parser=PLAIN)


@given(SAID, st.integers(0, 10_000))
def test_how_many_bytes_a_command_seems_to_take_leads_to_a_whole_one(said: bytes, place: int) -> None:
    # given a conversation of which a part is here, heard as far as it goes
    parser = greeted(State.SUBSCRIBED)
    data = bytearray(said)
    at, end = 0, place % (len(data) + 1)
    while parser.next(data, at, end) is not None:
        at = parser.at
    at = parser.at
    # when as much more comes as is said to be needed, again and again
    rounds = 0
    command = None
    while command is None and at < end < len(data):
        assert parser.needed > end - at
        end = min(at + parser.needed, len(data))
        while isinstance(command := parser.next(data, at, end), Opening):
            pass
        at = parser.at  # behind what has no effect
        rounds += 1
    # then the command is whole after its line (a byte more at a time), its size, its count and its body
    assert rounds <= 40
