"""An auth server as NSQ's users write them: says what it was told to, and notes what it was asked."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    import ssl


class AuthServer:
    """`answers` by secret: an object, or bytes as they are; who has none is answered 403."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(parse_qs(urlsplit(self.path).query, keep_blank_values=True))

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, asked: dict[str, list[str]]) -> None:
                said = {key: values[0] for key, values in asked.items()}
                server.asked.append((f"{self.command} {urlsplit(self.path).path}", said))
                answer = server.answers.get(said["secret"])
                self.send_response(403 if answer is None else 200)
                self.end_headers()
                self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


def allowing(topic: str, *permissions: str, ttl: int = 60, **more: Any) -> dict[str, Any]:
    return {
        "ttl": ttl,
        "authorizations": [{"topic": topic, "channels": [".*"], "permissions": permissions}],
        **more,
    }
