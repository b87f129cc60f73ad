# cython: annotation_typing=False
"""One client's conversation: its commands carried out, its answers in order. Bytes in, bytes out; no socket, no clock.

    received --parser--> command --> node, home, channel
                            '--> answer --queue--> out          an answer waits for those before it; messages and
                                                                heartbeats do not

Handlers carry the wire name of their command. What is fatal ends the conversation behind the answers that are owed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.broker.consumer import Consumer
from penstock.errors import (
    AuthDisabled,
    ClientError,
    DpubFailed,
    FinFailed,
    LineTooLong,
    LogError,
    MpubFailed,
    PubFailed,
    ReqFailed,
    SubFailed,
    TouchFailed,
)
from penstock.protocol import frames
from penstock.protocol.commands import Auth, Cls, Dpub, Fins, Identify, Mpub, Opening, Pubs, Rdy, Req, Sub, Touch
from penstock.protocol.frames import CLOSE_WAIT, HEARTBEAT, OK
from penstock.protocol.identify import identify
from penstock.protocol.ids import NO_ID
from penstock.protocol.inbox import Inbox
from penstock.protocol.parser import Parser
from penstock.protocol.v2 import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from penstock.broker.channel import Channel
    from penstock.nsqd.gate import Gate
    from penstock.nsqd.home import Home
    from penstock.nsqd.node import Node
    from penstock.nsqd.service import Service
    from penstock.protocol.identify import Agreement
    from penstock.stream import Tls

_MANY: Final = 1024  # RDY of a consumer that takes messages by the hundred,
_BUSY: Final = 8  # and how many in flight it has then, at least
_PRUNE: Final = 64  # deliveries remembered before those that left are forgotten


class Owed:
    """An answer that others may have to wait for; nothing yet, until it is known."""

    __slots__ = ("_count", "_failed", "_session", "_size", "frame", "last")

    def __init__(self, session: Session, count: int, size: int, failed: type[ClientError]) -> None:
        self._session = session
        self._count = count
        self._size = size
        self._failed = failed
        self.frame: bytes | None = None
        self.last = False  # it failed: nothing behind it is answered
        session.pending += size

    def done(self, error: LogError | None) -> None:
        self._session.pending -= self._size
        if error is None:
            self.frame = OK * self._count
        else:
            what = self._failed.code[2:].partition("_")[0]
            failure = self._failed(f"{what} failed {error}")
            self._session.log_error(failure)
            self.frame = frames.error(failure.answer)
            self._session.ending = self.last = True
        self._session.send_owed()


class Ready:
    """An answer that is known, behind others that are not."""

    __slots__ = ("frame",)
    last = False

    def __init__(self, frame: bytes) -> None:
        self.frame: bytes | None = frame


class Session:
    """The V2 conversation of one connection."""

    def __init__(self, service: Service, name: str, out: Callable[[bytes], None], shared: bytearray) -> None:
        self.service = service
        self.node: Node = service.node
        self.name = name
        self.inbox = Inbox(shared)
        host = name.rpartition(":")[0].strip("[]")
        self.agreement = replace(service.defaults, client_id=host, hostname=host)
        self.state = State.INIT
        self.connected = service.clock.wall
        self.consumer: Consumer | None = None
        self.channel: Channel | None = None
        self.home: Home | None = None
        self.published: dict[str, int] = {}
        self.ending = False  # nothing more is taken; what is owed is sent, then the connection is closed
        self.held = False  # nothing is taken until something has happened: an upgrade, an authorization
        self.upgrade: Agreement | None = None  # what the connection becomes when all that is owed is sent
        self.gate: Gate | None = None  # where not everybody may do everything
        self.tls: Tls | None = None
        self.moved = False  # a command became whole since somebody looked
        self.unsent = 0  # bytes that the socket has not taken
        self.sent = 0  # bytes given to it
        self.pending = 0  # bytes of its publishes that are not answered
        self.beating = 0  # ns between its heartbeats
        self._cut_off = False  # the client sent its last while it was held
        self._out = out
        self._parser = Parser(service.limits)
        self._owed: list[Owed | Ready] = []
        self._deliveries: deque[tuple[int, Sequence[int]]] = deque()  # where each begins in the stream, and what it is

    # --- bytes

    def received(self, size: int) -> None:
        """So many bytes lie in the inbox's room."""
        inbox, parser = self.inbox, self._parser
        inbox.received(size)
        at = 0
        try:
            while not (self.ending or self.held):
                command = parser.next(inbox.data, at, inbox.end)
                at = parser.at
                if command is None:
                    break
                if self.gate is None or self.gate.lets(command):
                    self._handle(command)
        except LineTooLong:
            self.ending = True  # behind what is owed, and without a word
        except ClientError as error:
            self.fail(error)
        if at:
            self.moved = True
        if not self.ending:
            inbox.keep(at, parser.needed)

    def go_on(self, behind: Callable[[], None] | None = None) -> None:
        """What it was held for has happened; `behind` is what follows from it."""
        if self.ending:
            return
        self.held = False
        try:
            if behind is not None:
                behind()
        except ClientError as error:
            self.fail(error)
        if not self.ending:
            self.received(0)
        if self._cut_off and not self.held:
            self.cut_off()
        self.service.outgoing(self.service.of_session[self])

    def handle(self, command: Any) -> None:
        """Carry it out, if its client may do that now."""
        if self.gate is None or self.gate.lets(command):
            self._handle(command)

    def cut_off(self) -> None:
        """The client sends no more, perhaps in the middle of a command; it still gets what it is owed."""
        if self.ending:
            return
        if self.held:
            self._cut_off = True
            return
        if error := self._parser.cut_off(self.inbox.kept):
            self.fail(error)
        self.ending = True

    def end(self) -> None:
        """The channel is gone, and nsqd closes the connections of its consumers."""
        self.ending = True
        self.service.outgoing(self.service.of_session[self])

    def write(self, data: bytes) -> None:
        size = len(data)
        self.sent += size
        self.unsent += size
        self._out(data)

    @property
    def ended(self) -> bool:
        """All that was owed is sent, and nothing more will be."""
        return self.ending and not self._owed

    @property
    def owes(self) -> int:
        """Answers that wait for something, or for one that does."""
        return len(self._owed)

    @property
    def busy(self) -> bool:
        """A consumer with plenty to do, and room for more: what it says may wait for a millisecond."""
        consumer, channel = self.consumer, self.channel
        if consumer is None or channel is None or consumer.ready < _MANY or self.ending:
            return False
        return channel.unfinished.slots.in_flight_of(consumer.holder) >= _BUSY

    # --- answers

    def answer(self, frame: bytes) -> None:
        if self._owed:
            self._owed.append(Ready(frame))
        else:
            self.write(frame)

    def send_owed(self) -> None:
        """What is known of the answers that are owed, in order."""
        owed, known = self._owed, 0
        for each in owed:
            if each.frame is None:
                break
            self.write(each.frame)
            known += 1
            if each.last:
                known = len(owed)
                break
        del owed[:known]

    def fail(self, error: ClientError) -> None:
        """Tell the client what was wrong; a fatal error ends the conversation."""
        self.log_error(error)
        self.answer(frames.error(error.answer))
        if error.fatal:
            self.ending = True

    def log_error(self, error: ClientError) -> None:
        self.service.logger.error("[%s] - %s", self.name, error.answer.decode("utf-8", "replace"))

    def heartbeat(self) -> None:
        self.write(HEARTBEAT)

    # --- commands

    def _handle(self, command: Any) -> None:
        _HANDLERS[type(command)](self, command)

    def identify(self, command: Identify) -> None:
        upgraded = self.agreement.upgraded
        identified = identify(command.body, self.service.offer, self.agreement)
        agreement = self.agreement = identified.agreement
        self._parser.heartbeats = agreement.heartbeat_interval > 0
        self.service.beats(self)
        self.answer(frames.answer(identified.answer))
        if agreement.upgraded and not upgraded:
            self.upgrade = agreement
            self.held = True

    def auth(self, command: Auth) -> None:
        if self.gate is None or not self.gate.asks:
            raise AuthDisabled("AUTH disabled")
        self.gate.auth(command.secret)

    def sub(self, command: Sub) -> None:
        try:
            home = self.node.topic(command.topic)
            channel = self.node.channel(home, command.channel)
        except LogError as error:
            raise SubFailed(f"SUB failed {error}") from error
        most = self.service.options.max_channel_consumers
        if most and len(channel.consumers) >= most:
            where = f"{command.topic}:{command.channel}"
            raise SubFailed(f"SUB failed consumers for {where} exceeds limit of {most}")
        agreement = self.agreement
        self.consumer = Consumer(self, message_timeout=agreement.msg_timeout, sample_rate=agreement.sample_rate)
        self.home, self.channel = home, channel
        channel.join(self.consumer)
        self._enter(self.state.after("SUB"))
        self.answer(OK)

    def _enter(self, state: State) -> None:
        self.state = state
        self._parser.enter(state)

    def pubs(self, command: Pubs) -> None:
        self._publish(command, PubFailed, command.count)

    def mpub(self, command: Mpub) -> None:
        self._publish(command, MpubFailed, 1)

    def _publish(self, command: Pubs | Mpub, failed: type[ClientError], answers: int) -> None:
        owed = Owed(self, answers, command.stop - command.start, failed)
        self._owed.append(owed)
        try:
            home = self.node.topic(command.topic)
            home.publish(command, owed)
        except LogError as error:
            owed.done(error)
            return
        self.node.dirty(home)
        self.published[command.topic] = self.published.get(command.topic, 0) + command.count

    def opening(self, command: Opening) -> None:
        try:
            self.node.topic(command.topic)
        except LogError as error:
            raise MpubFailed(f"MPUB failed {error}") from error

    def dpub(self, command: Dpub) -> None:
        owed = Owed(self, 1, len(command.body), DpubFailed)
        self._owed.append(owed)
        try:
            home = self.node.topic(command.topic)
            if command.delay:
                self.service.read_clock()
                self.node.defer(home, [command.body], command.delay, owed)
            else:
                home.put([command.body], owed)
                self.node.dirty(home)
        except LogError as error:
            owed.done(error)
            return
        self.published[command.topic] = self.published.get(command.topic, 0) + 1

    def rdy(self, command: Rdy) -> None:
        channel, consumer = self._subscription()
        if self.state is State.SUBSCRIBED:
            channel.ready(consumer, command.count)
            self.service.pump(channel)

    def fin(self, command: Fins) -> None:
        channel, consumer = self._subscription()
        failed = channel.finish(consumer, command.ids, self._base)
        if channel.latency is not None:
            channel.latency.finished(command.ids, failed or (), self.service.clock.wall)
        self.service.pump(channel)
        for place in failed or ():
            why = channel.why_not(command.ids[place] - self._base)
            self.fail(FinFailed(f"FIN {command.text(place)} failed {why}"))

    def req(self, command: Req) -> None:
        channel, consumer = self._subscription()
        if command.delay:
            self.service.read_clock()
        offset = self._offset(command.id)
        if offset < 0 or not channel.requeue(consumer, offset, self.service.clock.now, command.delay):
            raise_ = ReqFailed(f"REQ {command.text} failed {channel.why_not(offset)}")
            self.fail(raise_)
        self.service.pump(channel)

    def touch(self, command: Touch) -> None:
        channel, consumer = self._subscription()
        offset = self._offset(command.id)
        most = self.service.options.max_msg_timeout
        if offset < 0 or not channel.touch(consumer, offset, self.service.clock.now, most):
            self.fail(TouchFailed(f"TOUCH {command.text} failed {channel.why_not(offset)}"))

    def cls(self, _command: Cls) -> None:
        _, consumer = self._subscription()
        consumer.closing = True
        self._enter(self.state.after("CLS"))
        self.answer(CLOSE_WAIT)

    def _subscription(self) -> tuple[Channel, Consumer]:
        if self.channel is None or self.consumer is None:
            raise AssertionError("the table of states lets no command here without a subscription")
        return self.channel, self.consumer

    @property
    def _base(self) -> int:
        return self.home.base if self.home is not None else 0

    def _offset(self, id_: int) -> int:
        return -1 if id_ == NO_ID else id_ - self._base

    # --- a consumer's sink

    def send(self, frames_: bytes, offsets: Sequence[int]) -> None:
        """Messages of the channel that it is subscribed to."""
        self._deliveries.append((self.sent, offsets))
        if len(self._deliveries) > _PRUNE:
            self._prune()
        if self.channel is not None and self.channel.latency is not None:
            self.channel.latency.given(offsets, self._base, frames_)
        self.write(frames_)

    def _prune(self) -> None:
        """Forget deliveries of which something has left the process."""
        left = self.sent - self.unsent
        while self._deliveries and self._deliveries[0][0] < left:
            self._deliveries.popleft()

    def leave(self, now: int, *, aborted: bool) -> None:
        """The connection is gone."""
        channel, consumer = self.channel, self.consumer
        if channel is None or consumer is None or not consumer.holder:
            return
        self._prune()
        unsent = [offset for _, offsets in self._deliveries for offset in offsets]
        channel.leave(consumer, now, unsent, aborted=aborted and self.state is not State.CLOSING)


_HANDLERS: Final[dict[type, Callable[[Session, Any], None]]] = {
    Identify: Session.identify,
    Auth: Session.auth,
    Sub: Session.sub,
    Pubs: Session.pubs,
    Mpub: Session.mpub,
    Opening: Session.opening,
    Dpub: Session.dpub,
    Rdy: Session.rdy,
    Fins: Session.fin,
    Req: Session.req,
    Touch: Session.touch,
    Cls: Session.cls,
}
