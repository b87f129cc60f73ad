"""IDENTIFY: what a client says of itself and asks for, and what it gets. Knows no connection; times are in ns."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from penstock import NSQ_VERSION
from penstock.errors import BadBody, IdentifyFailed
from penstock.protocol.go_json import fields

_MS: Final = 1_000_000
_SMALLEST_BUFFER: Final = 64
_SHORTEST: Final = 1000  # ms: no client may ask for less time between heartbeats, or for a message


@dataclass(frozen=True, slots=True)
class Offer:
    """What the node allows and can do."""

    max_rdy_count: int
    max_msg_timeout: int
    max_heartbeat_interval: int
    min_output_buffer_timeout: int
    max_output_buffer_timeout: int
    max_output_buffer_size: int
    max_deflate_level: int
    deflate: bool = False
    snappy: bool = False
    tls_v1: bool = False
    auth_required: bool = False
    topology_region: str = ""
    topology_zone: str = ""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a connection is served: at first as the node's defaults say, then as its client asked."""

    heartbeat_interval: int  # 0: none
    msg_timeout: int
    output_buffer_timeout: int  # 0: never by time
    output_buffer_size: int = 16 << 10
    sample_rate: int = 0  # percent, 0: all
    client_id: str = ""
    hostname: str = ""
    user_agent: str = ""
    topology_region: str = ""
    topology_zone: str = ""
    deflate_level: int = 0  # 0: no deflate
    snappy: bool = False
    tls_v1: bool = False

    @property
    def upgraded(self) -> bool:
        """The stream is not plain any more: this happens once."""
        return self.tls_v1 or self.compressed

    @property
    def compressed(self) -> bool:
        return self.snappy or self.deflate_level > 0


class Identified(NamedTuple):
    """What holds from now on, and what the client is told, before a change of the stream."""

    agreement: Agreement
    answer: bytes


def identify(body: bytes, offer: Offer, before: Agreement) -> Identified:
    """Answer a client's IDENTIFY; `before` is what held until then."""
    asked = _decode(body)
    heartbeat_interval = _heartbeat_interval(asked["heartbeat_interval"], offer, before)
    buffer_size, buffer_timeout = _output_buffer(asked, offer, before)
    agreement = replace(
        before,
        heartbeat_interval=heartbeat_interval,
        output_buffer_size=buffer_size,
        output_buffer_timeout=buffer_timeout,
        sample_rate=_sample_rate(asked["sample_rate"]),
        msg_timeout=_msg_timeout(asked["msg_timeout"], offer, before),
        client_id=asked["client_id"],
        hostname=asked["hostname"],
        user_agent=asked["user_agent"],
        topology_region=asked["topology_region"],
        topology_zone=asked["topology_zone"],
    )
    if not asked["feature_negotiation"]:
        return Identified(agreement, b"OK")
    return _features(asked, offer, agreement)


def _features(asked: dict[str, Any], offer: Offer, agreement: Agreement) -> Identified:
    once = not agreement.upgraded
    tls = once and offer.tls_v1 and asked["tls_v1"]
    deflate = once and offer.deflate and asked["deflate"]
    snappy = once and offer.snappy and asked["snappy"]
    level = asked["deflate_level"] if deflate and asked["deflate_level"] > 0 else 6
    level = min(level, offer.max_deflate_level)
    if deflate and snappy:
        raise IdentifyFailed("cannot enable both deflate and snappy compression")
    if once:
        agreement = replace(agreement, tls_v1=tls, snappy=snappy, deflate_level=level if deflate else 0)
    answer = {
        "max_rdy_count": offer.max_rdy_count,
        "version": NSQ_VERSION,
        "max_msg_timeout": offer.max_msg_timeout // _MS,
        "msg_timeout": agreement.msg_timeout // _MS,
        "tls_v1": tls,
        "deflate": deflate,
        "deflate_level": level,
        "max_deflate_level": offer.max_deflate_level,
        "snappy": snappy,
        "sample_rate": agreement.sample_rate,
        "auth_required": offer.auth_required,
        "output_buffer_size": agreement.output_buffer_size,
        "output_buffer_timeout": agreement.output_buffer_timeout // _MS,
        "topology_region": offer.topology_region,
        "topology_zone": offer.topology_zone,
    }
    return Identified(agreement, json.dumps(answer, separators=(",", ":")).encode())


# --- what a client may ask for, in NSQ's order


def _heartbeat_interval(asked: int, offer: Offer, before: Agreement) -> int:
    if asked == -1:
        return 0
    if asked == 0:
        return before.heartbeat_interval
    if not _SHORTEST <= asked <= offer.max_heartbeat_interval // _MS:
        raise BadBody(f"IDENTIFY heartbeat interval ({asked}) is invalid")
    return asked * _MS


def _output_buffer(asked: dict[str, Any], offer: Offer, before: Agreement) -> tuple[int, int]:
    """Its size, and the time after which it is sent."""
    size: int = asked["output_buffer_size"]
    timeout: int = asked["output_buffer_timeout"]
    longest = offer.max_output_buffer_timeout // _MS
    if timeout not in {-1, 0} and not offer.min_output_buffer_timeout // _MS <= timeout <= longest:
        raise BadBody(f"IDENTIFY output buffer timeout ({timeout}) is invalid")
    if size not in {-1, 0} and not _SMALLEST_BUFFER <= size <= offer.max_output_buffer_size:
        raise BadBody(f"IDENTIFY output buffer size ({size}) is invalid")
    if size == -1:  # no buffer
        return 1, 0
    wanted = max(timeout, 0) * _MS if timeout else before.output_buffer_timeout
    return size or before.output_buffer_size, wanted


def _sample_rate(asked: int) -> int:
    if not 0 <= asked <= 99:
        raise BadBody(f"IDENTIFY sample rate ({asked}) is invalid")
    return asked


def _msg_timeout(asked: int, offer: Offer, before: Agreement) -> int:
    if asked == 0:
        return before.msg_timeout
    if not _SHORTEST <= asked <= offer.max_msg_timeout // _MS:
        raise BadBody(f"IDENTIFY msg timeout ({asked}) is invalid")
    return asked * _MS


_BITS: Final = {"sample_rate": 32}  # the other numbers have 64
_NOTHING: Final[dict[str, str | int | bool]] = {
    "client_id": "",
    "hostname": "",
    "heartbeat_interval": 0,
    "output_buffer_size": 0,
    "output_buffer_timeout": 0,
    "feature_negotiation": False,
    "tls_v1": False,
    "deflate": False,
    "deflate_level": 0,
    "snappy": False,
    "sample_rate": 0,
    "user_agent": "",
    "msg_timeout": 0,
    "topology_region": "",
    "topology_zone": "",
}


def _decode(body: bytes) -> dict[str, Any]:
    """What a client asks for; what it does not say is nothing."""
    try:
        return fields(body, _NOTHING, _BITS)
    except ValueError as error:
        raise BadBody("IDENTIFY failed to decode JSON body") from error
