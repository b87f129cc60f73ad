"""How many instructions a message costs where it is published, delivered, finished, scanned and posted: counted.

Each kind is counted by what a larger run of the same program needs more than a smaller one, so that starting it and
its turns do not count much. A bytecode for each message would be seen: a small loop of Python takes some hundreds of
instructions a message, and there is none on these ways. The counts are those of one machine, with room: libraries and
compilers differ.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import hot_modules
from tests.conftest import PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTED: Final = ("valgrind", "--tool=callgrind")
PROGRAM: Final = (sys.executable, "-m", "tests.bench.paths")
SMALL: Final = {"published": 200, "delivered": 500, "finished": 0, "scanned": 2600, "posted": 160}
LARGE: Final = {"published": 10_200, "delivered": 2500, "finished": 2500, "scanned": 28_600, "posted": 1760}
# instructions a message
MOST: Final = {"published": 1950, "delivered": 1550, "finished": 530, "scanned": 260, "posted": 20_000}

pytestmark = [
    pytest.mark.skipif(PLAIN, reason="what is counted is the compiled build"),
    pytest.mark.skipif(
        shutil.which("valgrind") is None, reason="SPEED IS NOT CHECKED: valgrind is not installed, which counts"
    ),
]


@pytest.fixture(scope="module")
def count(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, int]], int]:
    """Instructions of the program with these numbers of messages, each asked for once."""
    known: dict[tuple[int, ...], int] = {}

    def counted(numbers: dict[str, int]) -> int:
        key = tuple(numbers.values())
        if key not in known:
            known[key] = _count(tmp_path_factory.mktemp("node"), key)
        return known[key]

    return counted


def _count(folder: Path, numbers: tuple[int, ...]) -> int:
    data = folder / "data"
    data.mkdir()
    done = subprocess.run(
        [*COUNTED, f"--callgrind-out-file={folder / 'counts'}", *PROGRAM, str(data), *map(str, numbers)],
        cwd=hot_modules.ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    assert done.returncode == 0, done.stderr[-2000:]
    assert found, done.stderr[-2000:]
    return int(found[1])


@pytest.mark.parametrize("kind", LARGE)
def test_a_message_costs_no_more_instructions_than_it_did(
    kind: str, count: Callable[[dict[str, int]], int], record_property: Callable[[str, object], None]
) -> None:
    # given the program with few messages of every kind
    few = {**SMALL, "delivered": LARGE["delivered"]} if kind == "finished" else SMALL
    # when there are more of one kind
    more = count({**few, kind: LARGE[kind]}) - count(few)
    # then each of these costs what it may
    each = more / (LARGE[kind] - few[kind])
    record_property("instructions a message", each)
    print(f"{kind}: {each:.0f} instructions a message")
    assert each <= MOST[kind]
