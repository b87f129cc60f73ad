"""Every command of NSQ V2, the runs of hot ones, and the MPUB that is announced."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ClientError
from penstock.protocol.commands import Fins, Mpub, Opening, Pubs
from penstock.protocol.ids import NO_ID
from penstock.protocol.parser import LONGEST_LINE, Limits, Parser
from penstock.protocol.v2 import State
from tests.unit.protocol.conversation import (
    ID,
    NUMBER,
    V2,
    Ears,
    bodies_of,
    byte_by_byte,
    greeted,
    hear,
    mpub,
    pub,
    sized,
)

MS = 1_000_000
HOUR = 3_600_000 * MS
TEXT = ID.decode()

COMMANDS: dict[State, list[tuple[bytes, tuple[Any, ...]]]] = {
    State.INIT: [
        (b"IDENTIFY\n" + sized(b"{}"), ("IDENTIFY", b"{}")),
        (b"IDENTIFY x y\n" + sized(b"{}"), ("IDENTIFY", b"{}")),
        (b"IDENTIFY\n" + sized(b"x" * 300), ("IDENTIFY", b"x" * 300)),
        (b"AUTH\n" + sized(b"secret"), ("AUTH", b"secret")),
        (b"SUB t c\n", ("SUB", "t", "c")),
        (b"SUB t#ephemeral c#ephemeral x\n", ("SUB", "t#ephemeral", "c#ephemeral")),
        (b"SUB .. nsqd.dat\r\n", ("SUB", "..", "nsqd.dat")),
        (b"PUB t\n" + sized(b"m"), ("PUB", "t", b"m")),
        (b"PUB t\r\n" + sized(b"m"), ("PUB", "t", b"m")),
        (b"PUB t x  y\n" + sized(b"m"), ("PUB", "t", b"m")),
        (b"PUB t\n" + sized(b"m" * 100), ("PUB", "t", b"m" * 100)),
        (mpub("t", [b"a", b"bc"]), ("MPUB", "t", [b"a", b"bc"])),
        (mpub("t", [b"x" * 100] * 2), ("MPUB", "t", [b"x" * 100] * 2)),
        (mpub("t", [b"x"] * 59), ("MPUB", "t", [b"x"] * 59)),
        (b"DPUB t 0\n" + sized(b"m"), ("DPUB", "t", 0, b"m")),
        (b"DPUB t 3600000 x\n" + sized(b"m"), ("DPUB", "t", HOUR, b"m")),
    ],
    State.SUBSCRIBED: [
        (b"RDY 0\n", ("RDY", 0)),
        (b"RDY 2500 x\n", ("RDY", 2500)),
        (b"RDY\n", ("RDY", 1)),
        (b"RDY \n", ("RDY", 0)),
        (b"RDY 00000000000000000000000007\n", ("RDY", 7)),
        (b"RDY 18446744073709551617\n", ("RDY", 1)),
        (b"FIN " + ID + b"\n", ("FIN", TEXT, NUMBER)),
        (b"FIN " + ID + b"\r\n", ("FIN", TEXT, NUMBER)),
        (b"FIN " + ID + b" x\n", ("FIN", TEXT, NUMBER)),
        (b"FIN ABCDEF0123456789\n", ("FIN", "ABCDEF0123456789", NO_ID)),
        (b"FIN " + b"\xff" * 16 + b"\n", ("FIN", "\udcff" * 16, NO_ID)),
        (b"FIN " + b"f" * 16 + b"\n", ("FIN", "f" * 16, NO_ID)),
        (b"FIN " + b"0" * 16 + b"\n", ("FIN", "0" * 16, 0)),
        (b"REQ " + ID + b" 0\n", ("REQ", NUMBER, TEXT, 0)),
        (b"REQ " + ID + b" 1 x\n", ("REQ", NUMBER, TEXT, MS)),
        (b"REQ " + ID + b" 3600001\n", ("REQ", NUMBER, TEXT, HOUR)),
        (b"REQ " + ID + b" \n", ("REQ", NUMBER, TEXT, 0)),
        (b"REQ " + ID + b" 9223372036855\n", ("REQ", NUMBER, TEXT, 0)),
        (b"TOUCH " + ID + b"\n", ("TOUCH", NUMBER, TEXT)),
        (b"CLS x\n", ("CLS",)),
    ],
    State.CLOSING: [
        (b"PUB t\n" + sized(b"\n"), ("PUB", "t", b"\n")),
        (b"FIN " + ID + b"\n", ("FIN", TEXT, NUMBER)),
        (b"REQ " + b"g" * 16 + b" 5\n", ("REQ", NO_ID, "g" * 16, 5 * MS)),
        (b"TOUCH " + b"/" * 16 + b" x\n", ("TOUCH", NO_ID, "/" * 16)),
    ],
}
WITHOUT_EFFECT = [
    (State.INIT, b"NOP\n"),
    (State.SUBSCRIBED, b"NOP x\r\n"),
    (State.CLOSING, b"RDY 5\n"),
    (State.CLOSING, b"RDY x\n"),
]


@pytest.mark.parametrize(
    ("state", "said", "command"),
    [
        pytest.param(state, said, command, id=f"{state.name}-{said[:40]!r}-{len(said)}")
        for state, commands in COMMANDS.items()
        for said, command in commands
    ],
)
def test_a_command_is_heard_whole_and_byte_by_byte(state: State, said: bytes, command: tuple[Any, ...]) -> None:
    # given a command with others around it
    whole = V2 + pub("before", b"b") + said + b"NOP\n" + pub("behind", b"b")
    expected = [("PUB", "before", b"b"), command, ("PUB", "behind", b"b")]
    # when it comes at once, and byte by byte, then it is heard the same
    assert hear([whole], state=state) == expected
    assert hear(byte_by_byte(whole), state=state) == expected


@pytest.mark.parametrize(("state", "said"), WITHOUT_EFFECT, ids=repr)
def test_what_has_no_effect_is_passed_over(state: State, said: bytes) -> None:
    # given a connection that hears such a command, then it hears nothing and keeps nothing
    ears = Ears(state=state)
    ears.receive(V2 + said)
    assert ears.heard == []
    assert ears.inbox.room() is ears.inbox.data


def test_the_largest_line_that_nsqd_reads_is_read() -> None:
    line = b"NOP " + b"x" * (LONGEST_LINE - 5) + b"\n"
    assert hear([V2 + line + pub("t", b"m")]) == [("PUB", "t", b"m")]
    assert hear([V2 + line[:-1]]) == []


@pytest.mark.parametrize("announced", [1, 14, 300])
def test_an_mpubs_count_tells_where_it_ends_and_not_its_size(announced: int) -> None:
    # given an MPUB whose size is too small, right, and too large, when it is heard
    said = V2 + b"MPUB t\n" + announced.to_bytes(4, "big") + b"\0\0\0\2" + sized(b"a") + sized(b"b") + pub("t", b"c")
    # then its messages are those that it counts
    assert hear([said]) == [("MPUB", "t", [b"a", b"b"]), ("PUB", "t", b"c")]
    assert hear(byte_by_byte(said)) == [("MPUB", "t", [b"a", b"b"]), ("PUB", "t", b"c")]


# --- runs


def test_fins_that_lie_one_behind_the_other_come_as_one() -> None:
    # given a thousand FINs and something else
    ids = [NUMBER * number % 2**63 for number in range(1000)]
    said = bytearray(b"".join(b"FIN %016x\n" % id_ for id_ in ids) + b"RDY 5\n")
    parser = greeted(State.SUBSCRIBED)
    # when they come at once
    command = parser.next(said, 0, len(said))
    # then they are one command
    assert isinstance(command, Fins)
    assert command.ids.tolist() == ids
    assert parser.at == 21_000


def test_a_run_of_fins_ends_before_an_id_that_is_no_number() -> None:
    parser = greeted(State.SUBSCRIBED)
    said = bytearray(b"FIN %s\nFIN %s\nFIN %s\nFIN %s\n" % (ID, ID, b"x" * 16, ID))
    at, found = 0, []
    while (command := parser.next(said, at, len(said))) is not None:
        at = parser.at
        assert isinstance(command, Fins)
        found.append((command.ids.tolist(), command.raw))
    assert found == [([NUMBER, NUMBER], b""), ([NO_ID], b"x" * 16), ([NUMBER], b"")]


@pytest.mark.parametrize("place", range(16))
@pytest.mark.parametrize("digit", [0, *b"/:@AFG`g", 0x80, 0xB0, 0xFF])
def test_an_id_is_a_number_only_when_each_digit_is_one(place: int, digit: int) -> None:
    # given an id of which one byte is next to those that are digits
    said = bytearray(b"FIN " + ID + b"\n")
    said[4 + place] = digit
    # when it is finished
    command = greeted(State.SUBSCRIBED).next(said, 0, len(said))
    # then it is nobody's, and can be told as it was
    assert isinstance(command, Fins)
    assert command.ids.tolist() == [NO_ID]
    assert command.raw == bytes(said[4:20])


@given(st.integers(0, 2**64 - 1))
def test_every_number_is_read_from_its_digits(number: int) -> None:
    said = bytearray(b"FIN %016x\n" % number)
    command = greeted(State.SUBSCRIBED).next(said, 0, len(said))
    assert isinstance(command, Fins)
    assert command.ids.tolist() == [number]
    assert command.text(0) == f"{number:016x}"


def test_pubs_to_one_topic_come_as_one_and_others_end_them() -> None:
    # given publishes to two topics, the last one not whole
    bodies = [b"x" * (1 + number % 100) for number in range(200)]
    said = bytearray(b"".join(pub("a", body) for body in bodies) + pub("b", b"1") + pub("a", b"2") + b"PUB a\n\0\0\0\1")
    parser = greeted()
    # when they are read
    at, found = 0, []
    while (command := parser.next(said, at, len(said))) is not None:
        at = parser.at
        assert isinstance(command, Pubs)
        found.append((command.topic, bodies_of(command)))
    # then each run is one command, in order
    assert found == [("a", bodies), ("b", [b"1"]), ("a", [b"2"])]
    assert (parser.at, parser.needed) == (len(said) - 10, 11)


def test_a_run_of_pubs_ends_before_one_that_is_wrong() -> None:
    parser = greeted()
    said = bytearray(pub("t", b"1") * 2 + b"PUB t\n\0\0\0\0")
    assert isinstance(parser.next(said, 0, len(said)), Pubs)
    with pytest.raises(ClientError, match="invalid message body size 0"):
        parser.next(said, parser.at, len(said))


# --- an MPUB is announced


def test_a_whole_mpub_comes_without_announcement() -> None:
    parser = greeted()
    said = bytearray(mpub("t", [b"a", b"b"]))
    for _ in range(2):
        command = parser.next(said, 0, len(said))
        assert isinstance(command, Mpub)
        assert bodies_of(command) == [b"a", b"b"]


def test_an_mpub_that_is_not_whole_is_announced_once() -> None:
    # given an MPUB that comes byte by byte, and the next one
    parser = greeted()
    said = bytearray(mpub("t", [b"a", b"b"]) + mpub("t", [b"c"]))
    line, first = said.index(b"\n") + 1, len(mpub("t", [b"a", b"b"]))
    at, found = 0, []
    # when the parser is asked until it has no more, after each byte
    for end in range(len(said) + 1):
        while (command := parser.next(said, at, end)) is not None:
            at = parser.at
            found.append((end, type(command)))
    # then each is announced when its line is here, and comes when it is whole
    assert found == [(line, Opening), (first, Mpub), (first + line, Opening), (len(said), Mpub)]


def test_a_bad_mpub_is_announced_before_its_error() -> None:
    parser = greeted()
    said = bytearray(b"MPUB t\n\0\0\0\0")
    assert parser.next(said, 0, len(said)) == ("t",)
    with pytest.raises(ClientError, match="invalid body size 0"):
        parser.next(said, 0, len(said))


def test_a_million_tiny_messages_are_one_mpub() -> None:
    # given the largest MPUB that NSQ takes by default, in reads of 64 KiB
    limits = Limits()
    count = (limits.max_body_size - 4) // 5
    said = bytearray(b"MPUB t\n" + sized(count.to_bytes(4, "big") + sized(b"x") * count))
    parser = Parser(limits)
    parser.next(bytearray(V2), 0, 4)
    assert isinstance(parser.next(said, 0, 1000), Opening)
    # when it is asked for after each read
    for end in range(1 << 16, len(said), 1 << 16):
        assert parser.next(said, 0, end) is None
        assert parser.needed == len(said)
    command = parser.next(said, 0, len(said))
    # then it is there in the end
    assert isinstance(command, Mpub)
    assert (command.count, command.stop) == (1_048_575, len(said))


@pytest.mark.parametrize(("at", "end"), [(-1, 1), (2, 1), (0, 5), (5, 5), (-1, -1), (0, 2**62)])
def test_the_parser_reads_nothing_outside_the_data(at: int, end: int) -> None:
    with pytest.raises(ValueError, match="not inside"):
        greeted().next(bytearray(4), at, end)
