"""`/channel/peek` as the simulation's administrators call it: the handler, with no server in front of it."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from penstock.nsqd.http.blocks import Blocks
from penstock.nsqd.http.peeking import MOST, Peeking
from tests.simulation.look import FLIGHT, READY, WAITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.log.work import Work
    from tests.simulation.model import Channel, Model, Topic
    from tests.simulation.world import World


def peek(world: World, topic: str, channel: str) -> list[dict[str, Any]]:
    """Whatever has to be read from the device is read at once."""

    def run(work: Work, done: Callable[[], None]) -> None:
        work()
        done()

    service = cast(
        "Any",
        SimpleNamespace(node=world.node, clock=world.clock, logger=world.logger, run=run, begin_turn=lambda: None),
    )
    arguments = {"topic": topic, "channel": channel, "n": str(MOST)}
    request = cast("Any", SimpleNamespace(arg=arguments.get))
    answer = asyncio.run(Peeking(service, Blocks(service)).peek(request))
    assert isinstance(answer.body, bytes)
    return list(json.loads(answer.body)["messages"])


def compare(found: list[dict[str, Any]], topic: Topic, channel: Channel, model: Model, earliest: int) -> None:
    """Each message that the model knows of, once, in its state; no other. An ephemeral channel holds no retention."""
    states: dict[str, dict[bytes, int]] = {}
    for each in found:
        if each["state"] != "deferred":
            body = model.ids[int(each["id"], 16)]
            assert body.startswith(each["body"].encode())
            assert states.setdefault(each["state"], {}).setdefault(body, each["attempts"]) == each["attempts"]
    deferred = sum(each["state"] == "deferred" for each in found)
    assert len(found) == sum(map(len, states.values())) + deferred, "shown twice"
    if max([deferred, *map(len, states.values())]) >= MOST:
        return  # there may be more
    flights = {body: held.attempts for body, held in channel.pending.items() if held.state == FLIGHT}
    assert states.pop("in_flight", {}) == flights
    waiting = {body: held.attempts for body, held in channel.pending.items() if held.state in (READY, WAITS)}
    shown = {body: tried for state in states.values() for body, tried in state.items()}
    gone = {body for body in waiting if channel.ephemeral and model.offsets[body] < earliest} - shown.keys()
    assert shown == {body: tried for body, tried in waiting.items() if body not in gone}, topic.name
