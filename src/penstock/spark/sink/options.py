"""The options of the sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import BadOption
from penstock.options import Duration, duration, option
from penstock.options.kinds import Text, Words
from penstock.protocol.names import is_valid
from penstock.spark.options import SIZE, YES_NO, ConnectionOptions, read_options

if TYPE_CHECKING:
    from collections.abc import Mapping

EXACTLY_ONCE: Final = "exactly-once"
AT_LEAST_ONCE: Final = "at-least-once"
DEADLETTER: Final = "deadletter:"
_SPARK_S: Final = frozenset({"checkpointlocation", "queryname"})  # a query's own options, which it hands on


class BadRows(Text):
    name = "rule"

    def parse(self, text: str) -> str:
        word = text.lower()
        if word in ("fail", "skip"):
            return word
        topic = text[len(DEADLETTER) :]
        if word.startswith(DEADLETTER) and is_valid(topic):
            return DEADLETTER + topic
        raise ValueError(f"{text!r} is none of fail, skip, deadletter:TOPIC")


@dataclass(frozen=True, kw_only=True, slots=True)
class SinkOptions(ConnectionOptions):
    topic: str = option(
        "", "what is published to, whatever a column `topic` says", shown="the column `topic`", heading="What"
    )
    body_as: str = option(
        "column",
        "`column`: the column `body` is the message; `json`: all columns but `topic` and `defer` are, as one object",
        kind=Words({word: word for word in ("column", "json")}),
    )
    key_column: str = option(
        "",
        "rows that are alike in this column go to the same nsqd, in their order",
        shown="chunks go to all in turn",
        heading="How",
    )
    chunk_bytes: int = option(1 << 20, "bytes of one publish (MPUB), about", kind=SIZE, least=1)
    delivery: str = option(
        "",
        "`exactly-once`: what is sent again is known by its number; needs `nsqd` and Penstock. `at-least-once`: it may "
        "be there twice",
        kind=Words({"": "", EXACTLY_ONCE: EXACTLY_ONCE, AT_LEAST_ONCE: AT_LEAST_ONCE}),
        shown="`exactly-once` with `nsqd`, into Penstock; else `at-least-once`",
    )
    sink_timeout: Duration = option(
        duration("2m"),
        "how long a chunk is sent again before the batch fails, after 0.1, 0.2, 0.4 s and so on up to 5 s",
        heading="When something goes wrong",
    )
    bad_rows: str = option(
        "fail",
        "what becomes of rows that cannot be published (null, empty, too large, no topic): `fail` the batch, `skip`, "
        "or `deadletter:TOPIC`, as JSON; they are counted in a log line",
        kind=BadRows(),
    )
    fail_on_state_loss: bool = option(
        True,
        "`exactly-once`: whether a query that goes on fails where an nsqd does not know it any more, so that what was "
        "being published when it stopped may be published again",
        kind=YES_NO,
    )

    def __post_init__(self) -> None:
        ConnectionOptions.__post_init__(self)
        if self.topic and not is_valid(self.topic):
            raise BadOption(f"option topic: {self.topic!r} is no name of a topic")
        if self.delivery == EXACTLY_ONCE and not self.nsqd:
            raise BadOption(
                "option delivery: exactly-once needs option nsqd: what is sent again has to go to the same nsqd"
            )

    def chooses(self, topic: str) -> bool:
        """Every node is published to, whatever it has."""
        return bool(topic)

    @property
    def deadletter(self) -> str:
        """The topic of bad rows, if they go to one."""
        return self.bad_rows.removeprefix(DEADLETTER) if self.bad_rows.startswith(DEADLETTER) else ""

    @property
    def patience(self) -> float:
        """Seconds."""
        return self.sink_timeout / 10**9


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    ours = {name: text for name, text in given.items() if name.lower() not in _SPARK_S}
    return read_options(SinkOptions, ours)
