"""/pub and /mpub where the log does not take it, and before it has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.errors import HttpError, LogError, Refused
from penstock.http import Later, Request, Response, always
from penstock.nsqd.http.publishing import Publishing
from penstock.nsqd.options import Options


class Home:
    """A topic that takes what it is given, or says why not; its tickets are the test's to answer."""

    def __init__(self, problem: LogError | None = None) -> None:
        self.problem = problem
        self.tickets: list[Any] = []
        self.bodies: list[bytes] = []
        self.topic = SimpleNamespace(name="t")

    def put(self, bodies: list[bytes], ticket: object) -> None:
        if self.problem is not None:
            raise self.problem
        self.bodies += bodies
        self.tickets.append(ticket)

    def put_soon(self, body: bytes, ticket: object) -> None:
        self.put([body], ticket)

    def publish(self, found: Any, ticket: object) -> None:
        self.put([bytes(found.data[found.start : found.stop])], ticket)


class Service:
    """As much of a service and its node as publishing knows."""

    def __init__(self, home: Home) -> None:
        self.options = Options()
        self.lines: list[str] = []
        self.logger = SimpleNamespace(error=self._log, warn=self._log)
        self.node = self
        self.homes = {"t": home}
        self.turns = 0
        self.dirtied = 0
        self.deferred: list[tuple[list[bytes], int]] = []

    def _log(self, text: str, *values: object) -> None:
        self.lines.append(text % values)

    def begin_turn(self) -> None:
        self.turns += 1

    def read_clock(self) -> None:
        """Nobody asks what time it is here."""

    def dirty(self, _home: object) -> None:
        self.dirtied += 1

    def defer(self, home: Home, bodies: list[bytes], delay: int, ticket: object) -> None:
        home.put([], ticket)
        self.deferred.append((bodies, delay))


def ask(service: Service, what: str, body: bytes, query: bytes = b"topic=t") -> Later:
    publishing = Publishing(cast("Any", service))
    request = Request(b"POST", b"/", query, {}, always(Response()), None, body)
    given = getattr(publishing, what)(request)
    assert isinstance(given, Later)
    return given


CASES = [("pub", b"m", b"topic=t"), ("mpub", b"a\nb", b"topic=t"), ("pub", b"m", b"topic=t&defer=5")]


@pytest.mark.parametrize(("what", "body", "query"), CASES, ids=["pub", "mpub", "deferred"])
def test_the_answer_is_given_when_the_ticket_is_done(what: str, body: bytes, query: bytes) -> None:
    home = Home()
    answer = ask(Service(home), what, body, query)
    assert answer.known is None
    home.tickets[0].done(None)
    assert answer.known is not None
    assert (answer.known.status, answer.known.body) == (200, b"OK")


@pytest.mark.parametrize(("what", "body", "query"), CASES, ids=["pub", "mpub", "deferred"])
def test_what_the_log_does_not_take_is_answered_503_and_logged(what: str, body: bytes, query: bytes) -> None:
    # given a log that refuses at once, and one that fails when it writes
    at_once, later = Home(Refused("no room")), Home()
    services = Service(at_once), Service(later)
    answers = [ask(service, what, body, query) for service in services]
    later.tickets[0].done(Refused("no room"))
    # then both are told the same
    for answer, service in zip(answers, services, strict=True):
        assert answer.known is not None
        assert (answer.known.status, answer.known.body) == (503, b'{"message":"PUB_FAILED"}')
        assert service.lines == ["HTTP: publishing failed: no room"]


def test_what_is_deferred_does_not_enter_the_log_now() -> None:
    home = Home()
    service = Service(home)
    ask(service, "pub", b"m", b"topic=t&defer=1500")
    assert (service.deferred, home.bodies, service.dirtied) == ([([b"m"], 1500 * 10**6)], [], 0)


def test_each_publish_is_part_of_a_turn() -> None:
    service = Service(Home())
    ask(service, "pub", b"m")
    ask(service, "mpub", b"m")
    assert (service.turns, service.dirtied) == (2, 2)


def test_a_word_that_is_neither_yes_nor_no_is_told_of() -> None:
    service = Service(Home())
    ask(service, "mpub", b"\0\0\0\1\0\0\0\1a", b"topic=t&binary=maybe")
    assert service.lines == ["deprecated value 'maybe' used for /mpub binary param"]


def test_the_longest_delay_is_the_option_s() -> None:
    service = Service(Home())
    service.options = Options(max_req_timeout=cast("Any", 2000 * 10**6))
    ask(service, "pub", b"m", b"topic=t&defer=2000")
    with pytest.raises(HttpError, match=r"^INVALID_DEFER$"):
        ask(service, "pub", b"m", b"topic=t&defer=2001")
