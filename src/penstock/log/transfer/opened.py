"""A data path for one piece of work, and how it is left."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.errors import log_error
from penstock.log.data_path import DataPath
from penstock.log.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.files import Files
    from penstock.log.topic_log import LogOptions


@contextmanager
def opened(files: Files, path: str, boot: str | None, options: LogOptions | None = None) -> Iterator[DataPath]:
    """To write: closed as in a clean stop where the work went well, else let go as in a kill."""
    data_path = DataPath(path, disk=Disk(files), options=options, boot=boot)
    try:
        yield data_path
    except OSError as error:
        data_path.abandon()
        raise log_error(error, f"working on {path}") from error
    except BaseException:
        data_path.abandon()
        raise
    data_path.close()


@contextmanager
def opened_to_read(files: Files, path: str, boot: str | None) -> Iterator[DataPath]:
    """Recovered as at a start, and left as it was found."""
    data_path = DataPath(path, disk=Disk(files), boot=boot)
    try:
        yield data_path
    except OSError as error:
        raise log_error(error, f"reading {path}") from error
    finally:
        data_path.leave()
