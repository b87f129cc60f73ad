"""Ten thousand topics on one node, made and opened again: time, open files, memory."""

from __future__ import annotations

import os
from time import perf_counter
from typing import TYPE_CHECKING

from bench.child import in_a_child, resident
from bench.load import BODIES, NOW, Load, folder
from bench.measure import Rounds, Row, micro
from penstock.log.data_path import TOPICS, DataPath

if TYPE_CHECKING:
    from collections.abc import Iterator


def rows(load: Load) -> Iterator[Row]:
    count = load.topics
    with folder(load) as directory:
        made = in_a_child(make, directory, count)
        yield Row(
            f"{count:,} topics made, a message each",
            f"{made['make']:.2f} s, {micro(made['make'] / count)} a topic",
            figures={"seconds": made["make"]},
        )
        yield Row(f"{count:,} topics flushed and closed", f"{made['close']:.2f} s", figures={"seconds": made["close"]})
        rounds = Rounds([], [])
        for _ in range(load.rounds):
            rounds.limit.append(in_a_child(look, directory)["seconds"])
            opened = in_a_child(reopen, directory, count)
            rounds.ours.append(opened["seconds"])
    ours, limit = rounds.medians
    yield Row(
        f"{count:,} topics opened",
        f"{ours:.2f} s, {micro(ours / count)} a topic",
        f"{limit:.2f} s: reading their three files",
        rounds,
        figures={"seconds": ours},
    )
    yield Row(
        "  their open files", f"{opened['files']:,.0f}", target="<= 520", met=opened["files"] <= 520, figures=opened
    )
    yield Row("  their memory", f"{opened['memory'] / count:,.0f} bytes a topic", figures=opened)


def make(directory: str, count: int) -> dict[str, float]:
    node = DataPath(directory)
    began = perf_counter()
    for number in range(count):
        node.create(f"topic-{number}").append(BODIES[:1], NOW)
    made = perf_counter()
    node.close()
    return {"make": made - began, "close": perf_counter() - made}


def reopen(directory: str, count: int) -> dict[str, float]:
    before = resident()
    began = perf_counter()
    node = DataPath(directory)
    seconds = perf_counter() - began
    if sum(log.end for log in node.logs) != count:
        raise RuntimeError("not every topic has its message")
    found = {
        "seconds": seconds,
        "files": float(len(os.listdir("/proc/self/fd"))),
        "memory": float(resident() - before),
    }
    node.close()
    return found


def look(directory: str) -> dict[str, float]:
    """The least that can be done to know what is there."""
    began = perf_counter()
    for topic in os.scandir(f"{directory}/{TOPICS}"):
        for file in os.scandir(topic.path):
            fd = os.open(file.path, os.O_RDONLY)
            os.pread(fd, 4096, 0)
            os.close(fd)
    return {"seconds": perf_counter() - began}
