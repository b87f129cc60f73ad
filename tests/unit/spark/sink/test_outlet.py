"""One node: what is sent again, what is not, and what is said at the end."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.errors import NodeFailed, SparkError
from penstock.spark.http import Access
from penstock.spark.sink.chunks import Chunk, Chunks
from penstock.spark.sink.outlet import Outlet
from penstock.spark.sink.rows import Place
from tests.unit.spark.web import Scripted, answer

OK = answer(b"OK")
PLACE = Place("t", -1)
BUSY = answer(b'{"message":"PUB_FAILED"}', 503)


class Time:
    """Passes when somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def chunk(place: Place = PLACE) -> Chunk:
    chunks = Chunks(100)
    list(chunks.add(place, pa.array([b"body"], pa.binary())))
    [found] = chunks.rest()
    return found


def outlet(time: Time, *urls: str) -> Outlet:
    return Outlet(urls, Access(timeout=5), 10, time.clock, time.pause)


def test_a_chunk_is_answered_when_the_next_one_comes() -> None:
    with Scripted([OK, OK]) as server:
        to = outlet(Time(), server.url)
        to.publish(chunk(), "&producer=p")
        to.publish(chunk(Place("a#ephemeral", -1, delay=5)))
        to.settle()
        to.settle()
        first, second = (request.split(b"\r\n")[0] for request in server.requests)
        assert first == b"POST /mpub?topic=t&binary=true&producer=p HTTP/1.1"
        assert second.endswith(b"bodyPOST /mpub?topic=a%23ephemeral&binary=true&defer=5 HTTP/1.1")
        to.close()


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([[BUSY, BUSY, OK]], id="busy"),
        pytest.param([[], [], [OK]], id="gone"),
        pytest.param([[b"HTTP/1.1 200 OK\r\nContent-Le"], [BUSY, OK]], id="half-an-answer"),
    ],
)
def test_what_may_pass_is_sent_again_after_growing_pauses(script: list[list[bytes]]) -> None:
    time = Time()
    with Scripted(*script) as server:
        to = outlet(time, server.url)
        to.publish(chunk())
        to.settle()
        to.close()
    assert time.pauses == [0.1, 0.2]


def test_a_refusal_is_not_sent_again() -> None:
    time = Time()
    with Scripted([answer(b'{"message":"INVALID_DEFER"}', 400)]) as server:
        to = outlet(time, server.url)
        to.publish(chunk())
        with pytest.raises(NodeFailed, match=r"/mpub answers INVALID_DEFER$"):
            to.settle()
        to.close()
    assert time.pauses == []


def test_another_batch_under_the_same_number_is_told_in_one_line() -> None:
    with Scripted([answer(b'{"message":"OTHER_DIGEST"}', 409)]) as server:
        to = outlet(Time(), server.url)
        to.publish(chunk())
        with pytest.raises(SparkError, match="this batch was published before, with other rows or in another order"):
            to.settle()
        to.close()


def test_patience_ends() -> None:
    time = Time()
    to = outlet(time, "http://127.0.0.1:9")
    with pytest.raises(NodeFailed, match=r"cannot be reached: .*; it was sent again for 10 s \(option sinkTimeout\)$"):
        to.publish(chunk())
    assert 10 <= time.now < 20


def test_another_node_stands_in_where_it_may() -> None:
    with Scripted([OK, OK]) as server:
        to = outlet(Time(), "http://127.0.0.1:9", server.url)
        to.publish(chunk())
        to.publish(chunk())
        to.settle()
        assert to.url == server.url
        to.close()
