"""What an nsqd sends becomes messages and answers, however it is cut, and hostile sizes end it."""

from __future__ import annotations

import pytest

from penstock.client.frames import ANSWER, ERROR, Frames
from penstock.client.message import Message
from penstock.errors import HandshakeFailed
from tests.unit.client.builders import HEARTBEAT, OK, delivery, frame, id_of, refusal

STREAM = (
    OK
    + delivery(1, b"one", timestamp=2**63 + 5)
    + HEARTBEAT
    + delivery(2, b"", attempts=65_535)
    + refusal(b"E_FIN_FAILED x")
    + delivery(3, b"x" * 300)
)


def assert_is_the_stream(frames: Frames) -> None:
    found = [(each.id, each.body, each.attempts, each.timestamp) for each in frames.messages]
    assert found == [
        (id_of(1), b"one", 1, 2**63 + 5),
        (id_of(2), b"", 65_535, 0),
        (id_of(3), b"x" * 300, 1, 0),
    ]
    assert frames.answers == [(ANSWER, b"OK"), (ERROR, b"E_FIN_FAILED x")]
    assert frames.heartbeats == 1


def test_frames_are_sorted_into_messages_and_answers() -> None:
    frames = Frames(Message)
    frames.feed(STREAM)
    assert_is_the_stream(frames)


def test_a_cut_anywhere_changes_nothing() -> None:
    for cut in range(len(STREAM) + 1):
        frames = Frames(Message)
        frames.feed(STREAM[:cut])
        frames.feed(STREAM[cut:])
        assert_is_the_stream(frames)


def test_bytes_that_come_one_by_one_change_nothing() -> None:
    frames = Frames(Message)
    for place in range(len(STREAM)):
        frames.feed(STREAM[place : place + 1])
    assert_is_the_stream(frames)


def test_a_message_knows_when_it_came_and_who_holds_it() -> None:
    holder = object()
    frames = Frames(Message, holder)
    frames.feed(delivery(1), 12.5)
    (message,) = frames.messages
    assert isinstance(message, Message)
    assert (message.delivered, message.touched, message.holder, message.answered) == (12.5, 12.5, holder, False)


@pytest.mark.parametrize("size", [0, 1, 3, 2**30 + 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_what_no_nsqd_would_send_is_refused(size: int) -> None:
    with pytest.raises(HandshakeFailed, match=f"a frame of {size} bytes"):
        Frames().feed(size.to_bytes(4, "big") + bytes(20))


def test_a_message_too_short_for_an_id_is_an_answer_of_its_kind() -> None:
    frames = Frames()
    frames.feed(frame(2, b"short"))
    assert (frames.messages, frames.answers) == ([], [(2, b"short")])
