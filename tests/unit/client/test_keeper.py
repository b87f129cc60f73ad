"""Conversations that end are begun again, whatever ended them, as long as they are wanted."""

from __future__ import annotations

import asyncio

import pytest

from penstock.client.address import Address
from penstock.client.keeper import Keeper
from tests.unit.client.fake import Run

A, B = Address("a", 1), Address("b", 2)


@pytest.mark.parametrize("error", [OSError("gone"), TimeoutError(), KeyError("a bug")], ids=["os", "time", "a-bug"])
def test_no_failure_is_the_last_try(run: Run, error: Exception) -> None:
    async def scene() -> None:
        tries = 0
        well = asyncio.Event()

        async def converse(_address: Address) -> None:
            nonlocal tries
            tries += 1
            if tries < 3:
                raise error
            well.set()
            await asyncio.Event().wait()

        keeper = Keeper(converse)
        keeper.want([A])
        await well.wait()
        assert "a:1: " in keeper.problems
        await keeper.close()

    run(scene())


def test_who_comes_back_is_not_waited_for_any_longer(run: Run) -> None:
    async def scene() -> None:
        tried: list[Address] = []
        twelve = asyncio.Event()

        async def converse(address: Address) -> None:
            tried.append(address)
            if len(tried) == 12:
                twelve.set()
            raise OSError("gone")

        keeper = Keeper(converse)
        # given an nsqd that failed so often that the next try is far away
        while len(tried) < 12:
            keeper.want([])
            keeper.want([A])  # when it is wanted anew, it is tried at once
            await asyncio.sleep(0)
        await twelve.wait()
        await keeper.close()

    run(scene())


def test_what_is_not_wanted_any_more_goes_on_and_is_not_begun_again(run: Run) -> None:
    async def scene() -> None:
        over = asyncio.Event()
        begun: list[Address] = []

        async def converse(address: Address) -> None:
            begun.append(address)
            await over.wait()

        keeper = Keeper(converse)
        keeper.want([A, B])
        await asyncio.sleep(0)
        keeper.want([B])
        assert set(keeper._tasks) == {A, B}
        keeper.want([])
        over.set()
        while keeper._tasks:
            await asyncio.sleep(0)
        assert begun == [A, B] or begun == [B, A]

    run(scene())
