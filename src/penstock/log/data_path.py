"""A node's folder: its lock, its identity, and where things are in it. Knows topics' logs; knows no channel.

    node.json                       format, identity, the boot it runs under, and whether it stopped cleanly
    topics/<name>@<incarnation>/    one log each
    deleted/                        topics that are gone, their files not yet
    journal/                        what channels there are and how far they got
    importing/                      an import that is not finished: without a node.json nothing starts here

A start that finds another boot and no clean stop follows a power cut: every log goes on at its reserved bound.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import DataPathError, LogError, log_error
from penstock.log.birth import born, split_folder
from penstock.log.disk import Disk
from penstock.log.files import Files, read_whole, replace, write_whole
from penstock.log.together import MANY, flush_together
from penstock.log.topic_log import LogOptions, TopicLog
from penstock.log.work import Work

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT: Final = 1
NODE: Final = "node.json"
TOPICS: Final = "topics"
DELETED: Final = "deleted"
JOURNAL: Final = "journal"
IMPORTING: Final = "importing"
_NODE_SIZE: Final = 256


def boot_id() -> str:
    """What changes when the machine starts anew; empty where the system does not say (then each start is one)."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


class DataPath:
    """A data path that is this process's until `close`."""

    def __init__(
        self,
        path: str,
        *,
        disk: Disk | None = None,
        options: LogOptions | None = None,
        boot: str | None = None,
    ) -> None:
        """Lock the folder and recover every log in it."""
        self.path = path = os.path.abspath(path)
        self.disk = Disk(Files()) if disk is None else disk  # one without open files is false
        self.options = options or LogOptions()
        self.boot = boot_id() if boot is None else boot
        self._lock = self._take()
        try:
            before = self._read_node()
            self.identity: str = before["identity"]
            self.clean: bool = before["clean"]
            self.disk.clean = self.clean
            self.after_power_cut = not self.clean and (not self.boot or before["boot"] != self.boot)
            self.logs = self._open_logs() if self.disk.files.exists(f"{path}/{TOPICS}") else self._make()
            self._write_node(clean=False)
        except OSError as error:
            self.abandon()
            raise log_error(error, f"opening {path}") from error
        except BaseException:
            self.abandon()
            raise

    # --- taking the folder

    def _take(self) -> int:
        try:
            if not self.disk.files.exists(self.path):
                raise DataPathError(f"the data path {self.path} does not exist: make it first")
            return self.disk.files.lock_directory(self.path)
        except BlockingIOError as error:
            raise DataPathError(f"the data path {self.path} is in use by another process") from error
        except OSError as error:
            raise DataPathError(f"the data path {self.path} cannot be used: {error.strerror}") from error

    def _read_node(self) -> dict[str, Any]:
        path = f"{self.path}/{NODE}"
        try:
            node = json.loads(read_whole(self.disk.files, path))
            version = int(node["format"])
            fields = {"identity": str(node["identity"]), "boot": str(node["boot"]), "clean": bool(node["clean"])}
        except FileNotFoundError:
            self._refuse_unfinished()
            topics = self.disk.files.exists(f"{self.path}/{TOPICS}")  # nobody knows how they were left
            return {"identity": secrets.token_hex(8), "boot": "", "clean": not topics}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataPathError(f"{path} is damaged: restore it from a backup, or `penstock log repair` it") from error
        if version > FORMAT:
            raise DataPathError(f"{path} was written by a newer Penstock (format {version}): use that one")
        return fields

    def _refuse_unfinished(self) -> None:
        """No node.json, but what an import should still be made from, or has begun to make."""
        for name, _ in self.disk.files.list(self.path):
            if name == IMPORTING:
                raise DataPathError(
                    f"{self.path} holds an import that was not finished: run `penstock import` into it again,"
                    f" or remove what is in it"
                )
            if ".diskqueue." in name:
                raise DataPathError(
                    f"{self.path} holds an original nsqd's queues ({name}): convert them with"
                    f" `penstock import {self.path} --data-path NEW` and start on NEW"
                )

    def _write_node(self, *, clean: bool) -> None:
        node = {"format": FORMAT, "identity": self.identity, "boot": self.boot, "clean": clean}
        data = json.dumps(node).encode().ljust(_NODE_SIZE - 1) + b"\n"
        try:
            try:
                replace(self.disk.files, f"{self.path}/{NODE}", data)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                self._write_in_place(data)
        except OSError as error:
            raise log_error(error, f"writing {self.path}/{NODE}") from error

    def _write_in_place(self, data: bytes) -> None:
        """A full disk keeps no node from starting: the file is less than a sector, so it is the old or the new."""
        files = self.disk.files
        fd = files.open(f"{self.path}/{NODE}")
        try:
            if files.size(fd) > len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            write_whole(files, fd, data, 0)
            files.flush(fd)
        finally:
            files.close(fd)

    def _make(self) -> list[TopicLog]:
        try:
            self.disk.files.make_directory(f"{self.path}/{TOPICS}")
            self.disk.files.flush_directory(self.path)
        except OSError as error:
            raise log_error(error, f"making {self.path}/{TOPICS}") from error
        return []

    def _open_logs(self) -> list[TopicLog]:
        folders = [name for name, folder in self.disk.files.list(f"{self.path}/{TOPICS}") if folder]
        return [self._open_log(folder) for folder in sorted(folders) if split_folder(folder)]

    def _open_log(self, folder: str) -> TopicLog:
        path = f"{self.path}/{TOPICS}/{folder}"
        return TopicLog.open(self.disk, path, self.options, after_power_cut=self.after_power_cut, clean=self.clean)

    # --- topics

    def create(self, name: str) -> TopicLog:
        """A log for a new incarnation of a topic."""
        birth = born(name)
        log = TopicLog.create(self.disk, f"{self.path}/{TOPICS}/{birth.folder}", birth, self.options)
        self.logs.append(log)
        return log

    def delete(self, log: TopicLog) -> Work:
        """The topic is gone when this returns; its bytes when the work is done."""
        log.close_files()
        if log in self.logs:  # else it is tried again
            self.logs.remove(log)
        gone = f"{self.path}/{DELETED}/{log.birth.folder}"
        try:
            self.disk.ensure_directory(f"{self.path}/{DELETED}")
            self.disk.files.rename(log.directory, gone)
        except OSError as error:
            raise log_error(error, f"deleting {log.directory}") from error
        work = Work()
        work.step(self._flush_names)
        work.step(lambda: self._remove(gone))
        return work

    def sweep(self) -> Work:
        """Remove what deletions before the last stop left."""
        work = Work()
        work.step(self._remove_all)
        return work

    def _remove_all(self) -> None:
        """As `delete` does: a power cut that brings back the name of a topic must not bring back half of its files."""
        folder = f"{self.path}/{DELETED}"
        if not self.disk.files.exists(folder) or not (left := list(self.disk.files.list(folder))):
            return
        self._flush_names()
        for name, _ in left:
            self._remove(f"{folder}/{name}")

    def _flush_names(self) -> None:
        self.disk.files.flush_directory(self.path)
        self.disk.files.flush_directory(f"{self.path}/{TOPICS}")

    def _remove(self, folder: str) -> None:
        for path, is_folder in list(self._below(folder)):
            (self.disk.files.remove_directory if is_folder else self.disk.files.unlink)(path)

    def _below(self, folder: str) -> Iterator[tuple[str, bool]]:
        """Everything in the folder, then the folder."""
        for name, is_folder in list(self.disk.files.list(folder)):
            if is_folder:
                yield from self._below(f"{folder}/{name}")
            else:
                yield f"{folder}/{name}", False
        yield folder, True

    # --- ending

    def close(self, *, clean: bool = True) -> None:
        """Flush everything, leave the mark of a clean stop (or none), and let the folder go."""
        try:
            waiting = [log for log in self.logs if log.unflushed and not log.under_way]
            if len(waiting) >= MANY:
                flush_together(self.disk.files, self.path, waiting)()
            for log in self.logs:
                log.close()
            if clean:
                self._write_node(clean=True)
        finally:
            self.abandon()

    def leave(self) -> None:
        """Let the folder go as it was found: for one who has only read."""
        if self.clean:
            with contextlib.suppress(LogError):  # then the next start looks at everything once more
                self._write_node(clean=True)
        self.abandon()

    def abandon(self) -> None:
        """Let the folder go as it is, as a kill would."""
        self.disk.close_all()
        with contextlib.suppress(OSError):  # the descriptor is gone, and the lock with it
            self.disk.files.close(self._lock)
