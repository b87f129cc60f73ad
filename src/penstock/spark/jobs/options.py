"""What the jobs can be asked: a table for each, from which flags, config files and the docs come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from penstock.errors import BadOption
from penstock.options import Kind, option
from penstock.options.kinds import Words
from penstock.protocol.names import is_valid
from penstock.spark.options import NAMES, WHOLE, YES_NO, ConnectionOptions
from penstock.spark.source.bounds import moment_of

PARQUET, JSON_LINES = "parquet", "json"
FORMAT: Final = Words({PARQUET: PARQUET, JSON_LINES: JSON_LINES})
EVERYWHERE: Final = ""  # the name that stands for all that are not named

Named = tuple[tuple[str, str], ...]


class NamedTexts(Kind[Named]):
    """`NAME=TEXT`, as often as there are names; a bare text is for all that have none of their own."""

    name = "name=text"
    many = True

    def parse(self, text: str) -> Named:
        name, given, rest = text.partition("=")
        return ((name, rest) if given and is_valid(name) else (EVERYWHERE, text),)

    def show(self, value: Named) -> str:
        return ", ".join(f"{name}={text}" if name else text for name, text in value)


class Ratio(Kind[float]):
    name = "number"

    def parse(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            raise ValueError(f"{text!r} is no number from 0 on")
        return number

    def take(self, value: object) -> float:
        return self.parse(str(value))


NAMED: Final = NamedTexts()
RATIO: Final = Ratio()


@dataclass(frozen=True, kw_only=True, slots=True)
class Nodes(ConnectionOptions):
    """Where the nodes are, as `format("nsq")` wants to be told."""

    def __post_init__(self) -> None:
        if bool(self.lookupd) == bool(self.nsqd):
            raise BadOption(
                "--lookupd or --nsqd: one of them, and not both, says where the nodes are, as --nsqd=127.0.0.1:4151"
            )

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes a job this job: what it reads, and what it writes."""
        return ()

    @property
    def about(self) -> str:
        """What it reads, in a word, for its name."""
        return ""

    @property
    def reads(self) -> tuple[str, ...]:
        """The topics that it names."""
        return ()

    @property
    def files(self) -> str:
        """The folder that it writes, where it writes files."""
        return ""

    @property
    def ends(self) -> bool:
        """It is done one day; the same call is then another job."""
        return False

    def where(self) -> dict[str, str]:
        names = {
            "lookupd": ",".join(self.lookupd),
            "nsqd": ",".join(self.nsqd),
            "token": self.token,
            "tlsCaFile": self.tls_ca_file,
            "tlsCertFile": self.tls_cert_file,
            "tlsKeyFile": self.tls_key_file,
        }
        return {name: str(text) for name, text in names.items() if text}


