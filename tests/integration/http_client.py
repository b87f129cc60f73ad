"""A plain HTTP client over a blocking socket: one connection, kept alive."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: dict[str, str]

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        """NSQ's word for what went wrong."""
        return str(self.json()["message"])


class Http:
    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)

    def close(self) -> None:
        self._connection.close()

    def send(self, method: str, target: str, body: bytes | Iterator[bytes] | None = None) -> None:
        """A body that comes in pieces goes in chunks."""
        self._connection.request(method, target, body=body, encode_chunked=True)

    def answer(self) -> Answer:
        answer = self._connection.getresponse()
        return Answer(answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()})

    def ask(self, method: str, target: str, body: bytes | None = None) -> Answer:
        self.send(method, target, body)
        return self.answer()

    def get(self, target: str) -> Answer:
        return self.ask("GET", target)

    def post(self, target: str, body: bytes = b"") -> Answer:
        return self.ask("POST", target, body)
