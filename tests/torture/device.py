"""A disk in a process of its own: power cuts and failing calls under a whole node, which may be killed at any moment.

device process   FailingFiles over PowerCuts (tests.kit), a socket         python -m tests.torture.device SOCKET
node's process   its `Files` asks there, one connection a thread           python -m tests.torture.on_device FLAGS
the test         `Device`: kill what the node left half done, or cut the power
"""

from __future__ import annotations

import subprocess
import sys
import threading
from multiprocessing.connection import Client, Connection, Listener
from random import Random
from typing import TYPE_CHECKING, Any, Final

from penstock.log.files import Files
from tests.kit import FailingFiles, PowerCuts
from tests.kit.power_cuts import Moment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typing_extensions import Buffer

    from tests.kit.device import Device as State

DATA: Final = "/data"


class Latest(PowerCuts):
    """Remembers its last moment only: a node makes thousands a second."""

    def _record(self, device: State) -> None:
        self._device = device
        self._moments = [Moment(self.step + 1, device, self, stale=self._stale)]


class Server:
    """Answers calls of `Files` by name, and what the test asks for."""

    def __init__(self) -> None:
        disk = Latest()
        disk.make_directory(DATA)
        disk.flush_all(DATA)
        self._life(disk)
        self._callers: set[threading.Thread] = set()

    def _life(self, disk: PowerCuts) -> None:
        self._disk = disk
        self._files = FailingFiles(disk)

    def serve(self, path: str) -> None:
        with Listener(path, "AF_UNIX") as listener:
            print("listening", flush=True)
            while True:
                connection = listener.accept()
                if connection.recv() == "test":
                    threading.Thread(target=self._test, args=(connection,), daemon=True).start()
                else:
                    caller = threading.Thread(target=self._answer, args=(connection,), daemon=True)
                    self._callers.add(caller)
                    caller.start()

    def _answer(self, connection: Connection) -> None:
        """What a thread of the node asks, until its end of the socket is gone."""
        try:
            while True:
                method, arguments, named = connection.recv()
                connection.send(self._call(method, arguments, named))
        except (EOFError, OSError):
            self._callers.discard(threading.current_thread())

    def _call(self, method: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, OSError | None]:
        try:
            found = getattr(self._files, method)(*arguments, **named)
            return (list(found) if method == "list" else found), None
        except OSError as error:
            return None, error

    def _test(self, connection: Connection) -> None:
        try:
            while True:
                method, *arguments = connection.recv()
                getattr(self, method)(*arguments)
                connection.send(None)
        except EOFError:
            return

    def kill(self) -> None:
        """The node is gone: what it had asked for is done first."""
        for caller in list(self._callers):
            caller.join()
        self._files.heal()
        killed = self._disk.now.kill()
        killed.__class__ = Latest
        self._life(killed)

    def cut(self, seed: int) -> None:
        self.kill()
        self._life(Latest(next(self._disk.now.cuts(Random(seed), 1))))

    def fail(self, error: int, on: tuple[str, ...], skip: int, times: int, written: int) -> None:
        self._files.fail(error, on=on, skip=skip, times=times, written=written)

    def heal(self) -> None:
        self._files.heal()


class Device:
    """The test's end: a device process, until `close`."""

    def __init__(self, place: Path) -> None:
        self.socket = f"{place}/device"
        command = [sys.executable, "-m", "tests.torture.device", self.socket]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if self._process.stdout is None or "listening" not in self._process.stdout.readline():
            raise AssertionError("the device does not listen")
        self._connection = Client(self.socket, "AF_UNIX")
        self._connection.send("test")
        self.boot = 1

    def _ask(self, *what: object) -> None:
        self._connection.send(what)
        self._connection.recv()

    def kill(self) -> None:
        """To be called when the node's process is gone."""
        self._ask("kill")

    def cut(self, seed: int) -> None:
        """So too; the power was, as well."""
        self._ask("cut", seed)
        self.boot += 1

    def fail(self, error: int, on: tuple[str, ...], skip: int = 0, times: int = 1, written: int = 0) -> None:
        self._ask("fail", error, on, skip, times, written)

    def heal(self) -> None:
        self._ask("heal")

    def close(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait(timeout=10)
        if self._process.stdout is not None:
            self._process.stdout.close()


class RemoteFiles(Files):
    """The node's end."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._here = threading.local()

    def _ask(self, method: str, *arguments: object, **named: object) -> Any:
        connection = getattr(self._here, "connection", None)
        if connection is None:
            connection = self._here.connection = Client(self._socket, "AF_UNIX")
            connection.send("node")
        connection.send((method, arguments, named))
        found, error = connection.recv()
        if error is not None:
            raise error
        return found

    def open(self, path: str, **how: bool) -> int:
        return int(self._ask("open", path, **how))

    def close(self, fd: int) -> None:
        self._ask("close", fd)

    def write(self, fd: int, data: Buffer, position: int) -> int:
        return int(self._ask("write", fd, bytes(data), position))

    def read(self, fd: int, size: int, position: int) -> bytes:
        return bytes(self._ask("read", fd, size, position))

    def read_now(self, fd: int, size: int, position: int) -> bytes | None:
        found: bytes | None = self._ask("read_now", fd, size, position)
        return found

    def truncate(self, fd: int, size: int) -> None:
        self._ask("truncate", fd, size)

    def size(self, fd: int) -> int:
        return int(self._ask("size", fd))

    def flush(self, fd: int) -> None:
        self._ask("flush", fd)

    def flush_directory(self, path: str) -> None:
        self._ask("flush_directory", path)

    def flush_all(self, path: str) -> None:
        self._ask("flush_all", path)

    def rename(self, source: str, target: str) -> None:
        self._ask("rename", source, target)

    def unlink(self, path: str) -> None:
        self._ask("unlink", path)

    def make_directory(self, path: str) -> None:
        self._ask("make_directory", path)

    def remove_directory(self, path: str) -> None:
        self._ask("remove_directory", path)

    def list(self, path: str) -> Iterator[tuple[str, bool]]:
        yield from self._ask("list", path)

    def exists(self, path: str) -> bool:
        return bool(self._ask("exists", path))

    def free(self, path: str) -> int:
        return int(self._ask("free", path))

    def lock_directory(self, path: str) -> int:
        return int(self._ask("lock_directory", path))


if __name__ == "__main__":
    Server().serve(sys.argv[1])
