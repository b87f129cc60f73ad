"""What a client is told that does something wrong: nsqd's words, in nsqd's order, as soon as it can be known."""

from __future__ import annotations

import struct

import pytest

from penstock.errors import ClientError
from penstock.protocol.parser import LONGEST_LINE
from penstock.protocol.v2 import State
from tests.unit.protocol.conversation import (
    ID,
    NUMBER,
    V2,
    Ears,
    byte_by_byte,
    hear,
    mpub,
    pub,
    sized,
)

LONG = b"a" * 65

BY_STATE: dict[State, list[tuple[bytes, bytes]]] = {
    State.INIT: [
        (b"RDY x\n", b"E_INVALID cannot RDY in current state"),
        (b"FIN\n", b"E_INVALID cannot FIN in current state"),
        (b"FIN " + ID + b"\n", b"E_INVALID cannot FIN in current state"),
        (b"REQ\n", b"E_INVALID cannot REQ in current state"),
        (b"TOUCH\n", b"E_INVALID cannot TOUCH in current state"),
        (b"CLS\n", b"E_INVALID cannot CLS in current state"),
        # words
        (b"\n", b"E_INVALID invalid command "),
        (b"\r\n", b"E_INVALID invalid command "),
        (b" PUB t\n", b"E_INVALID invalid command "),
        (b"pub t\n", b"E_INVALID invalid command pub"),
        (b"PUB\tt\n", b"E_INVALID invalid command PUB\tt"),
        (b"\xff\r\r\n", b"E_INVALID invalid command \xff\r"),
        (b"PING\n", b"E_INVALID invalid command PING"),
        # how many parameters
        (b"SUB\n", b"E_INVALID SUB insufficient number of parameters"),
        (b"SUB $\n", b"E_INVALID SUB insufficient number of parameters"),
        (b"PUB\n", b"E_INVALID PUB insufficient number of parameters"),
        (b"MPUB\n", b"E_INVALID MPUB insufficient number of parameters"),
        (b"DPUB\n", b"E_INVALID DPUB insufficient number of parameters"),
        (b"DPUB $\n", b"E_INVALID DPUB insufficient number of parameters"),
        (b"AUTH x\n", b"E_INVALID AUTH invalid number of parameters"),
        # delays
        (b"DPUB t -1\n", b"E_INVALID DPUB could not parse timeout -1"),
        (b"DPUB t \xff\n", b"E_INVALID DPUB could not parse timeout \xff"),
        (b"DPUB t 3600001\n", b"E_INVALID DPUB timeout 3600001 out of range 0-3600000"),
        (b"DPUB t 9223372036855\n", b"E_INVALID DPUB timeout 9223372036855 out of range 0-3600000"),
        # names
        (b"PUB t#x\n", b'E_BAD_TOPIC PUB topic name "t#x" is not valid'),
        (b"PUB \n", b'E_BAD_TOPIC PUB topic name "" is not valid'),
        (b"PUB " + LONG + b"\n", b'E_BAD_TOPIC PUB topic name "' + LONG + b'" is not valid'),
        (b'DPUB t"\xff\\ x\n', b'E_BAD_TOPIC DPUB topic name "t\\"\\xff\\\\" is not valid'),
        (b"MPUB $\n", b'E_BAD_TOPIC E_BAD_TOPIC MPUB topic name "$" is not valid'),
        (b"SUB \xc3\xa9 $\n", 'E_BAD_TOPIC SUB topic name "é" is not valid'.encode()),
        (b"SUB t \0\n", b'E_BAD_CHANNEL SUB channel name "\\x00" is not valid'),
    ],
    State.SUBSCRIBED: [
        (b"SUB t\n", b"E_INVALID cannot SUB in current state"),
        (b"IDENTIFY\n", b"E_INVALID cannot IDENTIFY in current state"),
        (b"AUTH x\n", b"E_INVALID cannot AUTH in current state"),
        (b"FIN\n", b"E_INVALID FIN insufficient number of params"),
        (b"REQ\n", b"E_INVALID REQ insufficient number of params"),
        (b"REQ x\n", b"E_INVALID REQ insufficient number of params"),
        (b"TOUCH\n", b"E_INVALID TOUCH insufficient number of params"),
        # ids
        (b"FIN \n", b"E_INVALID invalid message ID"),
        (b"FIN  " + ID + b"\n", b"E_INVALID invalid message ID"),
        (b"FIN " + ID[1:] + b"\n", b"E_INVALID invalid message ID"),
        (b"FIN " + ID[1:] + b"\r\n", b"E_INVALID invalid message ID"),
        (b"FIN x" + ID + b"\n", b"E_INVALID invalid message ID"),
        (b"REQ x x\n", b"E_INVALID invalid message ID"),
        (b"REQ x" + ID + b" 1\n", b"E_INVALID invalid message ID"),
        (b"TOUCH  " + ID + b"\n", b"E_INVALID invalid message ID"),
        (b"TOUCH " + ID + b"\r\r\n", b"E_INVALID invalid message ID"),
        # numbers
        (b"RDY -1\n", b"E_INVALID RDY could not parse count -1"),
        (b"RDY 1.0\n", b"E_INVALID RDY could not parse count 1.0"),
        (b"RDY 1234567890123456789x\n", b"E_INVALID RDY could not parse count 1234567890123456789x"),
        (b"RDY \xb2\n", b"E_INVALID RDY could not parse count \xb2"),
        (b"RDY 2501\n", b"E_INVALID RDY count 2501 out of range 0-2500"),
        (b"RDY 9223372036854775807\n", b"E_INVALID RDY count 9223372036854775807 out of range 0-2500"),
        (b"RDY 18446744073709551615\n", b"E_INVALID RDY count -1 out of range 0-2500"),
        (b"REQ " + ID + b" -1\n", b"E_INVALID REQ could not parse timeout -1"),
    ],
    State.CLOSING: [
        (b"SUB t c\n", b"E_INVALID cannot SUB in current state"),
        (b"IDENTIFY\n", b"E_INVALID cannot IDENTIFY in current state"),
        (b"AUTH\n", b"E_INVALID cannot AUTH in current state"),
        (b"CLS\n", b"E_INVALID cannot CLS in current state"),
        (b"FIN x\n", b"E_INVALID invalid message ID"),
    ],
}

