"""What `/stats` says, with NSQ's keys and types. Reads the node; changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock import NSQ_VERSION

if TYPE_CHECKING:
    from penstock.broker.channel import Channel
    from penstock.nsqd.home import Home
    from penstock.nsqd.service import Service
    from penstock.nsqd.session import Session

_NO_LATENCY: Final = {"count": 0, "percentiles": None}
_S: Final = 10**9


def stats(service: Service, topic: str = "", channel: str = "", *, clients: bool = True) -> dict[str, Any]:
    """Of all topics and channels, or of one."""
    homes = service.node.homes
    names = sorted(homes) if not topic else [topic] if topic in homes else []
    sessions = [connection.session for connection in service.connections]
    producers = [_client(session, topic) for session in sessions if session.published] if clients else []
    return {
        "version": NSQ_VERSION,
        "health": "OK" if service.node.refused is None else f"NOK - {service.node.refused}",
        "start_time": service.started // _S,
        "topics": [_topic(homes[name], channel, clients) for name in names] if names or not topic else None,
        "producers": producers or None,
    }


def _topic(home: Home, only: str, clients: bool) -> dict[str, Any]:
    topic = home.topic
    channels = [channel for name, channel in sorted(topic.channels.items()) if not only or name == only]
    return {
        "topic_name": topic.name,
        "channels": [_channel(home, channel, clients) for channel in channels],
        "depth": topic.depth,
        "backend_depth": 0 if topic.ephemeral else topic.depth,
        "message_count": topic.message_count,
        "message_bytes": topic.message_bytes,
        "paused": topic.paused,
        "e2e_processing_latency": _NO_LATENCY,
    }


def _channel(home: Home, channel: Channel, clients: bool) -> dict[str, Any]:
    depth = home.topic.depth_of(channel)
    sessions = [consumer.sink for consumer in channel.consumers]
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
        "clients": [_client(session, home.topic.name) for session in sessions] if clients else None,  # type: ignore[arg-type]
        "paused": channel.paused,
        "e2e_processing_latency": _NO_LATENCY,
    }


def _client(session: Session, topic: str) -> dict[str, Any]:
    agreement, consumer, channel = session.agreement, session.consumer, session.channel
    published = [{"topic": name, "count": count} for name, count in session.published.items() if topic in ("", name)]
    return {
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
        "deflate": False,
        "snappy": False,
        "user_agent": agreement.user_agent,
        "tls": False,
        "tls_cipher_suite": "",
        "tls_version": "",
        "tls_negotiated_protocol": "",
        "tls_negotiated_protocol_is_mutual": False,
        "pub_counts": published,
    }
