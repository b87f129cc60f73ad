"""How a running job is doing, read from the progress of its queries. Knows no terminal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.errors import SparkError
from penstock.spark.source.offsets import offsets_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.spark.jobs.folder import Folder

ROWS: Final = "rows"  # the name of what is counted, in a query's progress


class Standing(NamedTuple):
    """Of one query, since it was started."""

    name: str
    rows: int
    rate: float  # rows a second: of the last batch that had some, and of all batches in the end
    lag: int | None  # messages that it has not read; None where nobody can tell
    batches: int
    ended: bool
    files: int | None = None  # that it wrote; None where it writes none


@dataclass
class Watch:
    """One query."""

    query: StreamingQuery
    folder: Folder | None = None
    _rows: int = 0
    _rate: float = 0.0
    _seconds: float = 0.0  # of all batches
    _lag: int | None = None
    _seen: str = ""  # when the last look of the query was that is counted here: an idle one has the next batch's number
    _batches: int = 0
    _files: int = 0

    def __post_init__(self) -> None:
        self._before = self.folder.files(-1) if self.folder else 0

    def look(self) -> Standing:
        for progress in self.query.recentProgress:
            if progress["timestamp"] > self._seen:
                self._count(progress)
        ended = not self.query.isActive
        rate = self._rows / self._seconds if ended and self._seconds else self._rate
        files = self._files if self.folder else None
        return Standing(self.query.name, self._rows, rate, self._lag, self._batches, ended, files)

    def _count(self, progress: Any) -> None:
        counted = progress["observedMetrics"].get(ROWS)
        rows = counted[ROWS] if counted else 0
        self._seen = progress["timestamp"]
        if rows or progress["numInputRows"]:
            self._batches += 1
            self._rows += rows
            seconds = max(0.001, (progress["durationMs"].get("triggerExecution") or 0) / 1000)
            self._rate = rows / seconds
            self._seconds += seconds
            if self.folder:
                self._files = self.folder.files(progress["batchId"]) - self._before
        lags = [_lag(source) for source in progress["sources"]]
        known = [lag for lag in lags if lag is not None]
        self._lag = sum(known) if known else None

    @property
    def busy(self) -> bool:
        """A batch is under way, and this one was not over when it was asked last."""
        return self.query.isActive and self.query.status["isTriggerActive"] and self._seen == self._last()

    def _last(self) -> str:
        progress = self.query.lastProgress
        return progress["timestamp"] if progress else ""

    def stop(self) -> None:
        self.query.stop()


def _lag(source: Any) -> int | None:
    """What is there and was not read when the batch ended."""
    try:
        end, latest = (offsets_of(json.loads(source[name])) for name in ("endOffset", "latestOffset"))
    except (SparkError, ValueError, TypeError, KeyError):
        return None
    return sum(
        max(0, there.offset - end.positions[place].offset) if place in end.positions else there.offset
        for place, there in latest.positions.items()
    )
