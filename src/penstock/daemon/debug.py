"""`/debug/...`: what is going on inside, where that means something in Python. Off unless it is asked for."""

from __future__ import annotations

import asyncio
import gc
import io
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Final

from penstock.auth.grants import Right
from penstock.daemon.profile import collapsed, sample
from penstock.errors import HttpError
from penstock.http import Request, Response, plain

if TYPE_CHECKING:
    from penstock.http import Routes

SECONDS: Final = 30  # as long as nsqd profiles where it is not told
LONGEST: Final = 300

_INDEX: Final = """\
/debug/pprof/cmdline    how the program was started
/debug/pprof/goroutine  where each thread and each task stands
/debug/pprof/profile    ?seconds=30: where the loop spent its time, in lines as flame graph tools read them
"""


class Debug:
    def __init__(self) -> None:
        self._loop_thread = threading.get_ident()
        self._profiling = False

    def add_to(self, table: Routes) -> None:
        for path, look in (
            ("/debug/pprof/", self.index),
            ("/debug/pprof/cmdline", self.cmdline),
            ("/debug/pprof/goroutine", self.goroutine),
            ("/debug/pprof/profile", self.profile),
        ):
            table.add("GET", path, look, right=Right.ADMIN)
        table.add("POST", "/debug/freememory", self.freememory, right=Right.ADMIN)

    def index(self, _request: Request) -> Response:
        return plain(_INDEX)

    def cmdline(self, _request: Request) -> Response:
        return plain("\0".join(sys.argv).encode("utf-8", "surrogateescape"))

    def goroutine(self, _request: Request) -> Response:
        out = io.StringIO()
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            out.write(f"thread {names.get(ident, ident)}\n")
            traceback.print_stack(frame, file=out)
            out.write("\n")
        for task in asyncio.all_tasks():
            out.write(f"task {task.get_name()}\n")
            task.print_stack(file=out)
            out.write("\n")
        return plain(out.getvalue())

    async def profile(self, request: Request) -> Response:
        text = request.arg("seconds") or str(SECONDS)
        if not text.isascii() or not text.isdigit() or not 0 < int(text) <= LONGEST:
            raise HttpError(400, "INVALID_SECONDS")
        if self._profiling:
            raise HttpError(409, "PROFILE_IN_PROGRESS")
        stop = threading.Event()
        self._profiling = True
        try:
            seen = await asyncio.to_thread(sample, self._loop_thread, int(text), stop)
        finally:
            self._profiling = False
            stop.set()  # the node stops, say: the thread must not keep it
        return plain(collapsed(seen))

    def freememory(self, _request: Request) -> Response:
        """What nobody uses goes back to the machine."""
        gc.collect()
        _trim()
        return plain("")


def _trim() -> None:
    """C's allocator keeps what is freed; glibc's gives it back when it is asked to."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