# A size that lies, behind a line: as it is read, and what is told. Limits are 100 for a message and 300 for a body.
NEGATIVE = [(0, b"0"), (2**31, b"-2147483648"), (2**32 - 1, b"-1")]
SIZES: list[tuple[bytes, int, bytes]] = [
    *(
        (line, size, text + shown)
        for line, text in [
            (b"PUB t\n", b"E_BAD_MESSAGE PUB invalid message body size "),
            (b"DPUB t 5\n", b"E_BAD_MESSAGE DPUB invalid message body size "),
            (b"MPUB t\n", b"E_BAD_BODY MPUB invalid body size "),
            (b"MPUB t\n\0\0\1\0", b"E_BAD_BODY MPUB invalid message count "),
            (b"MPUB t\n\0\0\0\1\0\0\0\3" + sized(b"good"), b"E_BAD_MESSAGE MPUB invalid message(1) body size "),
            (b"IDENTIFY\n", b"E_BAD_BODY IDENTIFY invalid body size "),
            (b"AUTH\n", b"E_BAD_BODY AUTH invalid body size "),
        ]
        for size, shown in NEGATIVE
    ),
    *(
        (line, size, b"%s %d > %d" % (text, size, most))
        for line, text, most in [
            (b"PUB t\n", b"E_BAD_MESSAGE PUB message too big", 100),
            (b"DPUB t 5\n", b"E_BAD_MESSAGE DPUB message too big", 100),
            (b"MPUB t\n\0\0\0\1\0\0\0\3", b"E_BAD_MESSAGE MPUB message too big", 100),
            (b"MPUB t\n", b"E_BAD_BODY MPUB body too big", 300),
            (b"IDENTIFY\n", b"E_BAD_BODY IDENTIFY body too big", 300),
            (b"AUTH\n", b"E_BAD_BODY AUTH body too big", 300),
        ]
        for size in [most + 1, 2**31 - 1]
    ),
    *((b"MPUB t\n\0\0\1\0", size, b"E_BAD_BODY MPUB invalid message count %d" % size) for size in [60, 2**31 - 1]),
]


