"""What is said to an nsqlookupd on one connection. Bytes and times in, bytes out; knows no socket.

    greeted --its answer--> registered: all that there is, then what comes and goes, and a PING each 15 s

Commands do not wait for each other's answers. Each is owed one, in order; one that is no OK ends the connection, as
does silence: the next connection begins with everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import RegisteringFailed
from penstock.protocol.go_json import fields
from penstock.protocol.registering import PING, Answers, greeting, register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_S: Final = 10**9
PING_INTERVAL: Final = 15 * _S  # NSQ's
PATIENCE: Final = 5 * _S  # for an answer that is owed

_NOTHING: Final[dict[str, str | int | bool]] = {
    "broadcast_address": "",
    "tcp_port": 0,
    "http_port": 0,
    "https_port": 0,
    "version": "",
}


class About(NamedTuple):
    """What an nsqlookupd says of itself."""

    broadcast_address: str
    tcp_port: int
    http_port: int
    version: str
    https_port: int = 0  # NSQ's says none


class Conversation:
    def __init__(self, said: bytes, everything: Callable[[], Iterable[tuple[str, str]]]) -> None:
        """`everything` is each topic and channel to register, or a topic that has none with an empty name."""
        self._said = said
        self._everything = everything
        self._answers = Answers()
        self._owed = 0
        self._heard = 0  # an answer, or when the first one began to be owed
        self._pinged = 0
        self.about: About | None = None

    @property
    def registered(self) -> bool:
        """It knows what there is, and is told what changes."""
        return self.about is not None

    def begin(self, now: int) -> bytes:
        self._pinged = now
        return self._send(greeting(self._said), 1, now)

    def tell(self, command: bytes, now: int) -> bytes:
        """Nothing while it is not registered: then it is told everything."""
        return self._send(command, 1, now) if self.registered else b""

    def received(self, data: bytes, now: int) -> bytes:
        """RegisteringFailed for an answer that should not be."""
        self._answers.feed(data)
        out = b""
        try:
            while (answer := self._answers.next()) is not None:
                out += self._heed(answer, now)
        except ValueError as error:
            raise RegisteringFailed(str(error)) from error
        return out

    def _heed(self, answer: bytes, now: int) -> bytes:
        if not self._owed:
            raise RegisteringFailed(f"said {_shown(answer)}, and was not asked")
        self._owed -= 1
        self._heard = now
        if self.about is None:
            self.about = _about(answer)
            commands = [register(topic, channel) for topic, channel in self._everything()]
            return self._send(b"".join(commands), len(commands), now)
        if answer != b"OK":
            raise RegisteringFailed(f"said {_shown(answer)}")
        return b""

    @property
    def next_time(self) -> int:
        """When `tick` has something to do."""
        return min(self._pinged + PING_INTERVAL, self._heard + PATIENCE if self._owed else self._pinged + PING_INTERVAL)

    def tick(self, now: int) -> bytes:
        """RegisteringFailed when it is silent."""
        if self._owed and now >= self._heard + PATIENCE:
            raise RegisteringFailed(f"does not answer for {PATIENCE // _S} s")
        if now < self._pinged + PING_INTERVAL:
            return b""
        self._pinged = now
        return self._send(PING, 1, now)

    def _send(self, data: bytes, commands: int, now: int) -> bytes:
        if not self._owed:
            self._heard = now
        self._owed += commands
        return data


def _about(answer: bytes) -> About:
    try:
        return About(**fields(answer, _NOTHING))
    except ValueError:
        raise RegisteringFailed(f"answered IDENTIFY with {_shown(answer)}") from None


def _shown(answer: bytes) -> str:
    return answer[:200].decode("utf-8", "backslashreplace")
