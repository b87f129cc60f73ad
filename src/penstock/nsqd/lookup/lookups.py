"""All nsqlookupd of a node: told which topics and channels come and go, and asked for those that a new topic has.

    a topic is made --> R stands --> each nsqlookupd: its channels? --> they are made --> R goes on

Nobody waits for that: the topic takes and answers publishes, and what was published is for all of its channels. An
nsqlookupd that is not there, or does not answer in time, is done without.
"""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING, Final

from penstock import NSQ_VERSION
from penstock.errors import LogError
from penstock.http.answers import encoded
from penstock.nsqd.lookup.link import Link
from penstock.protocol.names import is_ephemeral, is_valid
from penstock.protocol.registering import register, unregister

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Sequence

    from penstock.nsqd.home import Home
    from penstock.nsqd.service import Service

_S: Final = 10**9


class Lookups:
    """The node's listener, from `start` to `stop`."""

    def __init__(
        self,
        service: Service,
        tcp_port: int,
        http_port: int,
        context: Callable[[], ssl.SSLContext] | None = None,
        token: str = "",
    ) -> None:
        """The ports are those that are listened on; below 0 where there is none. `context` and `token` as of a Link."""
        self._service = service
        self._context, self._token = context, token
        options = service.options
        tcp_port, http_port = options.broadcast_tcp_port or tcp_port, options.broadcast_http_port or http_port
        if options.nsqlookupd_tcp_addresses and min(tcp_port, http_port) < 1:
            service.logger.error("LOOKUP: nsqlookupd wants a TCP and an HTTP port: say them by --broadcast-...-port")
        self._said = encoded(
            {
                "version": NSQ_VERSION,
                "tcp_port": max(0, tcp_port),
                "http_port": max(0, http_port),
                "hostname": socket.gethostname(),
                "broadcast_address": options.broadcast_address,
                "topology_zone": options.topology_zone,
                "topology_region": options.topology_region,
            }
        )
        self.links: dict[str, Link] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._service.node.listener = self
        self.set_addresses(self._service.options.nsqlookupd_tcp_addresses)
        for home in list(self._service.node.held):  # the process before was killed during its look-up
            self._look_up(home)

    def stop(self) -> None:
        """Who looks for producers does not find this one any more."""
        self.set_addresses(())
        for task in self._under_way:
            task.cancel()

    def set_addresses(self, addresses: Sequence[str]) -> None:
        """These are told from now on, and no others."""
        logger = self._service.logger
        for address in self.links.keys() - set(addresses):
            logger.info("LOOKUP(%s): removing peer", address)
            self.links.pop(address).stop()
        for address in dict.fromkeys(addresses):
            if address not in self.links:
                logger.info("LOOKUP(%s): adding peer", address)
                timeout = self._service.options.http_client_connect_timeout / _S
                link = Link(
                    address,
                    self._said,
                    self._everything,
                    logger,
                    connect_timeout=timeout,
                    context=self._context,
                    token=self._token,
                )
                self.links[address] = link
                link.start()

    def _everything(self) -> Iterator[tuple[str, str]]:
        for name, home in self._service.node.homes.items():
            for channel in home.topic.channels or ("",):
                yield name, channel

    # --- what the node tells

    def made(self, home: Home, channel: str = "") -> None:
        for link in self.links.values():
            link.tell(register(home.topic.name, channel))
        if not channel and self.links:
            self._service.node.hold(home)
            self._look_up(home)

    def gone(self, topic: str, channel: str = "") -> None:
        for link in self.links.values():
            link.tell(unregister(topic, channel))

    # --- the channels of a new topic

    def _look_up(self, home: Home) -> None:
        task = asyncio.create_task(self._make_channels(home))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _make_channels(self, home: Home) -> None:
        begun, topic = time.monotonic_ns(), home.topic
        found = await asyncio.gather(*(self._channels(link, topic.name, begun) for link in self.links.values()))
        service = self._service
        service.begin_turn()
        if service.node.homes.get(topic.name) is home:
            for name in sorted({name for names in found for name in names} - topic.channels.keys()):
                try:
                    service.node.channel(home, name)
                except LogError as error:
                    service.logger.error("TOPIC(%s): channel %s, which is elsewhere: %s", topic.name, name, error)
        service.node.release(home)

    async def _channels(self, link: Link, topic: str, begun: int) -> list[str]:
        """Durable ones: an ephemeral one is not made without a consumer. None where it does not say in time."""
        asking = asyncio.create_task(link.channels(topic))
        timeout = self._service.options.http_client_request_timeout
        try:
            while not asking.done():
                # many topics were made at once, perhaps: as long as it answers for others, this one's turn will come
                left = max(begun, link.answered) + timeout - time.monotonic_ns()
                if left <= 0:
                    raise ConnectionError("no answer in time")
                await asyncio.wait([asking], timeout=left / 1e9)
            return [name for name in asking.result() if is_valid(name) and not is_ephemeral(name)]
        except (OSError, ValueError) as error:
            self._service.logger.warn(
                "LOOKUPD(%s): channels of the new topic %s are not known: %s", link.address, topic, error
            )
            return []
        finally:
            asking.cancel()
