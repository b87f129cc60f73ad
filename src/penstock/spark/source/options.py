"""The options of the source, in the words of Spark's Kafka source where it has one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import BadOption
from penstock.options import Duration, duration, option
from penstock.options.kinds import Words
from penstock.protocol.names import is_valid
from penstock.spark.options import NAMES, SIZE, WHOLE, YES_NO, ConnectionOptions, camel, read_options
from penstock.spark.source.bounds import Bound, bound_of, moment_of

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS: Final = ("topic", "node", "offset", "id", "timestamp", "body")
ALIASES: Final = {"maxRowsPerTrigger": "maxOffsetsPerTrigger"}
NO_READER: Final = "none"
EPHEMERAL: Final = "#ephemeral"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceOptions(ConnectionOptions):
    topic: tuple[str, ...] = option((), "one, or several with commas", kind=NAMES, heading="What")
    topic_pattern: str = option("", "all topics whose whole name this regular expression (Python's) matches, instead")
    columns: tuple[str, ...] = option(
        COLUMNS, "which, in this order; fewer are faster, since Spark asks for all of them", kind=NAMES
    )
    body_as: str = option(
        "binary",
        "`binary`; `string`, as `CAST(body AS STRING)`; `json`, as a struct (null where it is none)",
        kind=Words({word: word for word in ("binary", "string", "json")}),
    )
    schema: str = option(
        "", "with `bodyAs=json`: the struct, as `a INT, b STRING`", shown="in batch only: found out from 1,000 messages"
    )
    starting_offsets: str = option(
        "",
        "of a new query: `earliest`, `latest`, or JSON; a checkpoint, where there is one, goes before",
        shown="`latest`; in batch `earliest`",
        heading="From where, to where",
    )
    ending_offsets: str = option("", "batch only: `latest`, or JSON", shown="`latest`")
    starting_timestamp: str = option(
        "",
        "instead: from what was appended then; ms since 1970, or `2026-01-31T12:00:00Z`",
        shown="",
    )
    ending_timestamp: str = option("", "batch only, instead: up to what was appended then")
    max_offsets_per_trigger: int = option(
        1_000_000,
        "messages in a micro-batch at most, shared by lag over topics and nodes; 0: no limit. Also `maxRowsPerTrigger`",
        kind=WHOLE,
        heading="How much at a time",
    )
    max_bytes_per_trigger: int = option(0, "bytes in a micro-batch, about; 0: no limit", kind=SIZE)
    max_records_per_partition: int = option(
        0, "what one task reads at most", kind=WHOLE, shown="an eighth of the batch; 250,000 to 1,000,000"
    )
    min_partitions: int = option(1, "tasks of a batch at least, when it has as many messages", kind=WHOLE, least=1)
    fail_on_data_loss: bool = option(
        True,
        "whether messages that are gone before they were read end the query; else they are counted in a log line",
        kind=YES_NO,
        heading="When something goes wrong",
    )
    fetch_timeout: Duration = option(duration("30s"), "how long a node may take for an answer, or for a piece of one")
    fetch_retries: int = option(
        10, "how often a request that failed is made again, after 0.1, 0.2, 0.4 s and so on up to 5 s", kind=WHOLE
    )
    reader: str = option(
        "",
        "streaming only: the name of the query's position on the nodes, which holds retention; `none`: no position",
        shown="`spark-` and 12 digits, kept in the checkpoint",
        heading="More",
    )
    pushdown: bool = option(
        False,
        "batch only: filters on offset, timestamp and topic narrow what is read; needs the setting "
        "`spark.sql.python.filterPushdown.enabled=true`",
        kind=YES_NO,
    )

    def __post_init__(self) -> None:
        ConnectionOptions.__post_init__(self)
        self._check_topics()
        self._check_columns()
        for many, other in (("starting_offsets", "starting_timestamp"), ("ending_offsets", "ending_timestamp")):
            if getattr(self, many) and getattr(self, other):
                raise BadOption(f"options {camel(many)} and {camel(other)}: only one can be given")
        if self.reader and not is_valid(self.reader):
            raise BadOption(f"option reader: {self.reader!r} is no name of a channel's kind")
        _ = self.begin, self.end  # read, so that what cannot be is refused now

    def _check_topics(self) -> None:
        if bool(self.topic) == bool(self.topic_pattern):
            raise BadOption("options topic and topicPattern: one of them, and not both, says what is read")
        for topic in self.topic:
            if topic.endswith(EPHEMERAL):
                raise BadOption(f"option topic: {topic} is ephemeral: it has no log that could be read again")
            if not is_valid(topic):
                raise BadOption(f"option topic: {topic!r} is no name of a topic")
        try:
            re.compile(self.topic_pattern)
        except re.error as error:
            raise BadOption(f"option topicPattern: {self.topic_pattern!r} is no regular expression: {error}") from None

    def _check_columns(self) -> None:
        for column in self.columns:
            if column not in COLUMNS:
                raise BadOption(f"option columns: there is no {column!r}, there are {', '.join(COLUMNS)}")
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise BadOption("option columns: one at least, and none twice")
        if self.schema and self.body_as != "json":
            raise BadOption("option schema: it is for bodyAs=json")

    def for_batch(self) -> SourceOptions:
        if self.starting_offsets == "latest":
            raise BadOption("option startingOffsets: a batch that begins at the latest reads nothing")
        return self

    def for_stream(self) -> SourceOptions:
        for name in ("ending_offsets", "ending_timestamp"):
            if getattr(self, name):
                raise BadOption(f"option {camel(name)}: a stream has no end; it is for batches")
        if self.pushdown:
            raise BadOption("option pushdown: Spark pushes no filters into streams; it is for batches")
        if self.body_as == "json" and not self.schema and "body" in self.columns:
            raise BadOption(
                "option schema: bodyAs=json needs one in a stream; found out anew, it could be another after a restart"
            )
        return self

    @property
    def begin(self) -> Bound | None:
        """Where it was said that a new query begins."""
        if self.starting_timestamp:
            return moment_of("startingTimestamp", self.starting_timestamp)
        return bound_of("startingOffsets", self.starting_offsets) if self.starting_offsets else None

    @property
    def end(self) -> Bound | None:
        if self.ending_timestamp:
            return moment_of("endingTimestamp", self.ending_timestamp)
        if self.ending_offsets == "earliest":
            raise BadOption("option endingOffsets: a batch that ends at the earliest reads nothing")
        return bound_of("endingOffsets", self.ending_offsets) if self.ending_offsets else None

    def chooses(self, topic: str) -> bool:
        if self.topic:
            return topic in self.topic
        return not topic.endswith(EPHEMERAL) and re.fullmatch(self.topic_pattern, topic) is not None

    @property
    def tries(self) -> int:
        return 1 + self.fetch_retries

    @property
    def timeout(self) -> float:
        """Seconds."""
        return self.fetch_timeout / 10**9


def source_options(given: Mapping[str, str]) -> SourceOptions:
    return read_options(SourceOptions, given, ALIASES)
