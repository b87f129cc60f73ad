"""A daemon as a process of its own, on free loopback ports, ended by its pid."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tests.integration.client import Client
from tests.integration.http_client import Http

if TYPE_CHECKING:
    from collections.abc import Mapping

_LISTENING = re.compile(r"(TCP|HTTPS?): listening on (?:\S+:(\d+)|/\S+)$")


class Daemon:
    """Started by `start`, which returns when it listens; `log` has every line that it wrote.

    `start` takes flags that this one start has besides: those of an address count more than a free one.
    `environment` is what its processes have besides the one of the test, `program` another daemon than ours.
    """

    module = ""
    program: tuple[str, ...] = ()
    environment: Mapping[str, str] = MappingProxyType({})

    def __init__(self, *flags: str) -> None:
        self.flags = flags
        self.log: list[str] = []
        self._written = threading.Condition()
        self.start()

    def start(self, *flags: str) -> None:
        command = [*(self.program or (sys.executable, "-m", self.module))]
        free = (f"--{kind}-address=127.0.0.1:0" for kind in ("tcp", "http", "https"))
        command += [*free, *self.flags, *flags]
        wanted = 3 if any(flag.startswith("--tls-cert") for flag in command) else 2
        environment = {**os.environ, **self.environment}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        ports: dict[str, int] = {}
        if self.process.stderr is None:
            raise AssertionError("no standard error")
        for line in self.process.stderr:
            self.log.append(line)
            if found := _LISTENING.search(line):
                ports[found[1]] = int(found[2] or -1)
            if len(ports) == wanted:
                break
        else:
            self.process.stderr.close()
            self.process.wait(timeout=20)
            raise AssertionError("".join(self.log))
        self.tcp, self.http, self.https = ports["TCP"], ports["HTTP"], ports.get("HTTPS", -1)
        self._reader = threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True)
        self._reader.start()

    def _read(self, lines: Any) -> None:
        for line in lines:
            with self._written:
                self.log.append(line)
                self._written.notify_all()

    def wait_for_line(self, text: str) -> None:
        """Until a line of the log has this text."""
        with self._written:
            if not self._written.wait_for(lambda: any(text in line for line in self.log), timeout=10):
                raise AssertionError(f"no line with {text!r}\n" + "".join(self.log))

    def get(self, target: str) -> dict[str, Any]:
        """What is answered, a JSON object."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{target}", timeout=10) as answer:
            found = json.load(answer)
        if not isinstance(found, dict):
            raise TypeError("no object")
        return found

    def reload(self) -> None:
        """It reads its files again, and has done so."""
        before = len(self.log)
        self.process.send_signal(signal.SIGHUP)
        with self._written:
            if not self._written.wait_for(lambda: any("RELOAD: " in line for line in self.log[before:]), timeout=10):
                raise AssertionError("it did not read them")

    def resident(self) -> int:
        """Bytes of memory."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        if found is None:
            raise AssertionError("no VmRSS")
        return int(found[1]) << 10

    def kill(self) -> None:
        """As `kill -9`."""
        self.process.kill()
        self._ended()

    def stop(self) -> int:
        """As an operator does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def _ended(self) -> int:
        code = self.process.wait(timeout=20)
        self._reader.join(timeout=5)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code

    def assert_calm(self) -> None:
        """Nothing went wrong that nobody meant to."""
        bad = [line for line in self.log if "Traceback" in line or "Exception" in line]
        if bad:
            raise AssertionError("".join(self.log[-50:]))


class Nsqd(Daemon):
    module = "penstock.nsqd.main"

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        super().__init__(f"--data-path={folder}", *flags)

    def client(self, *, timeout: float = 10.0) -> Client:
        return Client(self.tcp, timeout=timeout)

    def stats(self, query: str = "") -> dict[str, Any]:
        return self.get(f"/stats?format=json{query}")

    def channel(self, topic: str, channel: str) -> dict[str, Any]:
        found = self.stats(f"&topic={topic}&channel={channel}")["topics"][0]["channels"][0]
        if not isinstance(found, dict):
            raise TypeError("no object")
        return found


class Nsqlookupd(Daemon):
    module = "penstock.nsqlookupd.main"

    def start_again(self) -> None:
        """On the ports that it had."""
        self.start(f"--tcp-address=127.0.0.1:{self.tcp}", f"--http-address=127.0.0.1:{self.http}")

    def producers(self, topic: str) -> list[int]:
        """The TCP ports of those that a look-up tells of, sorted."""
        return self._look_up(topic, "")[0]

    def wait_for_producers(self, topic: str, *ports: int) -> None:
        """Until a look-up tells of these, and of no others."""
        since, deadline = "", time.monotonic() + 15
        while True:
            found, since = self._look_up(topic, f"&wait=15s&since={since}")
            if found == sorted(ports):
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"{found}, not {sorted(ports)}")

    def _look_up(self, topic: str, query: str) -> tuple[list[int], str]:
        """And the revision of that."""
        with closing(Http(self.http)) as http:
            answer = http.get(f"/lookup?topic={topic}{query}")
        producers = answer.json()["producers"] if answer.status == 200 else []
        return sorted(each["tcp_port"] for each in producers), answer.headers["x-penstock-revision"]
