"""What an nsqd says to nsqlookupd, command by command, cut anywhere; and what it is told where that is wrong."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from penstock.errors import ClientError, LineTooLong
from penstock.protocol.v1 import LARGEST_BODY, LONGEST_LINE, Identify, Parser, Ping, Register, Unregister, answer

SAID = {
    "hostname": "h", "broadcast_address": "b", "tcp_port": 4150, "http_port": 4151, "version": "1.3.0",
    "topology_zone": "z", "topology_region": "r",
}  # fmt: skip


def identify(**other: Any) -> bytes:
    return identified(json.dumps({key: value for key, value in {**SAID, **other}.items() if value is not None}))


def identified(body: str) -> bytes:
    return b"IDENTIFY\n" + struct.pack(">i", len(body)) + body.encode()


def commands(*pieces: bytes) -> list[Any]:
    """All that the pieces hold, one after the other."""
    parser, found = Parser(), []
    for piece in pieces:
        parser.feed(piece)
        while (command := parser.next()) is not None:
            found.append(command)
    return found


ALL = b"  V1" + b"PING\n" + identify() + b"REGISTER t\nREGISTER t c#ephemeral\nUNREGISTER t c\r\n  PING  x\n"
FOUND = [
    Ping(), Identify("h", "b", 4150, 4151, "1.3.0", "z", "r"), Register("t", ""), Register("t", "c#ephemeral"),
    Unregister("t", "c"), Ping(),
]  # fmt: skip


def test_commands_are_found_wherever_they_are_cut() -> None:
    assert commands(ALL) == FOUND
    assert commands(*(ALL[at : at + 1] for at in range(len(ALL)))) == FOUND
    for at in range(len(ALL)):
        assert commands(ALL[:at], ALL[at:]) == FOUND


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"TCP_PORT":1,"Http_Port":2,"VERSION":"v","broadcast_address":"b","more":{"a":[1]}}', (1, 2)),
        ('{"tcp_port":1,"tcp_port":3,"http_port":-2,"version":"v","broadcast_address":"b","hostname":null}', (3, -2)),
    ],
    ids=["keys in any case", "the last counts"],
)
def test_what_an_nsqd_says_of_itself_is_read_as_go_reads_it(body: str, expected: tuple[int, int]) -> None:
    (found,) = commands(b"  V1" + identified(body))
    assert (found.tcp_port, found.http_port) == expected
    assert found.hostname == ""


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"\n", b"E_INVALID invalid command "),
        (b"ping\n", b"E_INVALID invalid command ping"),
        (b"F\xff\xe9 x\n", b"E_INVALID invalid command F\xff\xe9"),
        (b"REGISTER t\n", b"E_INVALID client must IDENTIFY"),
        (b"UNREGISTER\n", b"E_INVALID client must IDENTIFY"),
        (identify() + b"IDENTIFY\n", b"E_INVALID cannot IDENTIFY again"),
        (identify() + b"REGISTER\n", b"E_INVALID REGISTER insufficient number of params"),
        (identify() + b"UNREGISTER \n", b"E_INVALID UNREGISTER insufficient number of params"),
        (identify() + b"REGISTER  t\n", b"E_BAD_TOPIC REGISTER topic name '' is not valid"),
        (identify() + b"REGISTER t! c\n", b"E_BAD_TOPIC REGISTER topic name 't!' is not valid"),
        (identify() + b"UNREGISTER t c!\n", b"E_BAD_CHANNEL UNREGISTER channel name 'c!' is not valid"),
        (b"IDENTIFY\n\xff\xff\xff\xff", b"E_BAD_BODY IDENTIFY invalid body size -1"),
        (b"IDENTIFY\n\x80\0\0\0", b"E_BAD_BODY IDENTIFY invalid body size -2147483648"),
        (b"IDENTIFY\n\x7f\xff\xff\xff", b"E_BAD_BODY IDENTIFY invalid body size 2147483647"),
        (b"IDENTIFY\n" + struct.pack(">i", LARGEST_BODY + 1), b"E_BAD_BODY IDENTIFY invalid body size 1048577"),
        (b"IDENTIFY\n\0\0\0\0", b"E_BAD_BODY IDENTIFY failed to decode JSON body"),
        (identified("[]"), b"E_BAD_BODY IDENTIFY failed to decode JSON body"),
        (identified("null"), b"E_BAD_BODY IDENTIFY missing fields"),
        (identify(tcp_port="4150"), b"E_BAD_BODY IDENTIFY failed to decode JSON body"),
        (identify(tcp_port=4150.5), b"E_BAD_BODY IDENTIFY failed to decode JSON body"),
        (identify(remote_address=1), b"E_BAD_BODY IDENTIFY failed to decode JSON body"),
        (identify(tcp_port=0), b"E_BAD_BODY IDENTIFY missing fields"),
        (identify(http_port=None), b"E_BAD_BODY IDENTIFY missing fields"),
        (identify(version=None), b"E_BAD_BODY IDENTIFY missing fields"),
        (identify(broadcast_address=""), b"E_BAD_BODY IDENTIFY missing fields"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_nsq_s_words(sent: bytes, told: bytes) -> None:
    with pytest.raises(ClientError) as refusal:
        commands(b"  V1" + sent)
    assert refusal.value.answer == told


def test_other_first_bytes_are_another_protocol() -> None:
    with pytest.raises(ClientError) as refusal:
        commands(b"  V2")
    assert refusal.value.answer == b"E_BAD_PROTOCOL"


@pytest.mark.parametrize("sent", [b"a" * LONGEST_LINE, b"a" * LONGEST_LINE + b"\n"])
def test_a_line_without_an_end_is_given_up(sent: bytes) -> None:
    assert commands(b"  V1" + sent[: LONGEST_LINE - 1]) == []
    with pytest.raises(LineTooLong):
        commands(b"  V1" + sent)


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"", None),
        (b"PING", None),
        (b"IDENTIFY\n", b"E_BAD_BODY IDENTIFY failed to read body size"),
        (b"IDENTIFY\n\0\0\0", b"E_BAD_BODY IDENTIFY failed to read body size"),
        (b"IDENTIFY\n\0\0\0\5ab", b"E_BAD_BODY IDENTIFY failed to read body"),
        (identify(), None),
    ],
)
def test_who_ends_in_the_middle_of_an_identify_is_told_so(sent: bytes, told: bytes | None) -> None:
    parser = Parser()
    parser.feed(b"  V1" + sent)
    while parser.next() is not None:
        pass
    error = parser.cut_off()
    assert (error.answer if error else None) == told


def test_an_answer_stands_behind_its_size() -> None:
    assert answer(b"OK") == b"\0\0\0\2OK"
