"""The hot modules: which are compiled and why, and how a compiled one is told from a stale one.

The build compiles what stands here, the tests check that they run it.
"""

from __future__ import annotations

import hashlib
import re
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final

REASONS: Final = {
    "penstock.protocol.batch": "writes, walks and checks every record of every batch",
    "penstock.log.timetable.order": "reads, sorts and deals the due times of deferred entries",
    "penstock.protocol.commands": "made for each read of a busy connection",
    "penstock.protocol.frames": "a frame for each message that is delivered",
    "penstock.protocol.ids": "each FIN carries one",
    "penstock.protocol.mpub": "each message of an MPUB has a size",
    "penstock.protocol.parser": "finds the commands in each read of each connection",
    "penstock.client.frames": "makes an object of each message that a consumer is given",
    "penstock.bench.wire": "reads each message of a load, and must cost less than the server that sends it",
    "penstock.broker.latency": "where percentiles are asked for, notes each message that is delivered and finished",
    "penstock.broker.deadlines": "a deadline for each slice that is delivered, at times for each message",
    "penstock.broker.slots": "a slot for each message that is delivered and finished",
    "penstock.spark.sink.framing": "copies each message that a Spark query publishes",
    "penstock.spark.source.decode": "copies each message that a Spark query reads into its columns",
    "penstock.protocol.inbox": "each read of each connection lands there",
    "penstock.log.tail": "each publish is encoded there, each delivery read from there",
    "penstock.log.segment": "each turn that publishes writes a batch",
    "penstock.log.chain": "each turn that publishes writes a batch",
    "penstock.log.topic_log": "each turn that publishes writes a batch",
    "penstock.broker.consumer": "asked for each slice that is delivered",
    "penstock.broker.unfinished": "each slice that is delivered, each read of FINs",
    "penstock.broker.channel": "gives each slice to a consumer, takes each read of FINs",
    "penstock.broker.topic": "moves R with each batch",
    "penstock.nsqd.home": "takes each publish, answers each batch",
    "penstock.nsqd.node": "ends each turn",
    "penstock.nsqd.session": "carries out the commands of each read",
    "penstock.nsqd.service": "begins and ends each turn",
    "penstock.nsqd.connection": "each read and each write of a socket",
    "penstock.http.connection": "carries each request of a busy client, and its answer",
    "penstock.http.head": "knows each request of a busy client by the one before it",
    "penstock.http.later": "each publish over HTTP waits for its answer",
    "penstock.http.parser": "each read of an HTTP connection lands there",
    "penstock.http.request": "made for each request",
    "penstock.http.response": "given to each request",
    "penstock.nsqd.http.publishing": "takes each publish over HTTP",
    "penstock.nsqd.http.tickets": "each publish over HTTP waits for its answer",
    "penstock.nsqd.meters": "measures each turn of the loop",
}

ROOT: Final = Path(__file__).resolve().parent


def source(module: str) -> Path:
    """The `.py` that the module is written in."""
    return ROOT / "src" / Path(*module.split(".")).with_suffix(".py")


def compiled(module: str) -> Path:
    """Where an in-place build puts the module for this Python."""
    return source(module).with_suffix(EXTENSION_SUFFIXES[0])


def fingerprint(module: str) -> str:
    """Names all that a compiled module is made from; it stands in the compiled file."""
    made_from = [source(module), *_types(module), ROOT / "setup.py"]
    contents = hashlib.sha256(b"\0".join(path.read_bytes() for path in made_from))
    return f"penstock:{module}:{contents.hexdigest()}"


def _types(module: str) -> list[Path]:
    """The module's `.pxd`, and those that this one names, and so on."""
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        path = source(name := waiting.pop()).with_suffix(".pxd")
        if name not in found and path.exists():
            found[name] = path
            waiting += re.findall(r"^from (\S+) cimport", path.read_text(), re.MULTILINE)
    return [found[name] for name in sorted(found)]


def is_current(module: str) -> bool:
    """Whether the module is compiled in place, from the sources as they are now."""
    path = compiled(module)
    return path.exists() and fingerprint(module).encode() in path.read_bytes()


def annotate(folder: str) -> None:
    """Write what Cython makes of the hot modules as HTML: the yellower a line, the more Python is left in it."""
    from Cython.Build import cythonize

    sources = [str(source(module).relative_to(ROOT)) for module in REASONS]
    cythonize(sources, build_dir=folder, annotate=True, force=True)  # type: ignore[no-untyped-call]
    for path in Path(folder).rglob("*.c"):
        path.unlink()
