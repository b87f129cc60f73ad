"""How a conversation with an nsqd begins. Knows no socket: says what is to be sent or changed, and is told the answer.

    magic, IDENTIFY --> TLS --> compression --> AUTH --> SUB      each where it is wished, and behind an answer

    steps = handshake(wishes, ...)
    step = next(steps)                      Ask: send this, give me the answer's data     steps.send(answer)
                                            Secure: speak TLS from now on                 steps.send(b"")
                                            Compress: speak through this from now on      steps.send(b"")

The same generator is driven by the asyncio connection and by the blocking one.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from penstock import __version__
from penstock.errors import HandshakeFailed
from penstock.protocol import requests
from penstock.protocol.v2 import MAGIC

if TYPE_CHECKING:
    from penstock.stream.layer import Layer

Compression: TypeAlias = Literal["snappy", "deflate"]

NOTHING: Final = b""  # to be sent: the answer comes by itself


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What IDENTIFY says and asks for; times are in seconds, None is what the nsqd does by itself."""

    client_id: str | None = None  # the host's name
    user_agent: str = f"penstock/{__version__}"
    heartbeat_interval: float | None = 15.0  # None is none at all: consumers have to have them
    msg_timeout: float | None = None
    output_buffer_timeout: float = 0.025  # how long an nsqd may hold messages back: no nsqd of NSQ's takes less
    sample_rate: int = 0  # percent, 0: all
    compression: Compression | None = None
    tls: bool = False
    secret: bytes | None = None

    def identify(self) -> bytes:
        name = socket.gethostname()
        asked: dict[str, Any] = {
            "client_id": self.client_id or name.partition(".")[0],
            "hostname": name,
            "user_agent": self.user_agent,
            "feature_negotiation": True,
            "heartbeat_interval": -1 if self.heartbeat_interval is None else _ms(self.heartbeat_interval),
            "output_buffer_timeout": _ms(self.output_buffer_timeout),
            "sample_rate": self.sample_rate,
            "tls_v1": self.tls,
            "deflate": self.compression == "deflate",
            "snappy": self.compression == "snappy",
        }
        if self.msg_timeout is not None:
            asked["msg_timeout"] = _ms(self.msg_timeout)
        return requests.identify(json.dumps(asked).encode())


class Agreement(NamedTuple):
    """What an nsqd does for this connection; times are in seconds."""

    max_rdy_count: int
    msg_timeout: float
    max_msg_timeout: float
    version: str


class Ask(NamedTuple):
    data: bytes


class Secure(NamedTuple):
    pass


class Compress(NamedTuple):
    layer: Layer


Step: TypeAlias = Ask | Secure | Compress
Subscribed: TypeAlias = tuple[str, str] | None  # to a topic's channel


def handshake(wishes: Wishes, subscribe: Subscribed = None) -> Generator[Step, bytes, Agreement]:
    """Errors that the nsqd answers are thrown in, or raised by who drives this."""
    said = _read((yield Ask(MAGIC + wishes.identify())))
    if said.get("tls_v1"):
        yield Secure()
        _ok((yield Ask(NOTHING)), "TLS")
    elif wishes.tls:
        raise HandshakeFailed("this nsqd does not offer TLS, which is asked for")
    if said.get("deflate") or said.get("snappy"):
        yield Compress(_layer(said))
        _ok((yield Ask(NOTHING)), "compression")
    if said.get("auth_required"):
        if wishes.secret is None:
            raise HandshakeFailed("this nsqd asks for a secret, and none was given")
        yield Ask(requests.auth(wishes.secret))
    if subscribe is not None:
        _ok((yield Ask(requests.sub(*subscribe))), "SUB")
    return _agreement(said, wishes)


def _read(answer: bytes) -> dict[str, Any]:
    if answer == b"OK":  # an nsqd from before negotiation
        return {}
    try:
        said = json.loads(answer)
    except ValueError as error:
        raise HandshakeFailed(f"no nsqd: it answers IDENTIFY with {answer[:60]!r}") from error
    if not isinstance(said, dict):
        raise HandshakeFailed(f"no nsqd: it answers IDENTIFY with {answer[:60]!r}")
    return said


def _layer(said: dict[str, Any]) -> Layer:
    """Imported when they are wished for: nobody else needs what they need."""
    if said.get("snappy"):
        from penstock.stream.snappy import Snappy

        return Snappy()
    from penstock.stream.deflate import Deflate

    return Deflate(_level(said))


def _level(said: dict[str, Any]) -> int:
    level = said.get("deflate_level")
    return level if isinstance(level, int) and 1 <= level <= 9 else 6


def _ok(answer: bytes, to: str) -> None:
    if answer != b"OK":
        raise HandshakeFailed(f"{to} was answered {answer[:60]!r}")


def _agreement(said: dict[str, Any], wishes: Wishes) -> Agreement:
    """What an nsqd does not say is what NSQ's have by default."""
    return Agreement(
        max_rdy_count=int(said.get("max_rdy_count", 2500)),
        msg_timeout=said.get("msg_timeout", _ms(wishes.msg_timeout or 60)) / 1000,
        max_msg_timeout=said.get("max_msg_timeout", 900_000) / 1000,
        version=str(said.get("version", "")),
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
