"""What statsd is told: its lines, and how they are cut into packets."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.nsqd.options import Options
from penstock.nsqd.statsd import Statsd, packets, prefix
from tests.unit.nsqd.world import World


def statsd(world: World, **options: Any) -> Statsd:
    all_options = Options(broadcast_address="h.x", statsd_prefix="p.%s", statsd_mem_stats=False, **options)
    service = SimpleNamespace(node=world.node, options=all_options, logger=world.node.logger, clock=world.clock)
    return Statsd(cast("Any", service), 4151)


def told(pushes: Statsd) -> dict[str, str]:
    lines = asyncio.run(pushes.lines()).decode().splitlines()
    found = dict(line.removeprefix("p.h_x_4151.").split(":") for line in lines)
    assert len(found) == len(lines)
    return found


def test_counters_are_told_once_and_gauges_as_they_are() -> None:
    # given a topic with a channel and a reader
    world = World()
    world.channel("t", "c")
    world.publish("t", b"abc", b"de")
    world.node.readers.commit(world.home("t"), "q", 1)
    # when statsd is told, then it is told all, by NSQ's names
    pushes = statsd(world)
    first = told(pushes)
    assert first == {
        "topic.t.message_count": "2|c",
        "topic.t.message_bytes": "5|c",
        "topic.t.depth": "0|g",
        "topic.t.backend_depth": "0|g",
        "topic.t.channel.c.message_count": "2|c",
        "topic.t.channel.c.depth": "2|g",
        "topic.t.channel.c.backend_depth": "2|g",
        "topic.t.channel.c.in_flight_count": "0|g",
        "topic.t.channel.c.deferred_count": "0|g",
        "topic.t.channel.c.requeue_count": "0|c",
        "topic.t.channel.c.timeout_count": "0|c",
        "topic.t.channel.c.clients": "0|g",
        "topic.t.channel.q.message_count": "0|c",
        "topic.t.channel.q.depth": "1|g",
        "topic.t.channel.q.backend_depth": "1|g",
        "topic.t.channel.q.in_flight_count": "0|g",
        "topic.t.channel.q.deferred_count": "0|g",
        "topic.t.channel.q.requeue_count": "0|c",
        "topic.t.channel.q.timeout_count": "0|c",
        "topic.t.channel.q.clients": "0|g",
    }
    # and the next time, what was added
    world.publish("t", b"f")
    second = told(pushes)
    assert (second["topic.t.message_count"], second["topic.t.message_bytes"]) == ("1|c", "1|c")
    assert (second["topic.t.channel.c.message_count"], second["topic.t.channel.c.depth"]) == ("1|c", "3|g")


def test_a_topic_that_was_made_again_counts_from_nothing() -> None:
    world = World()
    world.publish("t", b"a", b"b", b"c")
    pushes = statsd(world)
    told(pushes)
    world.node.delete_topic(world.home("t"))
    world.publish("t", b"d")
    assert told(pushes)["topic.t.message_count"] == "1|c"


def test_what_is_ephemeral_may_be_left_out() -> None:
    world = World()
    world.publish("e#ephemeral", b"a")
    world.channel("t", "d#ephemeral")
    world.channel("t", "c")
    assert {"topic.e#ephemeral.depth", "topic.t.channel.d#ephemeral.depth"} < told(statsd(world)).keys()
    left = told(statsd(world, statsd_exclude_ephemeral=True))
    assert not [name for name in left if "#" in name]
    assert "topic.t.channel.c.depth" in left


def test_percentiles_are_gauges_by_their_percent() -> None:
    world = World(e2e_processing_latency_percentiles=(0.99, 0.5))
    world.channel("t", "c")
    found = told(statsd(world, e2e_processing_latency_percentiles=(0.99, 0.5)))
    assert {name for name in found if "e2e" in name} == {
        f"topic.t{of}.e2e_processing_latency_{percent}" for of in ("", ".channel.c") for percent in (99, 50)
    }


@pytest.mark.parametrize(
    ("wanted", "host", "expected"),
    [
        pytest.param("nsq.%s", "a.example", "nsq.a_example_4151.", id="usual"),
        pytest.param("nsq.%s.", "a", "nsq.a_4151.", id="with-its-dot"),
        pytest.param("x", "a", "x.", id="without-the-host"),
        pytest.param("", "a", "", id="none"),
        pytest.param("%s", "::1", "[__1]_4151.", id="ipv6"),
    ],
)
def test_the_host_is_one_word_of_the_prefix(wanted: str, host: str, expected: str) -> None:
    assert prefix(wanted, host, 4151) == expected


@pytest.mark.parametrize(
    ("lines", "size", "expected"),
    [
        pytest.param(b"", 9, [], id="nothing"),
        pytest.param(b"abc\ndef\n", 8, [b"abc\ndef\n"], id="all-fit"),
        pytest.param(b"abc\ndef\n", 7, [b"abc\n", b"def\n"], id="one-byte-too-many"),
        pytest.param(b"a\nlong one\nb\n", 4, [b"a\n", b"long one\n", b"b\n"], id="one-that-is-too-long"),
    ],
)
def test_packets_hold_whole_lines(lines: bytes, size: int, expected: list[bytes]) -> None:
    assert list(packets(lines, size)) == expected
