"""A server that answers by a script: what each connection is sent back, request by request."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType


def answer(body: bytes, status: int = 200, *headers: bytes) -> bytes:
    """A whole answer with a length."""
    lines = [b"HTTP/1.1 %d Word" % status, b"Content-Length: %d" % len(body), *headers, b"", body]
    return b"\r\n".join(lines)


class Scripted:
    """`script`: for each connection in turn, the raw answers to its requests; after them it is closed."""

    def __init__(self, *script: Sequence[bytes]) -> None:
        self.requests: list[bytes] = []
        self._script = script
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Scripted:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(timeout=10)

    def _serve(self) -> None:
        for answers in self._script:
            try:
                client, _ = self._server.accept()
            except OSError:  # closed
                return
            with client, client.makefile("rb") as lines:
                for each in answers:
                    head = b"".join(iter(lines.readline, b"\r\n"))
                    self.requests.append(head)
                    client.sendall(each)
