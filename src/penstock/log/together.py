"""Many topics flushed at once: what each of them has left to flush by itself is quick after that. Knows logs.

Ten thousand new topics, each with a topic.json and directories of its own, would keep a device busy for minutes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.log import birth as birth_file
from penstock.log.work import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.log.files import Files
    from penstock.log.topic_log import TopicLog

MANY: Final = 16  # topics from which on it pays


def flush_together(files: Files, path: str, logs: Sequence[TopicLog]) -> Work:
    """Put every topic.json that waits for it in place, and flush all that is written below `path`.

    Each log's own flush follows; it tells what went wrong, if something did.
    """
    work = Work()
    births = [(log, log.birth) for log in logs if log.birth_waits]
    for log, birth in births:
        work.step(partial(birth_file.write, files, log.directory, birth, flush=False))
    work.step(partial(files.flush_all, path))
    for log, birth in births:
        work.step(partial(birth_file.flush, files, log.directory))
        work.then(partial(log.birth_kept, birth))
    for parent in {log.directory.rpartition("/")[0] for log, _ in births}:
        work.step(partial(files.flush_directory, parent))
    for log in logs:
        log.busy_with(work)
    return work
