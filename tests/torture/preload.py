"""System calls of a process that fail, and its wall clock, as a test says: `preload.c` and the page it reads."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE: Final = Path(__file__).with_name("preload.c")
_FIELDS: Final = (
    "clock", "write_error", "short_writes", "flush_error", "flush_delay", "open_error", "read_error", "often", "met",
)  # fmt: skip


class Preload:
    """What a process started with `environment` meets below the folder; and `set` says what that is from now on."""

    def __init__(self, place: Path, below: Path) -> None:
        library = place / "preload.so"
        compiler = os.environ.get("CC", "cc").split()
        command = [*compiler, "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(library), str(_SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        page = place / "preload.page"
        page.write_bytes(bytes(8 * len(_FIELDS)))
        with page.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 0)
        self.environment = {"LD_PRELOAD": str(library), "TORTURE_PAGE": str(page), "TORTURE_BELOW": f"{below}/"}

    def set(self, **fields: int) -> None:
        for name, value in fields.items():
            struct.pack_into("q", self._page, 8 * _FIELDS.index(name), value)

    def get(self, name: str) -> int:
        (value,) = struct.unpack_from("q", self._page, 8 * _FIELDS.index(name))
        return int(value)

    @contextmanager
    def failing(self, **fields: int) -> Iterator[None]:
        """For the block, and then never again."""
        self.set(**fields)
        try:
            yield
        finally:
            self.set(**dict.fromkeys(fields, 0))
