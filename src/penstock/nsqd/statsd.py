"""What statsd is told by UDP, now and then, by NSQ's names. Reads the node; a push is made in short slices.

Counters are told as what was added since the last push; a topic or channel that was made again begins anew. Packets are
spread over the time until the next push, so that a small statsd gets no burst.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from penstock.nsqd.http.garbage import Garbage
from penstock.nsqd.http.slices import Slices
from penstock.nsqd.stats import channel_row, channels_of, homes_of, reader_row, readers_of, topic_row
from penstock.options.address import endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.nsqd.service import Service

TOPIC: Final = {"message_count": "c", "message_bytes": "c", "depth": "g", "backend_depth": "g"}
CHANNEL: Final = {
    "message_count": "c", "depth": "g", "backend_depth": "g", "in_flight_count": "g", "deferred_count": "g",
    "requeue_count": "c", "timeout_count": "c", "client_count": "g",
}  # fmt: skip
_NAMES: Final = {"client_count": "clients", "gc_total_runs": "gc_runs"}  # that are others in statsd
_MARGIN: Final = 1.0  # seconds before the next push in which no packet is sent


class Statsd:
    """Pushes of one node; `http_port` is part of the host's name in statsd."""

    def __init__(self, service: Service, http_port: int) -> None:
        options = service.options
        self._service = service
        self._prefix = prefix(
            options.statsd_prefix, options.broadcast_address, options.broadcast_http_port or http_port
        )
        self._garbage = Garbage()
        self._last: dict[str, int] = {}  # counters at the last push

    async def run(self) -> None:
        """Until it is cancelled. What fails is logged, and tried again with the next push."""
        options, logger = self._service.options, self._service.logger
        interval = options.statsd_interval / 1e9
        loop = asyncio.get_running_loop()
        next_ = loop.time() + interval
        while True:
            await asyncio.sleep(next_ - loop.time())
            next_ = max(next_ + interval, loop.time())
            try:
                await self._push(max(0.0, interval - _MARGIN))
            except OSError as error:
                logger.error("STATSD: %s: %s", options.statsd_address, error)

    async def _push(self, seconds: float) -> None:
        address = endpoint(self._service.options.statsd_address)
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=(address.host or "localhost", address.port)
        )
        self._service.logger.info("STATSD: pushing stats to %s", self._service.options.statsd_address)
        try:
            found = list(packets(await self.lines(), self._service.options.statsd_udp_packet_size))
            for packet in found:
                transport.sendto(packet)
                await asyncio.sleep(seconds / len(found))
        finally:
            transport.close()

    async def lines(self) -> bytes:
        """One metric each; what is counted is told once."""
        service, exclude = self._service, self._service.options.statsd_exclude_ephemeral
        out, last, self._last = Slices(service.node.meters.turns), self._last, {}

        def tell(name: str, row: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
            for key, kind in kinds.items():
                self._tell(out, last, f"{name}.{_NAMES.get(key, key)}", row[key], kind)
            for each in row["e2e_processing_latency"]["percentiles"] or ():
                self._tell(out, last, f"{name}.e2e_processing_latency_{each['quantile'] * 100:.0f}", each["value"], "g")

        for home in homes_of(service, "", "") or ():
            if exclude and home.topic.ephemeral:
                continue
            topic = f"topic.{home.topic.name}"
            tell(topic, topic_row(home, service), TOPIC)
            for channel in channels_of(home, ""):
                if not (exclude and channel.ephemeral):
                    tell(f"{topic}.channel.{channel.name}", channel_row(home, channel, service), CHANNEL)
                    await out.pause()
            for reader in readers_of(home, ""):
                tell(f"{topic}.channel.{reader.name}", reader_row(home, reader), CHANNEL)
            await out.pause()
        if service.options.statsd_mem_stats:
            for key, value in self._garbage.memory().items():
                self._tell(out, last, f"mem.{_NAMES.get(key, key)}", value, "c" if key == "gc_total_runs" else "g")
        return out.whole()

    def _tell(self, out: Slices, last: Mapping[str, int], name: str, value: float, kind: str) -> None:
        now = int(value)
        if kind == "c":
            before = last.get(name, 0)
            self._last[name] = now
            now -= before if now >= before else 0
        out.write(f"{self._prefix}{name}:{now}|{kind}\n")


def prefix(wanted: str, host: str, port: int) -> str:
    """With the host's key in the place of %s, and a dot behind it."""
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    found = wanted.replace("%s", where.replace(".", "_").replace(":", "_"))
    return found if not found or found.endswith(".") else f"{found}."


def packets(lines: bytes, size: int) -> Iterator[bytes]:
    """Whole lines, as many as fit; one that does not goes by itself."""
    begin = end = 0
    while end < len(lines):
        next_ = lines.index(b"\n", end) + 1
        if next_ - begin > size and end > begin:
            yield lines[begin:end]
            begin = end
        end = next_
    if end > begin:
        yield lines[begin:end]