def _is_told(state: State, said: bytes, error: bytes) -> None:
    # given a command that is wrong, behind a good one
    whole = V2 + pub("before", b"b") + said
    expected = [("PUB", "before", b"b"), ("error", error)]
    # when it comes at once, with more behind it, and byte by byte, then the client is told the same
    assert hear([whole], state=state) == expected
    assert hear([whole + b"more" * 100], state=state) == expected
    assert hear(byte_by_byte(whole), state=state) == expected
    # and nothing before its last byte is here
    assert hear([whole[:-1]], state=state) == expected[:1]


@pytest.mark.parametrize(
    ("state", "said", "error"),
    [
        pytest.param(state, said, error, id=f"{state.name}-{said[:40]!r}")
        for state, errors in BY_STATE.items()
        for said, error in errors
    ],
)
def test_a_line_that_is_wrong_is_told_in_nsqs_words(state: State, said: bytes, error: bytes) -> None:
    _is_told(state, said, error)


@pytest.mark.parametrize(
    ("line", "size", "error"), [pytest.param(*case, id=f"{case[0]!r}-{case[1]}") for case in SIZES]
)
def test_a_size_that_lies_is_told_before_what_it_speaks_of(line: bytes, size: int, error: bytes) -> None:
    _is_told(State.INIT, line + struct.pack(">I", size), error)


def test_an_mpub_of_more_than_a_body_may_be_is_refused_although_its_size_says_less() -> None:
    # given a client that announces little and sends much, when its third message would go beyond the limit
    said = V2 + b"MPUB t\n" + struct.pack(">II", 10, 3) + sized(b"x" * 100) * 2 + struct.pack(">I", 85)
    # then it is refused before that message: 4 + 2 * 104 + 4 + 85 are 301 bytes
    assert hear([said]) == [("error", b"E_BAD_BODY MPUB body too big 301 > 300")]
    assert hear(byte_by_byte(said)) == [("error", b"E_BAD_BODY MPUB body too big 301 > 300")]
    # and one byte less would be heard
    assert hear([said[:-1] + b"\x54" + b"x" * 84]) == [("MPUB", "t", [b"x" * 100, b"x" * 100, b"x" * 84])]


@pytest.mark.parametrize("magic", [b"  V1", b"\0\0\0\0", b"GET ", b" V2 ", b"  v2"], ids=repr)
def test_another_protocol_is_none(magic: bytes) -> None:
    assert hear([magic]) == [("error", b"E_BAD_PROTOCOL")]
    assert hear([magic[:3]]) == []


def test_a_line_longer_than_nsqds_buffer_is_answered_with_nothing() -> None:
    # given a line that is a byte too long, when it comes with its newline or without
    longer = b"NOP " + b"x" * (LONGEST_LINE - 4) + b"\n"
    for said in [longer, longer[:-1]]:
        # then the client is dropped
        assert hear([V2 + pub("t", b"m") + said]) == [("PUB", "t", b"m"), ("dropped",)]


# --- the order of the checks, where several fail


def test_without_heartbeats_there_is_no_sub_whatever_else_is_wrong_with_it() -> None:
    ears = Ears()
    ears.receive(V2)
    ears.parser.heartbeats = False
    with pytest.raises(ClientError, match="cannot SUB with heartbeats disabled"):
        ears.receive(b"SUB $\n")


