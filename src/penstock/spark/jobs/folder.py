"""A folder that a streaming query writes files to, on any file system that Spark knows. Knows no job.

Spark's file sink notes in `_spark_metadata`, batch by batch, which files belong to the folder; it passes over a batch
whose number stands there. So a query that begins anew there, with batch 0, would lose what it reads, silently: `check`
refuses it.

    _spark_metadata/8           v1, then a line for each file of batch 8
    _spark_metadata/9.compact   v1, then a line for each file there is
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.errors import BadOption

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIST: Final = "_spark_metadata"
_COMPACT: Final = ".compact"


class Folder:
    """Below `path`; the query that writes it has its checkpoint at `checkpoint`."""

    def __init__(self, spark: SparkSession, path: str, checkpoint: str) -> None:
        self.path = path
        self._checkpoint = checkpoint
        self._jvm: Any = spark.sparkContext._jvm
        self._conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
        self._counted = -1  # the batch up to which `_files` counts
        self._files = 0

    def check(self) -> None:
        """BadOption where folder and checkpoint do not know each other."""
        listed = self._batches(f"{self.path}/{LIST}")
        if listed and not self._batches(f"{self._checkpoint}/offsets"):
            raise BadOption(
                f"--to: {self.path} was written by a job with another checkpoint than {self._checkpoint}: "
                "give that one's --name or --checkpoint, or another folder"
            )
        if not listed and self._batches(f"{self._checkpoint}/commits"):
            raise BadOption(
                f"--to: what the job wrote to {self.path} is not there any more: "
                f"remove its checkpoint {self._checkpoint} to begin anew"
            )
        self.files(max(listed, default=-1))

    def files(self, batch: int) -> int:
        """How many belong to the folder up to this batch."""
        if batch > self._counted:
            listed = self._batches(f"{self.path}/{LIST}")
            whole = max((number for number in listed if number <= batch and listed[number]), default=-1)
            if whole > self._counted:
                self._counted, self._files = whole, self._lines(f"{whole}{_COMPACT}")
            for number in sorted(each for each in listed if self._counted < each <= batch):
                self._counted, self._files = number, self._files + self._lines(str(number))
        return self._files

    def _batches(self, folder: str) -> dict[int, bool]:
        """Numbers of a log of Spark's, and which of them have all that was before them as well."""
        where = self._jvm.org.apache.hadoop.fs.Path(folder)
        system = where.getFileSystem(self._conf)
        if not system.exists(where):
            return {}
        names = [each.getPath().getName() for each in system.listStatus(where)]
        return {
            int(name.removesuffix(_COMPACT)): name.endswith(_COMPACT)
            for name in names
            if name.removesuffix(_COMPACT).isdigit()
        }

    def _lines(self, name: str) -> int:
        where = self._jvm.org.apache.hadoop.fs.Path(f"{self.path}/{LIST}/{name}")
        stream = where.getFileSystem(self._conf).open(where)
        try:
            text = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        return len(text.splitlines()) - 1
