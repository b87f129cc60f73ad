"""What `/stats` says, with NSQ's keys and types, as rows that are read one by one. Reads the node; changes nothing.

A row is a topic, a channel or a client as it is when it is asked for; topics come and go meanwhile. Who asks decides
when to let others have their turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.broker.latency import quantiles
from penstock.log.retention import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.channel import Channel
    from penstock.broker.reader import Reader
    from penstock.nsqd.home import Home
    from penstock.nsqd.service import Service
    from penstock.nsqd.session import Session

OK: Final = "OK"
_S: Final = 10**9


def health(service: Service) -> str:
    """`OK`, or why publishing is refused."""
    refused = service.node.refused
    return OK if refused is None else f"NOK - {refused}"


def homes_of(service: Service, topic: str, channel: str) -> list[Home] | None:
    """All topics, or the one; with the name of a channel or reader, those that have it. None where it is not there."""
    homes = service.node.homes
    if topic:
        if topic not in homes:
            return None
        found = [homes[topic]]
    else:
        found = [home for _, home in sorted(homes.items())]
    return [home for home in found if not channel or channel in home.topic.channels or channel in home.topic.readers]


def channels_of(home: Home, only: str) -> list[Channel]:
    return [channel for name, channel in sorted(home.topic.channels.items()) if not only or name == only]


def readers_of(home: Home, only: str) -> list[Reader]:
    return [reader for name, reader in sorted(home.topic.readers.items()) if not only or name == only]


def producers_of(service: Service) -> list[Session]:
    """Those that have published something."""
    return [session for session in service.of_session if session.published]


def latency_of(channels: Iterable[Channel], service: Service) -> dict[str, Any]:
    """From publish to finish, of one channel or of all that a topic has."""
    tracked = [channel.latency for channel in channels if channel.latency is not None]
    if not tracked:
        return {"count": 0, "percentiles": None}
    wanted = sorted(service.options.e2e_processing_latency_percentiles, reverse=True)
    count, values = quantiles(tracked, wanted, service.clock.wall)
    found = [{"quantile": part, "value": value} for part, value in zip(wanted, values, strict=True)]
    return {"count": count, "percentiles": found}


def topic_row(home: Home, service: Service) -> dict[str, Any]:
    """All of it but `channels`."""
    topic = home.topic
    depth = topic.depth
    kept = NOTHING if topic.ephemeral else home.retention.over(service.node.keeper.limits)
    return {
        "topic_name": topic.name,
        "depth": depth,
        "backend_depth": 0 if topic.ephemeral else depth,
        "message_count": topic.message_count,
        "message_bytes": topic.message_bytes,
        "paused": topic.paused,
        "e2e_processing_latency": latency_of(topic.channels.values(), service),
        "retention_bytes": kept.bytes,
        "retention_time": kept.time,
    }


def channel_row(home: Home, channel: Channel, service: Service) -> dict[str, Any]:
    """All of it but `clients`."""
    depth = home.topic.depth_of(channel)
    return {
        "channel_name": channel.name,
        "depth": depth,
        "backend_depth": 0 if channel.ephemeral or home.topic.ephemeral else depth,
        "in_flight_count": channel.unfinished.in_flight,
        "deferred_count": home.log.deferred_count + channel.unfinished.delayed,
        "message_count": home.topic.count_of(channel),
        "requeue_count": channel.requeue_count,
        "timeout_count": channel.timeout_count,
        "client_count": len(channel.consumers),
        "paused": channel.paused,
        "e2e_processing_latency": latency_of((channel,), service),
    }


def reader_row(home: Home, reader: Reader) -> dict[str, Any]:
    """As a channel's, so that NSQ's tools show how it lags; and what it is."""
    lag = home.topic.lag_of(reader)
    return {
        "channel_name": reader.name,
        "depth": lag,
        "backend_depth": 0 if home.topic.ephemeral else lag,
        "in_flight_count": 0,
        "deferred_count": 0,
        "message_count": 0,
        "requeue_count": 0,
        "timeout_count": 0,
        "client_count": 0,
        "paused": reader.paused,
        "e2e_processing_latency": {"count": 0, "percentiles": None},
        "reader": True,
        "offset": reader.offset,
        "renewed": reader.renewed // _S,
    }


def client_row(session: Session, topic: str) -> dict[str, Any]:
    """`pub_counts` of all topics or of one, and only where there are any."""
    agreement, consumer, channel = session.agreement, session.consumer, session.channel
    row: dict[str, Any] = {
        "client_id": agreement.client_id,
        "hostname": agreement.hostname,
        "version": "V2",
        "remote_address": session.name,
        "state": int(session.state),
        "ready_count": consumer.ready if consumer else 0,
        "in_flight_count": channel.unfinished.slots.in_flight_of(consumer.holder) if consumer and channel else 0,
        "message_count": consumer.messages if consumer else 0,
        "finish_count": consumer.finished if consumer else 0,
        "requeue_count": consumer.requeued if consumer else 0,
        "connect_ts": session.connected // _S,
        "sample_rate": agreement.sample_rate,
        "deflate": agreement.deflate_level > 0,
        "snappy": agreement.snappy,
        "user_agent": agreement.user_agent,
        "topology_zone": agreement.topology_zone,
        "topology_region": agreement.topology_region,
        "tls": session.tls is not None,
        "tls_cipher_suite": session.tls.cipher if session.tls else "",
        "tls_version": session.tls.version.replace("TLSv", "TLS") if session.tls else "",
        "tls_negotiated_protocol": "",
        "tls_negotiated_protocol_is_mutual": session.tls is not None,
    }
    if session.gate is not None and session.gate.permissions is not None:
        row |= {
            "authed": session.gate.authed,
            "auth_identity": session.gate.permissions.identity,
            "auth_identity_url": session.gate.permissions.identity_url,
        }
    published = [{"topic": name, "count": count} for name, count in session.published.items() if topic in ("", name)]
    if published:
        row["pub_counts"] = published
    return row
