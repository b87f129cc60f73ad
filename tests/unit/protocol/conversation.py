r"""What a client says, as pieces of bytes, and the commands that are heard, one for each message.

    hear([b"  V2SUB t c\nRDY", b" 5\n"])    ->    [("SUB", "t", "c"), ("RDY", 5)]

Runs are taken apart and what only depends on how the bytes were cut is left out, so that the same conversation gives
the same list however it comes.
"""

from __future__ import annotations

import importlib
import struct
import sys
from typing import TYPE_CHECKING, Any, TypeAlias
from unittest.mock import patch

import hot_modules
from penstock.errors import ClientError, LineTooLong
from penstock.protocol.inbox import Inbox
from penstock.protocol.parser import Limits, Parser
from penstock.protocol.v2 import State
from tests.conftest import PlainFinder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

Heard: TypeAlias = list[tuple[Any, ...]]

V2 = b"  V2"
ID = b"0123456789abcdef"
NUMBER = 0x0123456789ABCDEF
SMALL = Limits(max_msg_size=100, max_body_size=300, max_rdy_count=2500, max_req_timeout=3_600_000_000_000)


def plain(module: str) -> ModuleType:
    """A module once more, plain whatever the build, and all hot ones that it knows."""
    hot = {name: sys.modules[name] for name in hot_modules.REASONS if name in sys.modules}
    with patch.dict(sys.modules, {"cython": None}), patch.object(sys, "meta_path", [PlainFinder, *sys.meta_path]):
        for name in hot:
            del sys.modules[name]
        return importlib.import_module(module)


# --- what is said


def sized(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def pub(topic: str, body: bytes) -> bytes:
    return f"PUB {topic}\n".encode() + sized(body)


def mpub(topic: str, bodies: list[bytes]) -> bytes:
    return f"MPUB {topic}\n".encode() + sized(struct.pack(">I", len(bodies)) + b"".join(map(sized, bodies)))


# --- what is heard


def bodies_of(publish: Any) -> list[bytes]:
    """The bodies as they lie in the buffer, up to its `stop` exactly."""
    found = []
    at = publish.start
    for _ in range(publish.count):
        at += publish.skip
        (size,) = struct.unpack_from(">I", publish.data, at)
        found.append(bytes(publish.data[at + 4 : at + 4 + size]))
        at += 4 + size
    assert at == publish.stop
    return found


def told(command: Any) -> Heard:
    """A command in plain words, one for each message that it is about."""
    match type(command).__name__:
        case "Fins":
            return [("FIN", command.text(place), id_) for place, id_ in enumerate(command.ids)]
        case "Pubs":
            return [("PUB", command.topic, body) for body in bodies_of(command)]
        case "Mpub":
            return [("MPUB", command.topic, bodies_of(command))]
        case "Opening":
            return []
        case name:
            return [(name.upper(), *command)]


class Ears:
    """One connection's inbox and parser."""

    def __init__(self, *, shared: int = 1 << 16, state: State = State.INIT, parser: type[Parser] = Parser) -> None:
        self.parser = parser(SMALL)
        self.inbox = Inbox(bytearray(shared))
        self.heard: Heard = []
        self.state = state
        self.parser.enter(state)

    def receive(self, piece: bytes) -> None:
        """A piece arrives, in as many reads as its room asks for."""
        while piece:
            room = memoryview(self.inbox.room())
            size = min(len(room), len(piece))
            room[:size] = piece[:size]
            piece = piece[size:]
            self.inbox.received(size)
            self._listen()

    def _listen(self) -> None:
        at = 0
        while (command := self.parser.next(self.inbox.data, at, self.inbox.end)) is not None:
            at = self.parser.at
            self.heard += told(command)
            self.state = self.state.after(type(command).__name__.upper())
            self.parser.enter(self.state)
        self.inbox.keep(self.parser.at, self.parser.needed)


def hear(
    pieces: Iterable[bytes], *, shared: int = 1 << 16, state: State = State.INIT, parser: type[Parser] = Parser
) -> Heard:
    """The commands in the pieces, as a connection hears them; the last is an error where there is one."""
    ears = Ears(shared=shared, state=state, parser=parser)
    try:
        for piece in pieces:
            ears.receive(piece)
    except ClientError as error:
        ears.heard.append(("error", error.answer))
    except LineTooLong:
        ears.heard.append(("dropped",))
    return ears.heard


def byte_by_byte(said: bytes) -> list[bytes]:
    return [said[at : at + 1] for at in range(len(said))]


def greeted(state: State = State.INIT) -> Parser:
    """A parser that has heard the first bytes."""
    parser = Parser(SMALL)
    assert parser.next(bytearray(V2), 0, 4) is None
    parser.enter(state)
    return parser
