"""/metrics, read by Prometheus' own parser; and the page that tells of each."""

from __future__ import annotations

import asyncio
import re
import struct
from array import array
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.nsqd.http import metrics
from penstock.nsqd.http.metrics import Metrics
from tests.unit.nsqd.world import World

PAGE = Path(__file__).parents[4] / "docs" / "metrics.md"


def read(world: World) -> dict[str, Any]:
    """Families by name; samples of each by its labels' values."""
    service = SimpleNamespace(
        node=world.node, connections=(), started=10**9, logger=SimpleNamespace(dropped=0), options=world.options,
        clock=world.clock, lookups=SimpleNamespace(links={"a:1": SimpleNamespace(registered=True)}),
    )  # fmt: skip

    async def text() -> str:
        answer = Metrics(cast("Any", service)).metrics(cast("Any", None))
        assert not isinstance(answer.body, bytes)
        return b"".join([block async for block in answer.body]).decode()

    return {family.name: family for family in text_string_to_metric_families(asyncio.run(text()))}


def value(families: dict[str, Any], name: str, *labels: str) -> float:
    (found,) = [each.value for each in families[name].samples if tuple(each.labels.values()) == labels]
    return float(found)


def test_a_topic_and_its_channel_are_told_of() -> None:
    world = World()
    # given ten messages, of which a channel has finished two and gives one back, and three are in flight
    world.channel("t", "c")
    world.publish("t", *[b"body"] * 10)
    channel, consumer, hand = world.consume("t", "c", ready=6)
    world.finish("t", channel, consumer, hand.offsets[:2])
    channel.requeue(consumer, 2, world.clock.now, 10**9)
    consumer.ready = 0
    world.node.delete_channel(world.home("t"), world.channel("t", "gone").name)
    families = read(world)
    # then that is what is said
    assert value(families, "nsqd_topic_messages", "t") == 10
    assert value(families, "nsqd_topic_bytes", "t") == 40
    assert value(families, "nsqd_topic_log_end_offset", "t") == 10
    assert value(families, "nsqd_topic_routed_offset", "t") == 10
    assert value(families, "nsqd_topic_depth", "t") == 0
    assert value(families, "nsqd_topic_disk_bytes", "t") > 40
    assert value(families, "nsqd_channel_messages", "t", "c") == 10
    assert value(families, "nsqd_channel_in_flight", "t", "c") == channel.unfinished.in_flight > 0
    assert value(families, "nsqd_channel_deferred", "t", "c") == 1
    assert value(families, "nsqd_channel_requeues", "t", "c") == 1
    assert value(families, "nsqd_channel_low_water_offset", "t", "c") == 2
    assert value(families, "nsqd_channel_cursor_offset", "t", "c") == channel.cursor
    assert value(families, "nsqd_channel_clients", "t", "c") == 1
    assert value(families, "nsqd_topics") == value(families, "nsqd_channels") == 1


def test_an_ephemeral_topic_takes_no_disk() -> None:
    world = World()
    world.publish("t#ephemeral", b"m")
    families = read(world)
    assert value(families, "nsqd_topic_disk_bytes", "t#ephemeral") == 0
    assert value(families, "nsqd_topic_log_end_offset", "t#ephemeral") == 1


@pytest.mark.parametrize(
    ("rows", "topics", "channels", "hidden"), [(6, 2, 4, 0), (5, 2, 3, 1), (3, 1, 2, 3), (1, 1, 0, 5)]
)
def test_series_are_bounded(
    monkeypatch: pytest.MonkeyPatch, rows: int, topics: int, channels: int, hidden: int
) -> None:
    monkeypatch.setattr(metrics, "ROWS", rows)
    world = World()
    for name in "ab":
        for channel in "cd":
            world.channel(name, channel)
    families = read(world)
    assert len(families["nsqd_topic_depth"].samples) == topics
    assert len(families["nsqd_channel_depth"].samples) == channels
    assert value(families, "nsqd_hidden_rows") == hidden


def test_paused_is_a_number() -> None:
    world = World()
    world.node.pause_channel(world.channel("t", "c"), True)
    families = read(world)
    assert value(families, "nsqd_channel_paused", "t", "c") == 1
    assert value(families, "nsqd_topic_paused", "t") == 0


def test_latencies_are_told_of_where_they_are_asked_for() -> None:
    assert "nsqd_channel_e2e_latency_seconds" not in read(World())
    world = World(e2e_processing_latency_percentiles=(0.5, 0.99))
    latency = world.channel("t", "c").latency
    assert latency is not None
    # given a message that took half a second
    now = world.clock.wall
    latency.given([1], 0, struct.pack(">IIQ", 30, 2, now - 500_000_000) + b"f" * 18)
    latency.finished(array("Q", [1]), (), now)
    families = read(world)
    for quantile in "0.5", "0.99":
        assert value(families, "nsqd_channel_e2e_latency_seconds", "t", "c", quantile) == pytest.approx(0.5, rel=0.02)


def test_the_page_has_every_metric_and_no_other() -> None:
    told = set(re.findall(r"^\| `((?:nsqd|process)_\w+)` \| (\w+)", PAGE.read_text(), re.MULTILINE))
    families = read(World(e2e_processing_latency_percentiles=(0.5,))).values()
    assert told == {(each.name + "_total" * (each.type == "counter"), each.type) for each in families}
