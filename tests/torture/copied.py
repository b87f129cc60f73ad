"""What a node on a copy had to deliver, by the history: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.torture.history import OK, Finish, History, Publish

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def missing_in_copy(
    history: History, channel: str, numbers: Sequence[int], began: float, ended: float
) -> Iterator[str]:
    """The copy was made between these times, and its node delivered these numbers on the channel."""
    events, came = list(history), set(numbers)
    publishes = [event for event in events if isinstance(event, Publish)]
    finished = {
        event.number
        for event in events
        if isinstance(event, Finish) and event.channel == channel and event.sent < ended
    }
    for publish in publishes:
        if publish.outcome == OK and publish.answered < began:
            for number in range(publish.first, publish.first + publish.size):
                if number not in came and number not in finished:
                    yield f"{number} was answered OK before the copy began, and does not come"
    highest = max((publish.first + publish.size for publish in publishes), default=0)
    if any(number < 0 or number >= highest for number in came):
        yield "something comes that was not published"
