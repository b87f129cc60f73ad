"""One keep-alive HTTP connection to an nsqd or nsqlookupd, from Spark's driver or from a task. Knows no route.

    connection = Connection("http://a:4151", Access.of(options))
    connection.ask("POST", "/pub?topic=t", b"hello")     the whole answer, whatever its status
    connection.stream("/log/read?topic=t&offset=0")      an answer that is read as it comes
    patiently(lambda: connection.json("/info"), tries=5) again, with growing pauses, while what failed may pass

What goes wrong is NodeFailed, with the address in its one line and never a token. `passing` says whether it may pass
by itself: the network and a server that is busy or starting do, a refusal does not. Nothing is sent twice except a GET
on a connection that the server had closed meanwhile.

http.client, since it gets 2 GB/s of CPU out of a long answer and needs nothing installed on an executor.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from penstock.errors import NodeFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.spark.options import ConnectionOptions

T = TypeVar("T")

PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})  # statuses that may be others soon
LONGEST_PAUSE: Final = 5.0
_GONE: Final = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)


@dataclass(frozen=True, slots=True)
class Access:
    """What servers are shown, and what they have to show; no part of it that is secret is printed."""

    token: str = field(default="", repr=False)
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = field(default="", repr=False)
    timeout: float = 60.0  # for each connection, answer, and piece of one

    @classmethod
    def of(cls, options: ConnectionOptions, timeout: float = 60.0) -> Access:
        """By the options; what they leave open, by the environment of the process that this runs in."""
        return cls(
            token=options.secret("token"),
            ca_file=options.secret("tls_ca_file"),
            cert_file=options.secret("tls_cert_file"),
            key_file=options.secret("tls_key_file"),
            timeout=timeout,
        )

    def context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
            if self.cert_file:
                context.load_cert_chain(self.cert_file, self.key_file or None)
        except OSError as error:
            why = error.strerror or error
            raise NodeFailed(f"options tlsCaFile, tlsCertFile, tlsKeyFile: they cannot be used: {why}") from None
        return context


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def message(self) -> str:
        """The server's word for what is wrong, or its status."""
        try:
            return str(json.loads(self.body)["message"])
        except (ValueError, KeyError, TypeError):
            return f"HTTP {self.status}"


class Connection:
    """Opened by the first request, and again after whatever went wrong; for one thread."""

    def __init__(self, url: str, access: Access) -> None:
        self.url = url
        parts = urlsplit(url)
        host, port, timeout = str(parts.hostname), parts.port, access.timeout
        if parts.scheme == "https":
            self._http: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=timeout, context=access.context()
            )
        else:
            self._http = http.client.HTTPConnection(host, port, timeout=timeout)
        self._headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}

    def close(self) -> None:
        self._http.close()

    def ask(self, method: str, target: str, body: bytes | memoryview | None = None) -> Answer:
        """The whole answer, whatever its status; NodeFailed where there is none."""
        try:
            return _whole(self._send(method, target, body))
        except (OSError, http.client.HTTPException) as error:
            raise self.failed(error) from None

    def begin(self, method: str, target: str, body: bytes | memoryview) -> None:
        """Send a request whose answer is read by `end`, before anything else is sent."""
        try:
            self._http.request(method, target, body, self._headers)
        except (OSError, http.client.HTTPException) as error:
            raise self.failed(error) from None

    def end(self) -> Answer:
        """The answer to what `begin` sent."""
        try:
            return _whole(self._http.getresponse())
        except (OSError, http.client.HTTPException) as error:
            raise self.failed(error) from None

    def json(self, target: str) -> Any:
        """What a GET that must succeed answers."""
        answer = self.ask("GET", target)
        if answer.status != 200:
            raise self.refused(target, answer)
        try:
            return json.loads(answer.body)
        except ValueError:
            raise NodeFailed(f"{self.url}{target} answers no JSON: is it an nsqd or nsqlookupd?") from None

    def json_if_any(self, target: str) -> Any:
        """The same, and None where there is no such thing (404)."""
        try:
            return self.json(target)
        except NodeFailed as error:
            if error.status == 404:
                return None
            raise

    def stream(self, target: str) -> http.client.HTTPResponse | Answer:
        """An answer of status 200, to be read to its end (else `close`); any other one whole.

        Reading can fail with OSError and HTTPException, which `failed` puts into words.
        """
        try:
            found = self._send("GET", target, None)
            if found.status == 200:
                return found
            return _whole(found)
        except (OSError, http.client.HTTPException) as error:
            raise self.failed(error) from None

    def failed(self, error: Exception) -> NodeFailed:
        """What became of the connection, in words. It is closed."""
        self.close()
        verified = isinstance(error, ssl.SSLCertVerificationError)
        if verified:
            why = f"its certificate is not good: {getattr(error, 'verify_message', '')}"
        elif isinstance(error, TimeoutError):
            why = f"it did not answer within {self._http.timeout:g} s"
        elif isinstance(error, OSError):
            why = error.strerror or str(error)
        else:
            why = f"what it sent ended early or is no HTTP ({type(error).__name__})"
        return NodeFailed(f"{self.url} cannot be reached: {why}", passing=not verified)

    def refused(self, target: str, answer: Answer) -> NodeFailed:
        """The error for a status that was not expected."""
        return NodeFailed(
            f"{self.url}{target} answers {answer.message}", answer.status, passing=answer.status in PASSING
        )

    def _send(self, method: str, target: str, body: bytes | memoryview | None) -> http.client.HTTPResponse:
        kept = self._http.sock is not None
        try:
            return self._once(method, target, body)
        except _GONE:
            self.close()
            if not kept or method != "GET":
                raise
        return self._once(method, target, body)

    def _once(self, method: str, target: str, body: bytes | memoryview | None) -> http.client.HTTPResponse:
        self._http.request(method, target, body, self._headers)
        return self._http.getresponse()


def _whole(answer: http.client.HTTPResponse) -> Answer:
    return Answer(answer.status, _headers(answer), answer.read())


def _headers(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}


def patiently(attempt: Callable[[], T], tries: int, pause: Callable[[float], None] = time.sleep) -> T:
    """What the attempt gives; after a failure that may pass again, at most so many times in all."""
    for number in range(tries - 1):
        try:
            return attempt()
        except NodeFailed as error:
            if not error.passing:
                raise
            pause(pause_after(number))
    return attempt()


def pause_after(failures: int) -> float:
    """Seconds to wait after that many failures before this one: 0.1, 0.2, 0.4, up to 5."""
    return min(LONGEST_PAUSE, 0.1 * 2.0 ** min(failures, 10))
