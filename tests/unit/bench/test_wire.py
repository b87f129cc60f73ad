"""The load generator reads what a server sends: all of it, however it is cut."""

from __future__ import annotations

import pytest

from penstock.bench.wire import Frames, stamped
from penstock.errors import BenchFailed

OK = b"\0\0\0\x06\0\0\0\0OK"
HEARTBEAT = b"\0\0\0\x0f\0\0\0\0_heartbeat_"
ERROR = b"\0\0\0\x0d\0\0\0\x01E_INVALID"


def message(number: int, body: bytes, attempts: int = 1) -> bytes:
    inside = b"\0\0\0\x02" + bytes(8) + attempts.to_bytes(2, "big") + b"%016x" % number + body
    return len(inside).to_bytes(4, "big") + inside


STREAM = OK + message(1, b"a") + HEARTBEAT + message(2, b"", 2) + message(3, b"x" * 300, 257) + OK


def test_what_came_is_counted_and_each_message_gets_its_fin() -> None:
    # given frames of every kind behind bytes that are nobody's
    frames = Frames()
    # when they are scanned
    assert frames.scan(bytearray(b"??" + STREAM), 2, 2 + len(STREAM)) == 2 + len(STREAM)
    # then each is counted as what it is, and the FINs are those of the messages, in order
    assert (frames.answers, frames.heartbeats, frames.messages, frames.again) == (2, 1, 3, 2)
    assert frames.fins() == b"".join(b"FIN %016x\n" % number for number in (1, 2, 3))


def test_what_is_not_whole_waits_for_the_rest() -> None:
    for cut in range(len(STREAM) + 1):
        frames = Frames()
        # when the stream comes in two pieces
        at = frames.scan(bytearray(STREAM), 0, cut)
        first = frames.fins()
        assert at + frames.needed > cut
        assert frames.scan(bytearray(STREAM), at, len(STREAM)) == len(STREAM)
        # then nothing is counted twice and nothing is left out
        assert (frames.answers, frames.heartbeats, frames.messages, frames.again) == (2, 1, 3, 2)
        assert first + frames.fins() == b"".join(b"FIN %016x\n" % number for number in (1, 2, 3))


def test_the_times_that_were_put_into_messages_come_back() -> None:
    frames = Frames(with_stamps=True)
    data = bytearray(message(1, stamped(123, 8)) + message(2, stamped(2**63, 100)))
    frames.scan(data, 0, len(data))
    assert frames.stamps == [123, 2**63]


@pytest.mark.parametrize("wrong", [ERROR, bytes(8), b"\0\0\0\x03" + bytes(8)], ids=["error", "empty", "short"])
def test_an_error_or_no_frame_at_all_ends_it(wrong: bytes) -> None:
    with pytest.raises(BenchFailed):
        Frames().scan(bytearray(wrong), 0, len(wrong))


@pytest.mark.parametrize(("at", "end"), [(-1, 5), (0, 11)])
def test_nothing_outside_the_data_is_read(at: int, end: int) -> None:
    with pytest.raises(ValueError, match="inside"):
        Frames().scan(bytearray(10), at, end)
