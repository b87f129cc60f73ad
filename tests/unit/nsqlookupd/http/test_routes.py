"""nsqlookupd's routes, called as functions: what they answer, when a look-up waits, and the pages that tell of them."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.daemon.logging import Logger
from penstock.errors import HttpError
from penstock.http import Request, Response
from penstock.nsqlookupd.http import routes
from penstock.nsqlookupd.http.lookups import LONGEST
from penstock.nsqlookupd.options import Options
from penstock.nsqlookupd.registrations import Nsqd
from penstock.nsqlookupd.service import Service
from penstock.protocol.v1 import Identify

DOCS = Path(__file__).parents[4] / "docs"
S = 10**9


class World:
    """A service in the running loop, at a time that a test sets."""

    def __init__(self, **options: Any) -> None:
        self.now = 1_700_000_000 * S
        logger = Logger("", write=lambda _: True)
        self.service = Service(Options(**options), logger, lambda: self.now)
        self.registrations = self.service.registrations
        self.routes = routes(self.service)

    def nsqd(self, name: str, *topics: str) -> Nsqd:
        nsqd = Nsqd(f"10.0.0.1:{name}", Identify("h", name, 1, 2, "1.3.0", "z", "r"), self.now)
        self.registrations.join(nsqd)
        for topic in topics:
            self.registrations.register(nsqd, topic)
        return nsqd

    async def ask(self, target: str, method: str = "GET") -> Response:
        path, _, query = target.encode().partition(b"?")
        route = self.routes.find(method.encode(), path)
        answer = route.handler(Request(method.encode(), path, query, {}, route, None))
        return answer if isinstance(answer, Response) else await answer  # type: ignore[misc]

    async def get(self, target: str) -> Any:
        answer = await self.ask(target)
        assert isinstance(answer.body, bytes)
        return json.loads(answer.body)

    async def waits(self, target: str) -> asyncio.Task[Response]:
        """A request that is not answered yet."""
        before = len(self.service.waiting)
        task = asyncio.create_task(self.ask(target))
        await asyncio.sleep(0)
        assert not task.done()
        assert len(self.service.waiting) == before + 1
        return task


def revision(answer: Response) -> str:
    found = re.search(r"X-Penstock-Revision: (\S+)", answer.head.decode())
    assert found
    return found[1]


def names(answer: Response) -> list[str]:
    assert isinstance(answer.body, bytes)
    return [each["broadcast_address"] for each in json.loads(answer.body)["producers"]]


def test_a_look_up_tells_of_producers_and_channels() -> None:
    async def look() -> None:
        world = World()
        world.registrations.register(world.nsqd("a", "t"), "t", "c")
        assert await world.get("/lookup?topic=t") == {
            "channels": ["c"],
            "producers": [
                {
                    "remote_address": "10.0.0.1:a", "hostname": "h", "broadcast_address": "a", "tcp_port": 1,
                    "http_port": 2, "version": "1.3.0", "topology_zone": "z", "topology_region": "r",
                }
            ],
        }  # fmt: skip

    asyncio.run(look())


def test_nodes_shows_tombstones_beside_topics_and_only_who_is_active() -> None:
    async def look() -> None:
        world = World()
        world.nsqd("a", "u", "t", "s")
        world.registrations.tombstone("t", "a:2", world.now)
        world.now += 200 * S
        world.nsqd("b")
        assert [(each["topics"], each["tombstones"]) for each in (await world.get("/nodes"))["producers"]] == [
            (["s", "t", "u"], [False, False, False]),  # it is over
            ([], []),
        ]
        await world.ask("/topic/tombstone?topic=t&node=a:2", "POST")
        first = (await world.get("/nodes"))["producers"][0]
        assert first["tombstones"] == [False, True, False]
        world.now += 101 * S
        assert [each["broadcast_address"] for each in (await world.get("/nodes"))["producers"]] == ["b"]

    asyncio.run(look())


def test_debug_shows_all_that_is_registered() -> None:
    async def look() -> None:
        world = World()
        a = world.nsqd("a", "t")
        world.registrations.register(a, "t", "c")
        world.registrations.create("nobody", "has")
        world.registrations.tombstone("t", "a:2", world.now)
        found = await world.get("/debug")
        assert list(found) == ["channel:t:c", "client::", "topic:t:"]
        assert found["topic:t:"][0]["tombstoned_at"] == found["topic:t:"][0]["last_update"] == world.now
        assert (found["client::"][0]["tombstoned"], found["client::"][0]["tombstoned_at"]) == (
            False,
            -6795364578871345152,
        )
        assert found["client::"][0]["id"] == "10.0.0.1:a"

    asyncio.run(look())


@pytest.mark.parametrize("before", [("t",), ()], ids=["a topic that is known", "one that is not"])
def test_a_look_up_that_waits_is_answered_when_a_producer_comes(before: tuple[str, ...]) -> None:
    async def look() -> None:
        world = World()
        world.nsqd("a", *before)
        first = await world.ask("/lookup?topic=t")
        assert first.status == (200 if before else 404)
        task = await world.waits(f"/lookup?topic=t&wait=30s&since={revision(first)}")
        # when a producer of another topic comes, it waits on
        b = world.nsqd("b", "u")
        await asyncio.sleep(0)
        assert not task.done()
        # when one of this topic comes, it is told of it, with another revision
        world.registrations.register(b, "t")
        second = await task
        assert names(second) == ["a" * len(before), "b"][not before :]
        assert revision(second) != revision(first)
        assert len(world.service.waiting) == 0
        # and who asks with that one waits again
        (await world.waits(f"/lookup?topic=t&wait=30s&since={revision(second)}")).cancel()

    asyncio.run(look())


def test_a_change_between_the_request_and_its_wait_is_not_missed() -> None:
    async def look() -> None:
        world = World()
        since = revision(await world.ask("/lookup?topic=t"))
        route = world.routes.find(b"GET", b"/lookup")
        query = f"topic=t&wait=30s&since={since}".encode()
        # when a producer comes in the turn of the loop that brought the request
        waiting = route.handler(Request(b"GET", b"/lookup", query, {}, route, None))
        world.nsqd("a", "t")
        # then it is told
        async with asyncio.timeout(10):
            assert names(await waiting) == ["a"]  # type: ignore[misc]

    asyncio.run(look())


def test_a_look_up_whose_time_is_over_is_answered_as_any_other() -> None:
    async def look() -> None:
        world = World()
        world.nsqd("a", "t")
        first = await world.ask("/lookup?topic=t")
        last = await world.ask(f"/lookup?topic=t&wait=1ms&since={revision(first)}")
        assert (last.status, last.head, last.body) == (first.status, first.head, first.body)
        nothing = await world.ask("/lookup?topic=u")
        last = await world.ask(f"/lookup?topic=u&wait=1ms&since={revision(nothing)}")
        assert (last.status, last.head, last.body) == (404, nothing.head, nothing.body)

    asyncio.run(look())


@pytest.mark.parametrize(
    "query", ["", "&wait=30s", "&since={}", "&wait=0s&since={}", "&wait=30s&since=00-1", "&wait=30s&since="]
)
def test_nothing_is_waited_for_without_both_of_them_or_with_another_revision(query: str) -> None:
    async def look() -> None:
        world = World()
        world.nsqd("a", "t")
        first = await world.ask("/lookup?topic=t")
        assert names(await world.ask("/lookup?topic=t" + query.format(revision(first)))) == ["a"]

    asyncio.run(look())


@pytest.mark.parametrize("wait", ["30", "-1s", "soon", ""])
def test_a_wait_that_is_no_duration_is_refused(wait: str) -> None:
    async def look() -> None:
        with pytest.raises(HttpError, match=r"^INVALID_ARG_WAIT$"):
            await World().ask(f"/lookup?topic=t&wait={wait}")

    asyncio.run(look())


def test_nobody_is_waited_for_longer_than_five_minutes() -> None:
    async def look() -> None:
        world, asked = World(), []

        class Waiting:
            async def until_changed(self, _topic: str, seconds: float) -> None:
                asked.append(seconds)

        world.service.waiting = Waiting()  # type: ignore[assignment]
        first = await world.ask("/lookup?topic=t")
        await world.ask(f"/lookup?topic=t&wait=1h&since={revision(first)}")
        assert asked == [LONGEST] == [300]

    asyncio.run(look())


def test_who_waits_is_told_when_an_nsqd_has_been_silent_for_too_long() -> None:
    async def look() -> None:
        world = World(inactive_producer_timeout=300 * S)
        world.nsqd("a", "t")
        task = await world.waits(f"/lookup?topic=t&wait=30s&since={revision(await world.ask('/lookup?topic=t'))}")
        world.now += 301 * S
        world.service.set_timer()  # it rings at once
        assert names(await task) == []

    asyncio.run(look())


def test_a_client_that_goes_away_is_forgotten() -> None:
    async def look() -> None:
        world = World()
        first = await world.ask("/lookup?topic=t")
        task = await world.waits(f"/lookup?topic=t&wait=30s&since={revision(first)}")
        task.cancel()
        await asyncio.wait([task])
        assert len(world.service.waiting) == 0

    asyncio.run(look())


def test_all_who_wait_are_answered_when_it_stops() -> None:
    async def look() -> None:
        world = World()
        since = revision(await world.ask("/lookup?topic=t"))
        tasks = [await world.waits(f"/lookup?topic=t&wait=30s&since={since}") for _ in range(3)]
        world.service.waiting.stop()
        assert [(await task).status for task in tasks] == [404] * 3
        # and who comes then is not waited for
        assert (await world.ask(f"/lookup?topic=t&wait=30s&since={since}")).status == 404

    asyncio.run(look())


def test_revisions_of_another_process_are_others() -> None:
    async def look() -> None:
        first, second = World(), World()
        assert revision(await first.ask("/lookup?topic=t")) != revision(await second.ask("/lookup?topic=t"))

    asyncio.run(look())


def test_metrics_say_how_much_there_is() -> None:
    async def look() -> dict[str, Any]:
        world = World()
        world.nsqd("a", "t", "u")
        world.registrations.create("v", "c")
        world.now += 301 * S
        world.nsqd("b", "t")
        body = (await world.ask("/metrics")).body
        assert isinstance(body, bytes)
        return {family.name: family for family in text_string_to_metric_families(body.decode())}

    families = asyncio.run(look())

    def value(name: str) -> list[float]:
        return [sample.value for sample in families[f"nsqlookupd_{name}"].samples]

    assert (value("topics"), value("channels"), value("nsqds"), value("inactive_nsqds")) == ([3], [1], [1], [1])
    assert {each.labels["topic"]: each.value for each in families["nsqlookupd_topic_producers"].samples} == {
        "t": 1, "u": 0, "v": 0,
    }  # fmt: skip
    # and the page has each, and no other
    told = set(re.findall(r"^\| `(nsqlookupd_\w+)` \| (\w+)", (DOCS / "metrics.md").read_text(), re.MULTILINE))
    assert told == {(each.name, each.type) for each in families.values() if each.name.startswith("nsqlookupd")}


def test_the_page_has_every_route_and_no_other() -> None:
    async def known(**options: Any) -> set[tuple[str, str]]:
        return World(**options).routes.known

    told = set(re.findall(r"`(GET|POST) (/[^`?]*)", (DOCS / "nsqlookupd-api.md").read_text()))
    assert told == asyncio.run(known())
    inside = asyncio.run(known(debug_http=True)) - told
    assert inside
    assert all(path.startswith("/debug/") for _, path in inside)
