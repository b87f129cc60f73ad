"""What an import or an export tells in the end, for a person or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from penstock.cli.log import showing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.transfer import Summary, TopicCount


def show(summary: Summary, done: str, *, as_json: bool) -> None:
    """Print it; `done` is the sentence that stands at the end."""
    if as_json:
        print(json.dumps(_as_json(summary), indent=2))
        return
    if rows := [row for name, topic in summary.topics.items() for row in _rows(name, topic)]:
        for line in showing.aligned(rows, right=(2,)):
            print(line)
    for note in summary.notes:
        print(f"note    {note}")
    topics = showing.counted(len(summary.topics), "topic")
    print(f"{topics}, {showing.counted(summary.messages, 'message')}: {done}")


def _rows(name: str, topic: TopicCount) -> Iterator[list[str]]:
    yield [name, "", f"{topic.waiting:,}", f"given to no channel{_paused(topic.paused)}"]
    for channel, count in topic.channels.items():
        yield [name, channel, f"{count.messages:,}", f"to deliver{_paused(count.paused)}"]


def _paused(paused: bool) -> str:
    return ", paused" if paused else ""


def _as_json(summary: Summary) -> dict[str, object]:
    return {
        "messages": summary.messages,
        "topics": [
            {
                "name": name,
                "paused": topic.paused,
                "messages": topic.messages,
                "waiting": topic.waiting,
                "channels": [
                    {"name": channel, "paused": count.paused, "messages": count.messages, "attempts": count.attempts}
                    for channel, count in topic.channels.items()
                ],
            }
            for name, topic in summary.topics.items()
        ],
        "notes": summary.notes,
    }