@pytest.mark.parametrize("said", [b"PUB t\n", b"FIN\n", b"NOP\n", b"what\n", b"AUTH\n", b"\n"], ids=repr)
def test_where_tls_is_required_nothing_goes_before_it_but_identify(said: bytes) -> None:
    # given a connection that is to begin with TLS
    ears = Ears()
    ears.parser.tls_required = True
    ears.receive(V2 + b"IDENTIFY\n" + sized(b"{}"))
    # when it goes on without, then it is told so
    with pytest.raises(ClientError) as error:
        ears.receive(said)
    command = said.strip().split(b" ")[0]
    assert error.value.answer == b"E_INVALID cannot " + command + b" in current state (TLS required)"
    assert ears.heard == [("IDENTIFY", b"{}")]


def test_after_sub_and_cls_other_commands_are_allowed() -> None:
    fin = b"FIN " + ID + b"\n"
    heard = hear([V2 + b"SUB t c\nRDY 5\n" + fin + b"CLS\n" + fin + b"RDY 7\n" + fin + b"SUB t c\n"])
    finished = ("FIN", ID.decode(), NUMBER)
    error = ("error", b"E_INVALID cannot SUB in current state")
    assert heard == [("SUB", "t", "c"), ("RDY", 5), finished, ("CLS",), finished, finished, error]


# --- a client that ends its stream inside a command

ENDS = [
    (b"", None),
    (b"NO", None),
    (b"PUB t", None),
    (b"PUB t\n\0\0\0", b"E_BAD_MESSAGE PUB failed to read message body size"),
    (b"PUB t\n\0\0\0\2x", b"E_BAD_MESSAGE PUB failed to read message body"),
    (pub("t", b"m") + b"PUB t\n", b"E_BAD_MESSAGE PUB failed to read message body size"),
    (pub("t", b"m"), None),
    (b"DPUB t 5\n", b"E_BAD_MESSAGE DPUB failed to read message body size"),
    (b"DPUB t 5\n\0\0\0\1", b"E_BAD_MESSAGE DPUB failed to read message body"),
    (b"MPUB t\n\0\0\0", b"E_BAD_BODY MPUB failed to read body size"),
    (b"MPUB t\n\0\0\0\1\0\0\0", b"E_BAD_BODY MPUB failed to read message count"),
    (b"MPUB t\n\0\0\0\1\0\0\0\2", b"E_BAD_MESSAGE MPUB failed to read message(0) body size"),
    (b"MPUB t\n\0\0\0\1\0\0\0\2\0\0\0\2x", b"E_BAD_MESSAGE MPUB failed to read message body"),
    (b"MPUB t\n\0\0\0\1\0\0\0\2\0\0\0\1x\0\0\0", b"E_BAD_MESSAGE MPUB failed to read message(1) body size"),
    (mpub("t", [b"m"]) + b"MPUB t\n", b"E_BAD_BODY MPUB failed to read body size"),
    (mpub("t", [b"m"]), None),
    (b"IDENTIFY\n\0\0\0", b"E_BAD_BODY IDENTIFY failed to read body size"),
    (b"IDENTIFY\n\0\0\0\2{", b"E_BAD_BODY IDENTIFY failed to read body"),
    (b"AUTH\n", b"E_BAD_BODY AUTH failed to read body size"),
    (b"AUTH\n\0\0\0\2x", b"E_BAD_BODY AUTH failed to read body"),
]


@pytest.mark.parametrize(("said", "answer"), ENDS, ids=[repr(said) for said, _ in ENDS])
def test_the_end_of_a_stream_inside_a_body_is_an_error(said: bytes, answer: bytes | None) -> None:
    # given a connection that was heard, whole or byte by byte
    for pieces in [[V2 + said], byte_by_byte(V2 + said)]:
        ears = Ears()
        for piece in pieces:
            ears.receive(piece)
        kept = len(ears.inbox.data) - len(memoryview(ears.inbox.room()))
        # when nothing more comes
        error = ears.parser.cut_off(kept)
        # then it is told what is missing
        assert (error and error.answer) == answer
