"""Publishing over asyncio: what await means, what goes out together, and what a failing nsqd does to it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from penstock.client import Producer, SyncProducer
from penstock.errors import AnswerLost, BadMessage, BadTopic, Closed, HandshakeFailed, NotSent
from penstock.protocol import requests
from tests.unit.client.builders import HEARTBEAT, OK
from tests.unit.client.fake import FakeLookupd, FakeNsqd, Run, refused, refusing, soon


def commands(nsqd: FakeNsqd) -> list[tuple[bytes, bytes]]:
    """Without what a conversation begins with."""
    return [command for command in nsqd.commands if command[0] != b"IDENTIFY"]


def body_of(bodies: list[bytes]) -> bytes:
    return requests.mpub("t", bodies).partition(b"\n")[2][4:]


def test_a_publish_returns_when_it_is_answered_and_not_before(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, Producer(nsqd.address) as producer:
            nsqd.answer = lambda _line, _body: None
            publishing = asyncio.create_task(producer.publish("events", b"hello"))
            await nsqd.seen(b"PUB")
            assert commands(nsqd) == [(b"PUB events", b"hello")]
            assert not publishing.done()
            nsqd.send(OK)
            await publishing

    run(scene())


def test_what_many_tasks_publish_at_once_is_one_mpub(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, Producer(nsqd.address) as producer:
            await producer.publish("t", b"connected")
            await asyncio.gather(*(producer.publish("t", b"%d" % number) for number in range(5)))
            assert commands(nsqd)[1:] == [(b"MPUB t", body_of([b"0", b"1", b"2", b"3", b"4"]))]

    run(scene())


def test_many_and_deferred_ones_are_commands_of_their_own(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, Producer(nsqd.address) as producer:
            await producer.publish_many("t", (body for body in (b"1", bytearray(b"2"), memoryview(b"3"))))
            await producer.defer("t", b"later", 1.5)
            await producer.defer("t", b"later", timedelta(minutes=1))
            await producer.publish_many("t", [])
            assert commands(nsqd) == [
                (b"MPUB t", body_of([b"1", b"2", b"3"])),
                (b"DPUB t 1500", b"later"),
                (b"DPUB t 60000", b"later"),
            ]

    run(scene())


def test_a_message_whose_answer_was_lost_says_so_and_the_next_one_goes_over_a_new_connection(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, Producer(nsqd.address) as producer:
            nsqd.answer = lambda _line, _body: None
            publishing = asyncio.create_task(producer.publish("t", b"1"))
            await nsqd.seen(b"PUB")
            nsqd.drop()
            assert isinstance(await refused(publishing), AnswerLost)
            nsqd.answer = lambda _line, _body: OK
            await producer.publish("t", b"2")
            assert len(nsqd.lines(b"IDENTIFY")) == 2

    run(scene())


def test_an_answer_that_does_not_come_in_time_is_a_lost_one(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, Producer(nsqd.address, timeout=0.1) as producer:
            nsqd.answer = lambda _line, _body: None
            error = await refused(producer.publish("t", b"1"))
            assert isinstance(error, AnswerLost)
            assert "no answer came in time" in str(error)

    run(scene())


def test_without_an_nsqd_a_message_waits_and_is_not_sent_in_the_end(run: Run) -> None:
    async def scene() -> None:
        nsqd = FakeNsqd()
        await nsqd.start()
        await nsqd.stop()
        async with Producer(nsqd.address, timeout=0.1) as producer:
            error = await refused(producer.publish("t", b"1"))
            assert isinstance(error, NotSent)
            assert nsqd.address in str(error)
            assert "Connect" in str(error)

    run(scene())


def test_a_message_waits_for_an_nsqd_that_comes_later(run: Run) -> None:
    async def scene() -> None:
        nsqd = FakeNsqd()
        await nsqd.start()
        await nsqd.stop()
        async with Producer(nsqd.address) as producer:
            publishing = asyncio.create_task(producer.publish("t", b"1"))
            given_up = asyncio.create_task(producer.publish("t", b"given up"))
            await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.wait([given_up])
            await nsqd.start()
            await publishing
            assert commands(nsqd)[-1][1] == b"1"
        await nsqd.stop()

    run(scene())


def test_a_bad_message_fails_alone_among_those_that_went_out_with_it(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, Producer(nsqd.address) as producer:
            nsqd.answer = refusing(b"bad")
            done = await asyncio.gather(
                *(producer.publish("t", body) for body in (b"1", b"bad", b"3")), return_exceptions=True
            )
            assert done[0] is None
            assert isinstance(done[1], BadMessage)
            assert done[2] is None

    run(scene())


@pytest.mark.parametrize(
    ("limits", "fits"), [({"max_pending": 2}, 2), ({"max_pending_bytes": 3}, 3)], ids=["messages", "bytes"]
)
def test_more_than_may_be_pending_waits_to_be_taken(run: Run, limits: dict[str, int], fits: int) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, Producer(nsqd.address, **limits) as producer:  # type: ignore[arg-type]
            nsqd.answer = lambda _line, _body: None
            tasks = [asyncio.create_task(producer.publish("t", b"%d" % number)) for number in range(5)]
            await nsqd.seen(b"MPUB")
            assert commands(nsqd) == [(b"MPUB t", body_of([b"%d" % number for number in range(fits)]))]
            # when those are answered, the next ones go out
            nsqd.answer = lambda _line, _body: OK
            nsqd.send(OK)
            await asyncio.gather(*tasks)

    run(scene())


def test_room_that_a_cancelled_task_was_given_is_another_ones(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, Producer(nsqd.address, max_pending=1, timeout=1000.0) as producer:
            nsqd.answer = lambda _line, _body: None
            first, second, third = [asyncio.create_task(producer.publish("t", body)) for body in (b"1", b"2", b"3")]
            await nsqd.seen(b"PUB")
            # when there is room for the second, which is cancelled before it takes it
            nsqd.answer = lambda _line, _body: OK
            let_in = producer._let_in

            def let_in_and_cancel(count: int) -> None:
                let_in(count)
                second.cancel()

            producer._let_in = let_in_and_cancel  # type: ignore[method-assign]
            nsqd.send(OK)
            # then the third has it
            await third
            await first
            assert [body for _, body in commands(nsqd)] == [b"1", b"3"]

    run(scene())


def test_several_nsqd_are_published_to_in_turn_and_one_that_is_gone_is_passed_over(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as one, FakeNsqd() as two, Producer([one.address, two.address]) as producer:
            await one.seen(b"IDENTIFY")
            await two.seen(b"IDENTIFY")
            await soon(lambda: len(producer.connections) == 2)
            for number in range(4):
                await producer.publish("t", b"%d" % number)
            assert (len(commands(one)), len(commands(two))) == (2, 2)
            await one.stop()
            await soon(lambda: producer.connections == [two.address])
            for number in range(4):
                await producer.publish("t", b"%d" % number)
            assert len(commands(two)) == 6

    run(scene())


def test_nsqlookupd_names_the_nsqd_that_have_the_topic_and_others_are_for_new_topics(run: Run) -> None:
    async def scene() -> None:
        async with (
            FakeNsqd() as nsqd,
            FakeLookupd(nsqd) as lookupd,
            Producer(lookupd=lookupd.address, poll_interval=0.01) as producer,
        ):
            await producer.publish("events", b"1")
            await producer.publish("new", b"2")
            assert commands(nsqd) == [(b"PUB events", b"1"), (b"PUB new", b"2")]
            # when there is another one, it is found
            async with FakeNsqd() as other:
                await lookupd.register(other)
                await other.seen(b"IDENTIFY")

    run(scene())


def test_leaving_waits_for_what_others_publish(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd:
            nsqd.answer = lambda _line, _body: None
            async with Producer(nsqd.address) as producer:
                publishing = asyncio.create_task(producer.publish("t", b"1"))
                await nsqd.seen(b"PUB")
                asyncio.get_running_loop().call_soon(nsqd.send, OK)
            await publishing
            assert isinstance(await refused(producer.publish("t", b"2")), Closed)

    run(scene())


def test_leaving_by_an_error_waits_for_nothing(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd:
            nsqd.answer = lambda _line, _body: None
            producer = Producer(nsqd.address)
            publishing: list[asyncio.Task[None]] = []

            async def leave_by_an_error() -> None:
                async with producer:
                    publishing.append(asyncio.create_task(producer.publish("t", b"1")))
                    await nsqd.seen(b"PUB")
                    raise RuntimeError("enough")

            assert str(await refused(leave_by_an_error())) == "enough"
            assert isinstance(await refused(publishing[0]), AnswerLost)

    run(scene())


def test_what_cannot_be_published_is_told_at_once(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, Producer(nsqd.address) as producer:
            assert isinstance(await refused(producer.publish("no name", b"1")), BadTopic)
            assert isinstance(await refused(producer.publish("t", b"")), BadMessage)
            assert isinstance(await refused(producer.publish("t", "text")), TypeError)  # type: ignore[arg-type]
            assert isinstance(await refused(producer.publish_many("t", b"text")), TypeError)  # type: ignore[arg-type]
            assert isinstance(await refused(producer.defer("t", b"1", -1)), ValueError)
            assert commands(nsqd) == []

    run(scene())
    with pytest.raises(ValueError, match="either nsqd or lookupd"):
        Producer()


def test_a_heartbeat_is_answered(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, Producer(nsqd.address) as producer:
            await producer.publish("t", b"1")
            nsqd.send(HEARTBEAT[:5])
            nsqd.send(HEARTBEAT[5:])
            await nsqd.seen(b"NOP")

    run(scene())


def test_an_nsqd_that_asks_for_a_secret_is_told_it(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd(auth_required=True) as nsqd, Producer(nsqd.address, secret="open sesame") as producer:
            await producer.publish("t", b"1")
            assert (b"AUTH", b"open sesame") in nsqd.commands

    run(scene())


# --- the blocking one


async def blocking(nsqd: FakeNsqd, *acts: tuple[object, ...]) -> list[object]:
    """What each of them returns or raises, in a thread: the fake nsqd needs the loop."""

    def act() -> list[object]:
        found: list[object] = []
        with SyncProducer(nsqd.address, timeout=5.0) as producer:
            for method, *arguments in acts:
                try:
                    found.append(getattr(producer, str(method))(*arguments))
                except Exception as error:  # noqa: BLE001  the test looks at it
                    found.append(error)
        return found

    return await asyncio.to_thread(act)


def test_the_blocking_producer_publishes_and_waits_for_each_answer(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd(auth_required=False) as nsqd:
            done = await blocking(
                nsqd, ("publish", "t", b"1"), ("publish_many", "t", [b"2", b"3"]), ("defer", "t", b"4", 0.25)
            )
            assert done == [None, None, None]
            assert commands(nsqd) == [(b"PUB t", b"1"), (b"MPUB t", body_of([b"2", b"3"])), (b"DPUB t 250", b"4")]

    run(scene())


def test_the_blocking_producer_tells_what_went_wrong_and_connects_again(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd:
            nsqd.answer = refusing(b"bad")
            done = await blocking(
                nsqd, ("publish", "t", b"bad"), ("publish", "t", b"2"), ("close",), ("publish", "t", b"3")
            )
            assert isinstance(done[0], BadMessage)
            assert done[1] is None
            assert isinstance(done[3], Closed)
            assert len(nsqd.lines(b"IDENTIFY")) == 2

    run(scene())


def test_the_blocking_producer_knows_a_lost_answer_from_a_message_that_was_not_sent(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd:
            nsqd.answer = lambda _line, _body: None
            publishing = asyncio.create_task(blocking(nsqd, ("publish", "t", b"1")))
            await nsqd.seen(b"PUB")
            nsqd.drop()
            (lost,) = await publishing
            assert isinstance(lost, AnswerLost)
        (not_sent,) = await blocking(nsqd, ("publish", "t", b"1"))
        assert isinstance(not_sent, NotSent)

    run(scene())


def test_the_blocking_producer_refuses_an_nsqd_that_asks_for_more_than_it_has(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd(auth_required=True) as nsqd:
            (error,) = await blocking(nsqd, ("publish", "t", b"1"))
            assert isinstance(error, HandshakeFailed)

    run(scene())
