"""`node.json` and `topic.json` as the tools check them, and make them again where they are damaged."""

from __future__ import annotations

import json
import re
import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import CorruptLog, DataPathError
from penstock.log.birth import RESERVE, Birth, born, nameless
from penstock.log.data_path import FORMAT, NODE
from penstock.log.files import replace
from penstock.log.tools.looking import read_file

if TYPE_CHECKING:
    from penstock.log.files import Files

FAR: Final = 1 << 40  # beyond what a running node may have reserved
UNKNOWN_BOOT: Final = (
    "unknown"  # no machine's: the next start takes it that a power cut came before, and re-uses no offset
)


class Node(NamedTuple):
    identity: str
    boot: str
    clean: bool


def read_node(files: Files, data_path: str) -> Node:
    """CorruptLog where the file is missing or damaged."""
    path = f"{data_path}/{NODE}"
    data = read_file(files, path)
    if data is None:
        raise CorruptLog(f"{path} is missing")
    try:
        fields = json.loads(data)
        version = int(fields["format"])
        node = Node(str(fields["identity"]), str(fields["boot"]), bool(fields["clean"]))
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptLog(f"{path} is damaged") from error
    if version > FORMAT:
        raise DataPathError(f"{path} was written by a newer Penstock (format {version}): use that one")
    return node


def identity_in(files: Files, data_path: str) -> str | None:
    """The identity, where it can still be read in a damaged file."""
    data = read_file(files, f"{data_path}/{NODE}") or b""
    found = re.search(rb'"identity": "([0-9a-f]{16})"', data)
    return found[1].decode() if found else None


def write_node(files: Files, data_path: str, identity: str | None) -> str:
    """The file as after a power cut, durable at return; the identity, a new one where it was lost."""
    identity = identity or secrets.token_hex(8)
    fields = {"format": FORMAT, "identity": identity, "boot": UNKNOWN_BOOT, "clean": False}
    replace(files, f"{data_path}/{NODE}", json.dumps(fields).encode() + b"\n")
    return identity


def birth_anew(directory: str, base: int | None, earliest: int | None, end: int) -> Birth:
    """What the folder's name and the batches in it say; no offset that was ever given out is given again."""
    resume = end + FAR
    return nameless(directory)._replace(
        base=born("").base if base is None else base,
        earliest=resume if earliest is None else earliest,
        resume=resume,
        reserved=resume + RESERVE,
    )
