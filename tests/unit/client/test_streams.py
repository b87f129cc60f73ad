"""What may lie between the client and an nsqd: TLS, snappy, deflate; and what is done where they cannot agree."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from penstock.client import Consumer, Producer, SyncProducer
from penstock.errors import HandshakeFailed, NotSent
from tests.kit.certificates import Authority
from tests.unit.client.fake import FakeNsqd, Run, refused

COMPRESSIONS = [None, "snappy", "deflate"]
LARGE = bytes(range(256)) * 2000


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def server(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.pair("127.0.0.1"))
    return context


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("secured", [False, True], ids=["plain", "tls"])
def test_messages_go_through_all_that_was_agreed_on(
    run: Run, authority: Authority, server: ssl.SSLContext, secured: bool, compression: str | None
) -> None:
    async def scene() -> None:
        wishes: dict[str, Any] = {"compression": compression, "ssl": authority.client() if secured else None}
        agreed = {compression: True} if compression else {}
        async with FakeNsqd(tls=server if secured else None, **agreed) as nsqd:
            # when a producer, a blocking one and a consumer wish for it
            async with Producer(nsqd.address, **wishes) as producer:
                await producer.publish("t", LARGE)
            await asyncio.to_thread(_publish, nsqd.address, wishes)
            async with Consumer("t", "c", nsqd=nsqd.address, **wishes) as consumer:
                await nsqd.seen(b"RDY")
                nsqd.deliver(1, 2, body=LARGE)
                for _ in range(2):
                    message = await anext(consumer)
                    assert message.body == LARGE
                    await message.finish()
                await nsqd.seen(b"FIN", 2)
            # then what they say is understood on the other side
            assert [body == LARGE for line, body in nsqd.commands if line == b"PUB t"] == [True, True]

    run(scene())


def _publish(address: str, wishes: dict[str, Any]) -> None:
    with SyncProducer(address, **wishes) as producer:
        producer.publish("t", LARGE)


def test_an_nsqd_that_nobody_vouches_for_is_sent_nothing(
    run: Run, server: ssl.SSLContext, authority: Authority, tmp_path: Path
) -> None:
    async def scene() -> None:
        stranger = Authority(tmp_path / "stranger").client()
        async with FakeNsqd(tls=server) as nsqd, Producer(nsqd.address, ssl=stranger, timeout=0.3) as producer:
            error = await refused(producer.publish("t", b"1"))
            assert isinstance(error, NotSent)
            assert "CERTIFICATE_VERIFY_FAILED" in str(error)
            assert nsqd.lines(b"PUB") == []

    run(scene())


def test_where_tls_is_wished_for_nothing_goes_out_without_it(run: Run, authority: Authority) -> None:
    async def scene() -> None:
        async with FakeNsqd() as nsqd:
            async with Producer(nsqd.address, ssl=authority.client(), timeout=0.1) as producer:
                assert "does not offer TLS" in str(await refused(producer.publish("t", b"1")))
            error = await refused(asyncio.to_thread(_publish, nsqd.address, {"ssl": authority.client()}))
            assert isinstance(error, HandshakeFailed)
            assert nsqd.lines(b"PUB") == []

    run(scene())


def test_bytes_that_are_no_snappy_end_the_connection_and_it_is_made_again(run: Run) -> None:
    async def scene() -> None:
        async with (
            FakeNsqd(snappy=True) as nsqd,
            Consumer("t", "c", nsqd=nsqd.address, compression="snappy") as consumer,
        ):
            await nsqd.seen(b"RDY")
            nsqd._peers[-1]._writer.write(b"what is this, not snappy at all")
            await nsqd.seen(b"RDY", 2)
            nsqd.deliver(1)
            assert (await anext(consumer)).body == b"body"

    run(scene())
