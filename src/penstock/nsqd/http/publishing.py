# cython: annotation_typing=False
"""`/pub` and `/mpub`: the way of TCP's PUB and MPUB, with their answers at the end of the turn or after the flush."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from penstock.errors import BadMessage, ClientError, HttpError, LogError
from penstock.nsqd.http.arguments import number, topic
from penstock.nsqd.http.producers import key_of
from penstock.nsqd.http.tickets import OK, Published, PublishedOnce
from penstock.nsqd.producers import bodies_of
from penstock.protocol.commands import Publish
from penstock.protocol.mpub import MpubBody

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.http import Later, Response
    from penstock.http.request import Request
    from penstock.nsqd.home import Home
    from penstock.nsqd.service import Service

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_MS: Final = 10**6
_LINES: Final = frozenset({"false", "0"})
_BINARY: Final = frozenset({"true", "1"})
_ITS_OWN: Final = frozenset({"defer", "due", "producer"})  # arguments that NSQ's `/mpub` does not know


class Publishing:
    """Handlers; what they publish is written in the turn of the loop that brought it."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._node = service.node

    def pub(self, request: Request) -> Response | Later:
        body = request.body
        if not body:
            raise HttpError(400, "MSG_EMPTY")
        service, node = self._service, self._node
        service.begin_turn()
        ticket = Published(service)
        try:
            args = request.read_args()
            names = args.get("topic")
            home = node.homes.get(names[0]) if names else None
            if home is None:
                home = topic(request, node)
            wanted = args.get("defer")
            if wanted and (delay := self._delay(wanted[0])):
                node.defer(home, [body], delay, ticket)
            else:
                home.put_soon(body, ticket)
                node.dirty(home)
        except LogError as problem:
            ticket.done(problem)
        return ticket

    def _delay(self, text: str) -> int:
        """`defer=` in ms, as ns."""
        delay = int(text) * _MS if _INTEGER.fullmatch(text) else -1
        if not 0 <= delay <= self._service.options.max_req_timeout:
            raise HttpError(400, "INVALID_DEFER")
        self._service.read_clock()
        return delay

    def mpub(self, request: Request) -> Response | Later:
        service, node = self._service, self._node
        service.begin_turn()
        if not _ITS_OWN.isdisjoint(request.args):
            return self._mpub_otherwise(request)
        ticket = Published(service)
        try:
            home = topic(request, node)  # made before the body is looked at, as nsqd does
            if self._is_binary(request):
                home.publish(self._framed(home.topic.name, request.body), ticket)
            elif bodies := self._lines(request.body):
                home.put(bodies, ticket)
            else:
                return OK
            node.dirty(home)
        except LogError as problem:
            ticket.done(problem)
        return ticket

    def _mpub_otherwise(self, request: Request) -> Response | Later:
        """Later, or once: what NSQ's `/mpub` has not."""
        node = self._node
        key = key_of(request) if request.arg("producer") is not None else None
        delay = self._delay_of(request)
        ticket = PublishedOnce(self._service)
        try:
            home = topic(request, node)
            found = self._found(home, request)
            if not found:
                return OK
            if key is not None:
                node.producers.publish(home, key, found, delay, ticket)
                node.dirty(home)
            elif delay:
                node.defer(home, bodies_of(found), delay, ticket)
            else:  # due already
                home.put(bodies_of(found), ticket)
                node.dirty(home)
        except LogError as problem:
            ticket.done(problem)
        return ticket

    def _delay_of(self, request: Request) -> int:
        """`defer=` in ms, or what is left until `due=`, in ns."""
        wanted = request.arg("defer")
        if request.arg("due") is None:
            return self._delay(wanted) if wanted else 0
        self._service.read_clock()
        delay = max(0, number(request, "due") - self._service.clock.wall)
        if wanted is not None or delay > self._service.options.max_req_timeout:
            raise HttpError(400, "INVALID_DEFER")
        return delay

    def _found(self, home: Home, request: Request) -> Publish | Sequence[bytes]:
        if self._is_binary(request):
            return self._framed(home.topic.name, request.body)
        return self._lines(request.body)

    def _is_binary(self, request: Request) -> bool:
        wanted = request.arg("binary")
        if wanted is None or wanted in _LINES:
            return False
        if wanted not in _BINARY:  # nsqd takes whatever else stands there for a yes
            self._service.logger.warn("deprecated value '%s' used for /mpub binary param", wanted)
        return True

    def _lines(self, body: bytes) -> list[bytes]:
        """A message each; empty ones are passed over."""
        bodies = [line for line in body.split(b"\n") if line]
        if bodies and max(map(len, bodies)) > self._service.options.max_msg_size:
            raise HttpError(413, "MSG_TOO_BIG")
        return bodies

    def _framed(self, name: str, body: bytes) -> Publish:
        """Count and messages, each behind its size, as an MPUB over TCP; what stands behind the last is passed over."""
        data = bytearray(len(body).to_bytes(4, "big"))
        data += body
        options = self._service.options
        checked = MpubBody(options.max_msg_size, options.max_body_size)
        try:
            if not checked.check(data, 0, len(data)):
                raise checked.cut_off(len(data))
        except ClientError as problem:
            # a body that ends inside a message is one whose message is bad, here
            code = BadMessage.code if checked.checked else problem.code
            raise HttpError(413, code.removeprefix("E_")) from None
        return Publish(name, data, 8, checked.checked, checked.count, 0)
