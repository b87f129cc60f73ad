"""Consuming over asyncio: iterating and handlers, what comes and goes, how it is stopped."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import pytest

from penstock.client import Consumer, Message
from penstock.errors import BadChannel, BadTopic, Closed
from tests.unit.client.builders import HEARTBEAT, id_of, refusal
from tests.unit.client.fake import FakeLookupd, FakeNsqd, Run, refused, soon


def fins(*numbers: int) -> list[bytes]:
    return [b"FIN " + id_of(number) for number in numbers]


def consumer(nsqd: FakeNsqd, **settings: object) -> Consumer:
    return Consumer("events", "archive", nsqd=nsqd.address, **settings)  # type: ignore[arg-type]


def test_messages_come_one_by_one_and_are_finished(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, consumer(nsqd) as messages:
            await nsqd.seen(b"RDY")
            assert nsqd.commands[1:] == [(b"SUB events archive", b""), (b"RDY 100", b"")]
            nsqd.deliver(1, 2, 3, body=b"hello")
            found = []
            async for message in messages:
                found.append((message.id, message.body, message.nsqd))
                await message.finish()
                if len(found) == 3:
                    break
            assert found == [(id_of(number), b"hello", nsqd.address) for number in (1, 2, 3)]
            assert await nsqd.seen(b"FIN", 3) == fins(1, 2, 3)

    run(scene())


def test_a_block_finishes_its_message_or_requeues_it(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, consumer(nsqd, backoff=0) as messages:
            await nsqd.seen(b"RDY")
            nsqd.deliver(1, 2, 3)
            async with await anext(messages):
                pass
            with suppress(RuntimeError):
                async with await anext(messages):
                    raise RuntimeError("it does not work")
            async with await anext(messages) as message:
                await message.requeue(0.5)
            assert await nsqd.seen(b"REQ", 2) == [b"REQ " + id_of(2) + b" 1000", b"REQ " + id_of(3) + b" 500"]
            assert nsqd.lines(b"FIN") == fins(1)

    run(scene())


def test_handlers_run_so_many_at_once_and_what_they_raise_requeues_the_message(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        running, most = 0, 0
        full = asyncio.Event()

        async def handle(message: Message) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            if running == 2:
                full.set()
            await full.wait()
            running -= 1
            if message.id == id_of(2):
                raise RuntimeError("not this one")

        async with FakeNsqd() as nsqd, consumer(nsqd, backoff=0) as messages:
            working = asyncio.create_task(messages.run(handle, concurrency=2))
            await nsqd.seen(b"RDY")
            nsqd.deliver(1, 2, 3, 4)
            await nsqd.seen(b"FIN", 3)
            await nsqd.seen(b"REQ")
            messages.stop()
            await working
            assert most == 2
            assert sorted(nsqd.lines(b"FIN")) == fins(1, 3, 4)

    with caplog.at_level(logging.ERROR):
        run(scene())
    assert "not this one" in caplog.text


def test_a_message_that_came_too_often_is_given_up_and_told_of(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        given_up: list[bytes] = []

        async def give_up(message: Message) -> None:
            given_up.append(message.body)

        async with FakeNsqd() as nsqd, consumer(nsqd, max_attempts=3, on_give_up=give_up) as messages:
            await nsqd.seen(b"RDY")
            nsqd.deliver(1, body=b"tried", attempts=4)
            nsqd.deliver(2, body=b"last try", attempts=3)
            message = await anext(messages)
            assert message.body == b"last try"
            assert given_up == [b"tried"]
            assert await nsqd.seen(b"FIN") == fins(1)
            assert messages.stats.given_up == 1

    run(scene())
    assert "given up after 3 attempts" in caplog.text


def test_a_message_that_cannot_be_given_up_is_requeued(run: Run) -> None:
    async def scene() -> None:
        def give_up(_message: Message) -> None:
            raise OSError("no room in the morgue")

        async with FakeNsqd() as nsqd, consumer(nsqd, max_attempts=1, on_give_up=give_up) as messages:
            await nsqd.seen(b"RDY")
            nsqd.deliver(1, attempts=2)
            nsqd.deliver(2)
            await anext(messages)
            assert await nsqd.seen(b"REQ") == [b"REQ " + id_of(1) + b" 2000"]

    run(scene())


def test_a_stop_ends_the_iteration_and_lets_the_last_message_be_finished(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, consumer(nsqd) as messages:
            await nsqd.seen(b"RDY")
            nsqd.deliver(1, 2)
            async for message in messages:
                messages.stop()
                await message.finish()
            assert nsqd.lines(b"FIN") == []  # it goes out at the end of the turn
            await nsqd.seen(b"FIN")
            assert nsqd.lines(b"CLS") == [b"CLS"]
            assert nsqd.lines(b"REQ") == [b"REQ " + id_of(2) + b" 0"]

    run(scene())


def test_a_stop_wakes_whoever_waits_for_a_message(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, consumer(nsqd) as messages:
            waiting = [asyncio.create_task(_all(messages)) for _ in range(3)]
            await nsqd.seen(b"RDY")
            messages.stop()
            assert await asyncio.gather(*waiting) == [0, 0, 0]

    async def _all(messages: Consumer) -> int:
        return len([message async for message in messages])

    run(scene())


def test_a_consumer_that_was_stopped_connects_to_nobody_again(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, consumer(nsqd) as messages:
            await nsqd.seen(b"RDY")
            messages.stop()
            nsqd.drop()
            keeper = messages._keeper
            assert keeper is not None
            await soon(lambda: not keeper._tasks)

    run(scene())


def test_handlers_that_do_not_end_are_cancelled_and_their_messages_given_back(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, consumer(nsqd, stop_timeout=0.01) as messages:
            working = asyncio.create_task(messages.run(lambda _message: asyncio.Event().wait()))
            await nsqd.seen(b"RDY")
            nsqd.deliver(1)
            await soon(lambda: messages.stats.received == 1)
            messages.stop()
            await working
            assert await nsqd.seen(b"REQ") == [b"REQ " + id_of(1) + b" 0"]

    run(scene())


def test_leaving_gives_back_what_was_not_answered(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd:
            async with consumer(nsqd) as messages:
                await nsqd.seen(b"RDY")
                nsqd.deliver(1, 2)
                await anext(messages)
            assert sorted(await nsqd.seen(b"REQ", 2)) == [b"REQ " + id_of(number) + b" 0" for number in (1, 2)]

    run(scene())


def test_one_task_that_is_cancelled_takes_no_message_from_another(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, consumer(nsqd) as messages:
            await nsqd.seen(b"RDY")
            first = asyncio.ensure_future(anext(messages))
            second = asyncio.ensure_future(anext(messages))
            await asyncio.sleep(0)
            # when a message wakes the first, which is cancelled before it runs
            messages._received(messages._intake.connections[0], [], 0.0)
            messages._wake(1)
            first.cancel()
            nsqd.deliver(1)
            # then the second gets it
            assert (await second).id == id_of(1)
            assert first.cancelled()

    run(scene())


def test_who_waits_for_a_while_only_leaves_nothing_behind(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, consumer(nsqd) as messages:
            for _ in range(3):
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.001):
                        await anext(messages)
            assert not messages._waiting
            await nsqd.seen(b"RDY")
            nsqd.deliver(1)
            assert (await anext(messages)).id == id_of(1)

    run(scene())


def test_the_limit_may_be_changed_before_it_is_opened(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd:
            messages = consumer(nsqd)
            messages.max_in_flight = 3
            async with messages:
                assert await nsqd.seen(b"RDY") == [b"RDY 3"]

    run(scene())


def test_an_nsqd_that_went_is_connected_to_again_and_what_it_gave_is_forgotten(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, consumer(nsqd) as messages:
            await nsqd.seen(b"RDY")
            nsqd.deliver(1, 2)
            begun = await anext(messages)
            nsqd.drop()
            await nsqd.seen(b"RDY", 2)
            assert not begun.held
            await begun.finish()
            nsqd.deliver(2)
            message = await anext(messages)
            assert message.id == id_of(2)
            await message.finish()
            assert await nsqd.seen(b"FIN") == fins(2)
            assert messages.connections == [nsqd.address]

    run(scene())


def test_failures_hold_all_back(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, consumer(nsqd) as messages:
            await nsqd.seen(b"RDY")
            nsqd.deliver(1)
            message = await anext(messages)
            await message.requeue()
            assert await nsqd.seen(b"RDY", 2) == [b"RDY 100", b"RDY 0"]

    run(scene())


def test_what_nsqd_refuses_of_one_message_is_counted_and_nothing_ends(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, consumer(nsqd) as messages:
            await nsqd.seen(b"RDY")
            nsqd.send(refusal(b"E_FIN_FAILED FIN 0 failed ID not in flight") + HEARTBEAT)
            await nsqd.seen(b"NOP")
            assert messages.stats.failed == 1
            nsqd.deliver(1)
            await anext(messages)

    run(scene())


def test_the_limit_can_be_changed_while_it_runs(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, consumer(nsqd) as messages:
            await nsqd.seen(b"RDY")
            messages.max_in_flight = 0
            messages.max_in_flight = 7
            assert await nsqd.seen(b"RDY", 3) == [b"RDY 100", b"RDY 0", b"RDY 7"]

    run(scene())


@pytest.mark.parametrize("revisions", [False, True], ids=["polled", "waited-for"])
def test_nsqlookupd_names_nsqd_and_new_ones_are_found(run: Run, revisions: bool) -> None:
    async def scene() -> None:
        async with (
            FakeNsqd() as one,
            FakeNsqd() as two,
            FakeLookupd(one, revisions=revisions) as lookupd,
            Consumer(
                "events", "archive", lookupd=lookupd.address, poll_interval=100 if revisions else 0.01
            ) as messages,
        ):
            await one.seen(b"RDY")
            await lookupd.asked(2)
            await lookupd.register(two)
            await two.seen(b"RDY")
            two.deliver(1)
            assert (await anext(messages)).nsqd == two.address
            assert ("wait=30s" in lookupd.targets[-1]) == revisions

    run(scene())


def test_one_nsqlookupd_that_is_gone_and_back_changes_nothing(run: Run) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd, FakeLookupd(nsqd) as gone:
            pass
        async with (
            FakeNsqd() as nsqd,
            FakeLookupd(nsqd) as lookupd,
            Consumer("events", "archive", lookupd=[gone.address, lookupd.address], poll_interval=0.01) as messages,
        ):
            await nsqd.seen(b"RDY")
            await lookupd.asked(3)
            assert messages.connections == [nsqd.address]

    run(scene())


def test_what_cannot_be_is_told_before_anything_is_done(run: Run) -> None:
    with pytest.raises(BadTopic):
        Consumer("no name", "c", nsqd="a")
    with pytest.raises(BadChannel):
        Consumer("t", "no name", nsqd="a")
    with pytest.raises(ValueError, match="either nsqd or lookupd"):
        Consumer("t", "c")

    async def scene() -> None:
        closed = Consumer("t", "c", nsqd="127.0.0.1:1")
        assert isinstance(await refused(anext(closed)), Closed)
        async with closed:
            assert isinstance(await refused(closed.open()), Closed)

    run(scene())
