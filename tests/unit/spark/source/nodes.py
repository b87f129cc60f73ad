"""Nodes that are none: an HTTP server each, whose logs a test makes, damages and deletes as it likes."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from penstock.protocol.batch import encode_records, header, seed_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

SECOND = 10**9


@dataclass
class FakeLog:
    """A topic's log, as `/log` shows it; batch number n was appended at second n + 1."""

    incarnation: str = "aaaaaaaaaaaaaaaa"
    earliest: int = 0
    committed: int = 0
    holes: list[tuple[int, int, str]] = field(default_factory=list)
    batches: list[bytes] = field(default_factory=list)
    readers: dict[str, int] = field(default_factory=dict)
    paused: bool = False
    base: int = 1 << 60

    def publish(self, *bodies: bytes) -> None:
        time = (len(self.batches) + 1) * SECOND
        self.batches.append(bytes(encode_records(self.committed, self.base, bodies, time, seed_of(self.incarnation))))
        self.committed += len(bodies)

    def hole(self, size: int, why: str) -> None:
        """The next so many offsets hold nothing."""
        self.holes.append((self.committed, self.committed + size, why))
        self.committed += size

    def read(self, offset: int, until: int) -> tuple[int, int, bytes]:
        end = min(until, self.committed)
        heads = [(header(batch), batch) for batch in self.batches]
        found = [(head, batch) for head, batch in heads if head.next > max(offset, self.earliest) and head.first < end]
        if not found:
            return max(offset, end), max(offset, end), b""
        return found[0][0].first, found[-1][0].next, b"".join(batch for _, batch in found)

    def at(self, time: int) -> int:
        firsts = [header(batch).first for batch in self.batches if header(batch).appended >= time]
        return max(self.earliest, firsts[0] if firsts else self.committed)


class FakeNode:
    """`broken`: so many of the next answers of `/log/read` break off in their middle. `requests` are all that came."""

    def __init__(self, identity: str = "1111111111111111", **logs: FakeLog) -> None:
        self.identity = identity
        self.logs = logs
        self.broken = 0
        self.requests: list[str] = []
        self.others: dict[str, Any] = {}  # other paths, and what they answer
        self._start(0)

    def _start(self, port: int) -> None:
        node = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                node._answer(self)

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.address}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10)

    def __enter__(self) -> FakeNode:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- answers

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        arguments = dict(parse_qsl(parts.query))
        self.requests.append(handler.path)
        handler.close_connection = not self._thread.is_alive()
        status, body, headers = self._route(parts.path, arguments)
        cut = parts.path == "/log/read" and self.broken > 0 and status == 200
        self.broken -= cut
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body[: len(body) * 2 // 3] if cut else body)
        handler.close_connection |= cut

    def _route(self, path: str, arguments: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        if path in self.others:
            return 200, json.dumps(self.others[path]).encode(), {}
        if path == "/info":
            return 200, json.dumps({"node": self.identity}).encode(), {}
        if path == "/stats":
            return 200, json.dumps({"topics": [{"topic_name": name} for name in self.logs]}).encode(), {}
        log = self.logs.get(arguments.get("topic", ""))
        if log is None:
            return 404, b'{"message":"TOPIC_NOT_FOUND"}', {}
        if arguments.get("incarnation", log.incarnation) != log.incarnation:
            return 409, b'{"message":"OTHER_INCARNATION"}', {}
        handle = {"/log": self._log, "/log/read": self._read, "/log/at": self._at, "/reader/commit": self._commit}[path]
        return handle(log, arguments)

    def _log(self, log: FakeLog, arguments: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        name = arguments.get("reader")
        segment = {"first": 0, "end": log.committed, "bytes": sum(map(len, log.batches))}
        found = {
            "node": self.identity,
            "topic": arguments["topic"],
            "incarnation": log.incarnation,
            "earliest": log.earliest,
            "committed": log.committed,
            "segments": [segment] if log.committed else [],
            "holes": log.holes,
            "reader": {"offset": log.readers[name], "paused": log.paused} if name in log.readers else None,
        }
        return 200, json.dumps(found).encode(), {}

    def _read(self, log: FakeLog, arguments: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        offset = int(arguments["offset"])
        if offset < log.earliest:
            return 416, json.dumps({"message": "NOT_RETAINED", "earliest": log.earliest}).encode(), {}
        if offset > log.committed:
            return 416, b'{"message":"BEYOND_THE_END"}', {}
        first, next_, body = log.read(offset, int(arguments["until"]))
        headers = {"X-Penstock-First": str(first), "X-Penstock-Next": str(next_), "X-Penstock-Node": self.identity}
        return 200, body, headers

    def _at(self, log: FakeLog, arguments: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        return 200, json.dumps({"offset": log.at(int(arguments["timestamp"]))}).encode(), {}

    def _commit(self, log: FakeLog, arguments: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        log.readers[arguments["reader"]] = int(arguments["offset"])
        return 200, b"{}", {}


def log_of(*bodies: Sequence[bytes], **more: Any) -> FakeLog:
    """A log with these batches."""
    log = FakeLog(**more)
    for each in bodies:
        log.publish(*each)
    return log
