"""What an import or an export has to tell: how many messages, where they went, and what a person should know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int], None]
"""Told now and then which topic is worked on and how many messages are through, of all topics."""


@dataclass(slots=True)
class ChannelCount:
    """What a channel delivers next: how many messages, and the attempts that those took so far, added up."""

    messages: int = 0
    attempts: int = 0
    paused: bool = False


@dataclass(slots=True)
class TopicCount:
    """What was written of a topic."""

    messages: int = 0  # into a log each once, into queues once for each channel that has it
    waiting: int = 0  # those that were given to no channel yet
    paused: bool = False
    channels: dict[str, ChannelCount] = field(default_factory=dict)


@dataclass(slots=True)
class Summary:
    topics: dict[str, TopicCount] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def messages(self) -> int:
        return sum(topic.messages for topic in self.topics.values())


def silence(_topic: str, _messages: int) -> None:
    """Nobody wants to know."""
