"""NSQ V1 as nsqd speaks it, against the parser of nsqlookupd."""

from __future__ import annotations

import json

import pytest

from penstock.protocol.registering import LARGEST_ANSWER, PING, Answers, greeting, register, unregister
from penstock.protocol.v1 import Ping, Register, Unregister, answer
from tests.unit.protocol.test_v1 import SAID, commands


def test_what_is_said_is_understood() -> None:
    sent = greeting(json.dumps(SAID).encode()) + register("t") + register("t", "c") + unregister("t") + PING
    identity, *others = commands(sent + unregister("t", "c#ephemeral"))
    assert identity._asdict() == SAID
    assert others == [
        Register("t", ""), Register("t", "c"), Unregister("t", ""), Ping(), Unregister("t", "c#ephemeral"),
    ]  # fmt: skip


def test_answers_are_found_wherever_they_are_cut() -> None:
    told = [b"OK", b"", b"E_INVALID x"]
    stream = b"".join(map(answer, told))
    for size in range(1, len(stream) + 1):
        answers, found = Answers(), []
        for at in range(0, len(stream), size):
            answers.feed(stream[at : at + size])
            while (one := answers.next()) is not None:
                found.append(one)
        assert found == told


@pytest.mark.parametrize("size", [LARGEST_ANSWER + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1])
def test_an_answer_of_an_impossible_size_is_none(size: int) -> None:
    answers = Answers()
    answers.feed(size.to_bytes(4, "big"))
    with pytest.raises(ValueError, match=r"^an answer of -?\d+ bytes$"):
        answers.next()


def test_the_bytes_are_nsq_s() -> None:
    assert register("t", "c") == b"REGISTER t c\n"
    assert unregister("t") == b"UNREGISTER t\n"
    assert greeting(b"{}") == b"  V1IDENTIFY\n\0\0\0\2{}"
