"""A client of the simulation: says NSQ V2 in bytes cut anywhere, and holds every answer against the model."""

from __future__ import annotations

import json
import struct
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.wire import MESSAGE, Frame, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.simulation.model import Channel, Model, Publish
    from tests.simulation.world import World

MS = 10**6


class Command(NamedTuple):
    stop: int  # where its bytes end in the stream
    topic: str  # that it may make
    begin: Callable[[], None]  # before the node has the last of them,
    done: Callable[[], None]  # and after that: what it has carried out


class Expected(NamedTuple):
    """The next answer; `failed` is told its error, where one may come."""

    answer: Callable[[bytes], None]
    failed: Callable[[bytes], None] | None = None


class Client:
    """One connection."""

    def __init__(self, world: World, model: Model, name: str) -> None:
        self.world = world
        self.model = model
        self.name = name
        self.channel: Channel | None = None
        self.subscribes: tuple[str, str] | None = None
        self.timeout: int = world.options.msg_timeout
        self.ready = 0
        self.closing = self.asked_to_close = False
        self.gone = False
        self.hand: dict[bytes, bytes] = {}  # body -> id of what it read and did not give back
        self._ids: dict[bytes, bytes] = {}
        self._outbox = b""
        self._said = 0  # bytes put into the outbox so far
        self._fed = 0  # and out of it
        self._commands: deque[Command] = deque()
        self._expected: deque[Expected] = deque()
        self.wire = Wire(world, name, self)

    def __repr__(self) -> str:
        return self.name

    # --- saying

    def _say(
        self,
        line: str,
        body: bytes | None = None,
        *,
        topic: str = "",
        begin: Callable[[], None] = lambda: None,
        done: Callable[[], None],
    ) -> None:
        data = line.encode() + b"\n" + (b"" if body is None else struct.pack(">I", len(body)) + body)
        self._outbox += data
        self._said += len(data)
        self._commands.append(Command(self._said, topic, begin, done))

    def feed(self, size: int) -> None:
        """The node reads so many bytes of what was said; where a command may end it, one command at a time."""
        until = min(self._fed + size, self._said)
        self._mark(until)
        while self._fed < until and not self.wire.session.ending:
            self._feed(min(until, self._commands[0].stop) if self.model.troubled else until)

    def _feed(self, until: int) -> None:
        size = until - self._fed
        part, self._outbox = self._outbox[:size], self._outbox[size:]
        self._fed = until
        before = len(self._commands)
        self.wire.receive(part)
        while self._commands and self._commands[0].stop <= self._fed:
            self._commands.popleft().done()
        if self.wire.session.ending and len(self._commands) == before:
            self._commands.popleft().done()  # its line was enough to fail: an MPUB that could not make its topic

    def _mark(self, until: int) -> None:
        for command in self._commands:
            if command.stop <= until:
                command.begin()
            if command.topic:
                self.model.touching.add(command.topic)
                if self.model.troubled:
                    self.model.attempted.add(command.topic)
            if command.stop > until:
                return  # the line of an MPUB opens its topic before its body is here

    @property
    def unfed(self) -> int:
        return len(self._outbox)

    def _expect(self, answer: Callable[[bytes], None], failed: Callable[[bytes], None] | None = None) -> None:
        self._expected.append(Expected(answer, failed))

    # --- commands

    def identify(self, timeout: int) -> None:
        self.timeout = timeout
        asked = json.dumps({"msg_timeout": timeout // MS}).encode()
        self._say("IDENTIFY", asked, done=lambda: self._expect(_ok))

    def subscribe(self, topic: str, channel: str) -> None:
        self.subscribes = (topic, channel)

        def subscribed(answer: bytes) -> None:
            _ok(answer)
            self.channel = self.model.topics[topic].channels[channel]
            self.channel.clients.append(self)

        def failed(error: bytes) -> None:
            self.model.may_fail(error)
            self.model.unsure()

        self._say(f"SUB {topic} {channel}", topic=topic, done=lambda: self._expect(subscribed, failed))

    def get_ready(self, count: int) -> None:
        def done() -> None:
            if not self.closing:
                self.ready = count

        self._say(f"RDY {count}", done=done)

    def publish(self, publishes: Sequence[Publish], delay: int = 0) -> None:
        """PUB, MPUB or DPUB."""
        topic = publishes[0].topic
        if delay:
            line, body = f"DPUB {topic} {delay // MS}", publishes[0].body
        elif len(publishes) == 1:
            line, body = f"PUB {topic}", publishes[0].body
        else:
            framed = (struct.pack(">I", len(publish.body)) + publish.body for publish in publishes)
            line, body = f"MPUB {topic}", struct.pack(">I", len(publishes)) + b"".join(framed)

        def begin() -> None:
            for publish in publishes:
                publish.asked, publish.wall = self.model.step, self.model.clock.wall
                publish.due = self.model.clock.wall + delay if delay else 0

        def failed(error: bytes) -> None:
            if self.model.deleted.get(topic, -1) < publishes[0].asked:
                self.model.may_fail(error)

        def answered(answer: bytes) -> None:
            _ok(answer)
            for publish in publishes:
                self.model.answered(publish)

        self._say(line, body, topic=topic, begin=begin, done=lambda: self._expect(answered, failed))

    def finish(self, body: bytes) -> None:
        self._about(body, "FIN", "", lambda channel: self.model.finish(self, channel, body))

    def requeue(self, body: bytes, delay: int) -> None:
        line = f" {delay // MS}"
        self._about(body, "REQ", line, lambda channel: self.model.requeue(self, channel, body, delay))

    def touch(self, body: bytes) -> None:
        most = self.world.options.max_msg_timeout
        self._about(body, "TOUCH", "", lambda channel: self.model.touch(self, channel, body, self.timeout, most))

    def _about(self, body: bytes, word: str, rest: str, told: Callable[[Channel], bool]) -> None:
        """A command about a message that it was given; an answer comes when the message is not its own any more."""
        message_id = self.hand[body] if word == "TOUCH" else self.hand.pop(body)

        def done() -> None:
            if self.channel is not None and not told(self.channel):
                self._expect(_error(f"E_{word}_FAILED {word} {message_id.decode()} failed"))

        self._say(f"{word} {message_id.decode()}{rest}", done=done)

    def close_slowly(self) -> None:
        self.asked_to_close = True

        def done() -> None:
            self.closing = True
            self._expect(_error("CLOSE_WAIT"))

        self._say("CLS", done=done)

    # --- what comes

    def given(self, frame: Frame) -> None:
        if frame.kind == MESSAGE:
            self._given(frame.data)
            return
        expected = self._expected.popleft()
        if frame.kind == 1 and expected.failed is not None:
            expected.failed(frame.data)
        else:
            expected.answer(frame.data)

    def _given(self, data: bytes) -> None:
        (attempts,) = struct.unpack_from(">H", data, 8)
        message_id, body = data[10:26], data[26:]
        assert self.channel is not None, "a message without a subscription"
        assert not self.closing, "a message behind CLOSE_WAIT"
        assert self.model.ids[int(message_id, 16)] == body
        self.model.delivered(self, self.channel, body, attempts)
        held = self.channel.pending[body]
        held.until = self.model.clock.now + self.timeout
        in_flight = sum(held.client is self for held in self.channel.pending.values())
        assert in_flight <= self.ready, f"{in_flight} in flight and RDY {self.ready}"

    def read(self, frame: Frame) -> None:
        if frame.kind == MESSAGE:
            self.hand[frame.data[26:]] = frame.data[10:26]

    def left(self, unread: list[Frame], *, aborted: bool) -> None:
        self.gone = True
        unsent = {frame.data[26:] for frame in unread if frame.kind == MESSAGE}
        if self.channel is not None:
            aborted = aborted and not self.closing
            self.model.left(self, self.channel, unsent, self.timeout, aborted=aborted)


def _ok(answer: bytes) -> None:
    assert answer == b"OK", answer


def _error(beginning: str) -> Callable[[bytes], None]:
    def expected(answer: bytes) -> None:
        assert answer.startswith(beginning.encode()), f"{beginning} was expected, not {answer!r}"

    return expected