@dataclass(frozen=True, kw_only=True, slots=True)
class Topics(Nodes):
    """Jobs that read topics as streams."""

    topic: tuple[str, ...] = option((), "one, or several with commas", kind=NAMES, heading="What")
    topic_pattern: str = option("", "all topics whose whole name this regular expression matches, instead")
    starting_offsets: str = option(
        "earliest", "where a new job begins: earliest, latest, or JSON; one that was there before goes on where it was"
    )
    max_offsets_per_trigger: int = option(4_000_000, "messages in one batch at most; 0: no limit", kind=WHOLE)
    fail_on_data_loss: bool = option(
        True, "whether messages that are gone before they were read end the job; else they are passed over", kind=YES_NO
    )

    def __post_init__(self) -> None:
        Nodes.__post_init__(self)
        if bool(self.topic) == bool(self.topic_pattern):
            raise BadOption("--topic or --topic-pattern: one of them, and not both, says what is read")

    @property
    def about(self) -> str:
        return "-".join(self.topic) or self.topic_pattern

    @property
    def reads(self) -> tuple[str, ...]:
        return self.topic

    def source(self, topic: str = "") -> dict[str, str]:
        """Options of the source, for all topics or for one of them."""
        found = {
            "topic": topic or ",".join(self.topic),
            "topicPattern": "" if topic else self.topic_pattern,
            "startingOffsets": self.starting_offsets,
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
        }
        return {
            **self.where(),
            **{name: text for name, text in found.items() if text},
            "maxOffsetsPerTrigger": str(self.max_offsets_per_trigger),
            "maxRecordsPerPartition": "1000000",
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive(Topics):
    to: str = option("", "the folder, or the URL of one that Spark can write to", heading="Where to")
    format: str = option(PARQUET, "parquet, or json (a message a line)", kind=FORMAT)
    schema: str = option(
        "", "what bodies hold, as `user STRING, amount DOUBLE`: they are parsed as JSON; what is not, goes to _bad"
    )
    rows_per_file: int = option(2_000_000, "a file holds no more", kind=WHOLE, least=1)

    def __post_init__(self) -> None:
        Topics.__post_init__(self)
        _needed("to", self.to)

    @property
    def identity(self) -> tuple[object, ...]:
        return self.topic, self.topic_pattern, self.to

    @property
    def files(self) -> str:
        return self.to


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay(Nodes):
    source: str = option("", "the archive's folder", flag="from", key="from", heading="What")
    format: str = option(PARQUET, "what it was written as: parquet or json", kind=FORMAT)
    since: str = option("", "messages from this time on, as 2026-01-31T12:00:00Z or ms since 1970")
    until: str = option("", "messages before this time")
    where_sql: str = option(
        "", "messages for which this is true: SQL over the archive's columns", flag="where", key="where"
    )
    topic: str = option("", "what is published to", shown="the topic that each message came from", heading="Where to")
    rate: float = option(0.0, "messages a second; 0: as fast as it goes", kind=RATIO, heading="How fast")
    speed: float = option(
        0.0, "in the spacing that they once had, so many times as fast; 0: as fast as it goes", kind=RATIO
    )

    def __post_init__(self) -> None:
        Nodes.__post_init__(self)
        _needed("from", self.source)
        if self.rate and self.speed:
            raise BadOption("--rate and --speed: only one can be given")
        if self.topic and not is_valid(self.topic):
            raise BadOption(f"--topic: {self.topic!r} is no name of a topic")
        for name in ("since", "until"):
            if text := getattr(self, name):
                moment_of(f"--{name}", text)

    @property
    def identity(self) -> tuple[object, ...]:
        return self.source, self.topic, self.since, self.until, self.where_sql

    @property
    def about(self) -> str:
        return self.source.rstrip("/").rpartition("/")[2]

    @property
    def ends(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True, slots=True)
class Transform(Topics):
    schema: Named = option(
        (), "what a topic's bodies hold, as `TOPIC=user STRING, amount DOUBLE`, parsed as JSON; without TOPIC=, all",
        kind=NAMED, shown="bodies are text",
    )  # fmt: skip
    watermark: str = option("", "how late messages may come, as `10 minutes`, for windows and joins")
    event_time: str = option("timestamp", "the column that this is by: when it was published, or a time in the bodies")
    sql: str = option("", "a SELECT over the topics, each a view of its name", heading="How")
    function: str = option("", "instead, `module:name`: it takes a DataFrame for each topic by name, and returns one")
    mode: str = option(
        "append", "append, or update: what becomes of groups that are not complete yet",
        kind=Words({word: word for word in ("append", "update")}),
    )  # fmt: skip
    to_topic: str = option("", "publish the rows: the column `body`, or all columns as JSON", heading="Where to")
    to: str = option("", "or write them to this folder")
    format: str = option(PARQUET, "of the folder: parquet or json", kind=FORMAT)
    dead_letter: str = option("", "the topic that unparsable messages go to", shown="they are left out, and counted")

    def __post_init__(self) -> None:
        Topics.__post_init__(self)
        if bool(self.sql) == bool(self.function):
            raise BadOption("--sql or --function: one of them, and not both, says what is to be done")
        if bool(self.to_topic) == bool(self.to):
            raise BadOption("--to-topic or --to: one of them, and not both, says where the rows go")
        if self.function and not all(self.function.partition(":")):
            raise BadOption(f"--function: {self.function!r} is not written as module:name")
        if self.mode == "update" and self.to:
            raise BadOption("--mode=update: files cannot be updated; it is for --to-topic")
        if self.topic_pattern:
            raise BadOption("--topic-pattern: name the topics, each is a view of its own: --topic=a,b")
        for name in (self.to_topic, self.dead_letter):
            if name and not is_valid(name):
                raise BadOption(f"{name!r} is no name of a topic")

    @property
    def identity(self) -> tuple[object, ...]:
        return self.topic, self.sql, self.function, self.to_topic, self.to

    @property
    def files(self) -> str:
        return self.to


@dataclass(frozen=True, kw_only=True, slots=True)
class Sql(Nodes):
    topic: tuple[str, ...] = option((), "topics to query, with commas", kind=NAMES, shown="all", heading="What")
    schema: Named = option(
        (), "what a topic's bodies hold, as `TOPIC=user STRING, amount DOUBLE`; without TOPIC=, all",
        kind=NAMED, shown="found out from 1,000 messages where most are JSON objects",
    )  # fmt: skip
    archive: Named = option((), "an archive as a view, as `NAME=PATH`", kind=NAMED)
    limit: int = option(1000, "rows that are shown in a table; 0: all", kind=WHOLE, heading="Output")

    def __post_init__(self) -> None:
        if self.lookupd or self.nsqd or not self.archive:  # archives alone need no node
            Nodes.__post_init__(self)
        for name, path in self.archive:
            if name == EVERYWHERE:
                raise BadOption(f"--archive: {path!r} is not written as NAME=PATH")


def _needed(flag: str, text: str) -> None:
    if not text:
        raise BadOption(f"--{flag}: it has to be given")
