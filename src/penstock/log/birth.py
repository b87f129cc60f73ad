"""`topic.json`: what a topic's log has to know before its first batch, and how far it may count. Knows one small file.

`reserved` is flushed ahead of the offsets that are given out: after a power cut the log goes on there, so that no
offset that anyone may have seen names another message. `resume` is where it went on after the last cut; `earliest`
is the first offset that is not deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from zlib_ng.zlib_ng import crc32

from penstock.errors import CorruptLog, DataPathError
from penstock.log.files import read_whole, replace
from penstock.protocol.batch import seed_of

if TYPE_CHECKING:
    from penstock.log.files import Files

FORMAT: Final = 1
NAME: Final = "topic.json"
RESERVE: Final = 1 << 26  # offsets reserved at a time: seconds of publishing at full speed, nothing of 2**62
JUMP: Final = RESERVE // 4  # a hole as wide is where a log went on after a power cut; no missing file leaves one


class Birth(NamedTuple):
    """One incarnation of a topic."""

    name: str
    incarnation: str
    base: int  # message ids are base + offset
    reserved: int = RESERVE
    resume: int = 0
    earliest: int = 0

    @property
    def seed(self) -> int:
        """What the CRCs of its batches begin with."""
        return seed_of(self.incarnation)

    @property
    def folder(self) -> str:
        return f"{self.name}@{self.incarnation}"


def born(name: str) -> Birth:
    """A new incarnation: its ids and its name are nobody else's, for all practical purposes."""
    return Birth(name, secrets.token_hex(8), secrets.randbits(62))


def split_folder(folder: str) -> tuple[str, str] | None:
    """Topic name and incarnation of a topic's folder."""
    name, at, incarnation = folder.rpartition("@")
    return (name, incarnation) if at and name and incarnation else None


def write(files: Files, directory: str, birth: Birth, *, flush: bool = True) -> None:
    """Durable when this returns, with `flush`; without, a process kill leaves it whole and a power cut may not."""
    replace(files, f"{directory}/{NAME}", encode(birth), flush=flush)


def flush(files: Files, directory: str) -> None:
    """What was written without a flush is durable when this returns."""
    fd = files.open(f"{directory}/{NAME}")
    try:
        files.flush(fd)
    finally:
        files.close(fd)
    files.flush_directory(directory)


def take_back(files: Files, directory: str) -> None:
    """Nothing is left of a topic that could not be made, as far as that can be had."""
    for path in (f"{directory}/{NAME}.partial", f"{directory}/{NAME}"):
        with contextlib.suppress(OSError):
            files.unlink(path)
    with contextlib.suppress(OSError):
        files.remove_directory(directory)


def encode(birth: Birth) -> bytes:
    fields = {"format": FORMAT, **birth._asdict()}
    text = json.dumps(fields, sort_keys=True)
    return json.dumps({**fields, "crc": crc32(text.encode())}, sort_keys=True).encode() + b"\n"


def read(files: Files, directory: str) -> Birth:
    """CorruptLog where the file is missing or damaged, DataPathError where it is of a newer format."""
    path = f"{directory}/{NAME}"
    try:
        fields = json.loads(read_whole(files, path))
        crc = fields.pop("crc")
        if crc != crc32(json.dumps(fields, sort_keys=True).encode()):
            raise CorruptLog(f"{path} is damaged")
        if (version := fields.pop("format")) > FORMAT:
            raise DataPathError(f"{path} was written by a newer Penstock (format {version}): use that one")
        birth = Birth(**fields)
    except FileNotFoundError as error:
        raise CorruptLog(f"{path} is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptLog(f"{path} is damaged") from error
    if birth.folder != os.path.basename(directory):
        raise CorruptLog(f"{path} is another topic's")
    return birth


def nameless(directory: str) -> Birth:
    """What the folder's name says of a topic whose file is lost."""
    named = split_folder(os.path.basename(directory))
    if named is None:
        raise CorruptLog(f"{directory} is no topic's folder")
    return Birth(*named, base=0)
