"""`/metrics`: the node for Prometheus. A sample at a time in short slices, a family at a time to the client.

Series are bounded: so many for the node, and for each topic and channel, of which no more than ROWS are shown; none for
clients, for there is no end to those that come and go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import NSQ_VERSION, __version__
from penstock.daemon.process import samples
from penstock.http import Request, Response
from penstock.http.exposition import CONTENT_TYPE, Family, labels, single
from penstock.log.memory_log import MemoryLog
from penstock.nsqd.http.slices import Slices
from penstock.nsqd.meters import BOUNDS
from penstock.nsqd.stats import OK, channels_of, health, homes_of, latency_of, readers_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from penstock.broker.channel import Channel
    from penstock.broker.reader import Reader
    from penstock.nsqd.home import Home
    from penstock.nsqd.service import Service

ROWS: Final = 20_000  # topics, channels and readers; those behind, by name, are only counted


class OfTopic(NamedTuple):
    name: str
    kind: str
    help: str
    value: Callable[[Home], float]


class OfChannel(NamedTuple):
    name: str
    kind: str
    help: str
    value: Callable[[Home, Channel], float]


class OfReader(NamedTuple):
    name: str
    kind: str
    help: str
    value: Callable[[Home, Reader], float]


def _disk_bytes(home: Home) -> int:
    log = home.log
    return 0 if isinstance(log, MemoryLog) else log.bytes + log.timetable.bytes


OF_TOPICS: Final = (
    OfTopic("messages_total", "counter", "Messages published since the start.", lambda home: home.topic.message_count),
    OfTopic("bytes_total", "counter", "Bytes of their bodies.", lambda home: home.topic.message_bytes),
    OfTopic("depth", "gauge", "Messages that no channel was given yet.", lambda home: home.topic.depth),
    OfTopic("deferred", "gauge", "Deferred messages that are not due.", lambda home: home.log.deferred_count),
    OfTopic("paused", "gauge", "1 while the topic is paused.", lambda home: home.topic.paused),
    OfTopic("log_earliest_offset", "gauge", "The first offset that is kept.", lambda home: home.log.earliest),
    OfTopic("log_end_offset", "gauge", "The end of what was answered OK.", lambda home: home.log.committed),
    OfTopic("routed_offset", "gauge", "R: how far the channels were given the log.", lambda home: home.topic.routed),
    OfTopic("disk_bytes", "gauge", "Bytes of its log and its timetable on disk.", _disk_bytes),
)

OF_CHANNELS: Final = (
    OfChannel(
        "messages_total", "counter", "Messages that came to the channel since the start.",
        lambda home, channel: home.topic.count_of(channel),
    ),
    OfChannel(
        "requeues_total", "counter", "Messages that consumers gave back.", lambda _, channel: channel.requeue_count
    ),
    OfChannel(
        "timeouts_total", "counter", "Messages whose time in flight ran out.", lambda _, channel: channel.timeout_count
    ),
    OfChannel(
        "depth", "gauge", "Messages that wait for a consumer.", lambda home, channel: home.topic.depth_of(channel)
    ),
    OfChannel(
        "in_flight", "gauge", "Messages that consumers have and did not finish.",
        lambda _, channel: channel.unfinished.in_flight,
    ),
    OfChannel(
        "deferred", "gauge", "Messages that wait for their delay: the topic's, and those requeued with one.",
        lambda home, channel: home.log.deferred_count + channel.unfinished.delayed,
    ),
    OfChannel("clients", "gauge", "Consumers.", lambda _, channel: len(channel.consumers)),
    OfChannel("paused", "gauge", "1 while the channel is paused.", lambda _, channel: channel.paused),
    OfChannel(
        "cursor_offset", "gauge", "The next offset that was never handed out.", lambda _, channel: channel.cursor
    ),
    OfChannel(
        "low_water_offset", "gauge", "The first offset that is not finished.", lambda _, channel: channel.low_water
    ),
)  # fmt: skip


OF_READERS: Final = (
    OfReader("depth", "gauge", "Messages that it has not read.", lambda home, reader: home.topic.lag_of(reader)),
    OfReader("offset", "gauge", "Where it stands: what lies above is kept.", lambda _, reader: reader.offset),
    OfReader("paused", "gauge", "1 while the reader is paused.", lambda _, reader: reader.paused),
)


class Metrics:
    def __init__(self, service: Service) -> None:
        self._service = service

    def metrics(self, _request: Request) -> Response:
        return Response(200, self._blocks(), CONTENT_TYPE)

    async def _blocks(self) -> AsyncIterator[bytes]:
        slices = Slices(self._service.node.meters.turns)
        for family in self._of_node():
            yield family.text()
            await slices.pause()
        for family in await self._of_topics(slices):
            yield family.text()
            await slices.pause()

    # --- the node

    def _of_node(self) -> Iterator[Family]:
        service = self._service
        node, meters = service.node, service.node.meters
        readers = sum(len(home.topic.readers) for home in node.homes.values())
        rows = len(node.homes) + len(node.home_of) + readers
        info = labels(version=NSQ_VERSION, penstock_version=__version__, node=node.data_path.identity)
        yield single("nsqd_info", "gauge", "Versions, and the node's identity.", 1, info)
        yield single("nsqd_healthy", "gauge", "1 while publishing is taken by all topics.", health(service) == OK)
        yield single("nsqd_topics", "gauge", "Topics.", len(node.homes))
        yield single("nsqd_channels", "gauge", "Channels.", len(node.home_of))
        yield single("nsqd_readers", "gauge", "Readers.", readers)
        yield single("nsqd_clients", "gauge", "TCP connections.", len(service.connections))
        yield single(
            "nsqd_hidden_rows", "gauge", "Topics, channels and readers beyond those shown.", max(0, rows - ROWS)
        )
        yield single("nsqd_damage_total", "counter", "Damaged places found in logs.", len(node.data_path.disk.damages))
        yield single("nsqd_log_lines_dropped", "gauge", "Log lines that nobody read, of late.", service.logger.dropped)
        registered = Family("nsqd_lookupd_registered", "gauge", "1 while this nsqlookupd knows what the node has.")
        for address, link in service.lookups.links.items():
            registered.add(labels(address=address), +link.registered)
        yield registered
        for name, help_, histogram in (
            ("nsqd_loop_stall_seconds", "How long each turn held the loop, and all that waits for it.", meters.turns),
            ("nsqd_flush_seconds", "How long flushes to the device took.", meters.flushes),
            ("nsqd_publish_seconds", "From a publish to its answer.", meters.publishes),
        ):
            family = Family(name, "histogram", help_)
            family.add_histogram(BOUNDS, histogram.counts, histogram.total)
            yield family
        for name, kind, help_, value in samples(service.started):
            yield single(name, kind, help_, value)

    # --- topics and channels

    async def _of_topics(self, slices: Slices) -> list[Family]:
        topics = [Family(f"nsqd_topic_{of.name}", of.kind, of.help) for of in OF_TOPICS]
        channels = [Family(f"nsqd_channel_{of.name}", of.kind, of.help) for of in OF_CHANNELS]
        latencies = Family("nsqd_channel_e2e_latency_seconds", "gauge", "From publish to finish, by percentiles.")
        readers = [Family(f"nsqd_reader_{of.name}", of.kind, of.help) for of in OF_READERS]
        left = ROWS
        for home in homes_of(self._service, "", "") or ():
            if left <= 0:
                break
            shown = channels_of(home, "")[: left - 1]
            read_by = readers_of(home, "")[: max(0, left - 1 - len(shown))]
            left -= 1 + len(shown) + len(read_by)
            name = home.topic.name
            where = labels(topic=name)
            for of, family in zip(OF_TOPICS, topics, strict=True):
                family.add(where, +of.value(home))
            for channel in shown:
                where = labels(topic=name, channel=channel.name)
                for of_channel, family in zip(OF_CHANNELS, channels, strict=True):
                    family.add(where, +of_channel.value(home, channel))
                self._latency(latencies, name, channel)
                await slices.pause()
            for reader in read_by:
                where = labels(topic=name, reader=reader.name)
                for of_reader, family in zip(OF_READERS, readers, strict=True):
                    family.add(where, +of_reader.value(home, reader))
            await slices.pause()
        tracked = bool(self._service.options.e2e_processing_latency_percentiles)
        return [*topics, *channels, *readers, *([latencies] if tracked else [])]

    def _latency(self, family: Family, topic: str, channel: Channel) -> None:
        for each in latency_of((channel,), self._service)["percentiles"] or ():
            where = labels(topic=topic, channel=channel.name, quantile=f"{each['quantile']:g}")
            family.add(where, each["value"] / 1e9)
