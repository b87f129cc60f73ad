"""Files in memory answer as the real ones do."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.log.files import Files, read_whole, replace, write_whole
from tests.kit import FailingFiles, MemoryFiles, PowerCuts

NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
MAYBE = st.booleans()
SIZES = st.integers(-1, 40)


def outcome(call: Callable[[], Any]) -> object:
    """What a call answers, or the errno it fails with."""
    try:
        return call()
    except OSError as error:
        return type(error), error.errno


class SameAsLinux(RuleBasedStateMachine):
    """The same calls on both give the same answers, and the same trees."""

    def __init__(self) -> None:
        super().__init__()
        self.real = Files()
        self.memory = MemoryFiles()
        self.root = tempfile.mkdtemp()
        self.opened: list[tuple[int, int]] = []

    def both(self, call: Callable[[Files, Callable[[str], str]], Any]) -> None:
        real = outcome(lambda: call(self.real, lambda path: self.root + path))
        assert outcome(lambda: call(self.memory, lambda path: path)) == real

    def on_one(self, pick: int, call: Callable[[Files, int], Any]) -> None:
        """The same call on one of the open descriptors of each."""
        if self.opened:
            real, memory = self.opened[pick % len(self.opened)]
            assert outcome(lambda: call(self.memory, memory)) == outcome(lambda: call(self.real, real))

    @rule(path=PATHS, create=MAYBE, exclusive=MAYBE, truncate=MAYBE, read_only=MAYBE)
    def open(self, path: str, **flags: bool) -> None:
        real = outcome(lambda: self.real.open(self.root + path, **flags))
        memory = outcome(lambda: self.memory.open(path, **flags))
        if isinstance(real, int) and isinstance(memory, int):
            self.opened.append((real, memory))
        else:
            assert memory == real

    @rule(path=PATHS)
    def lock(self, path: str) -> None:
        real = outcome(lambda: self.real.lock_directory(self.root + path))
        memory = outcome(lambda: self.memory.lock_directory(path))
        if isinstance(real, int) and isinstance(memory, int):
            self.opened.append((real, memory))
        else:
            assert memory == real

    @rule(pick=st.integers(0, 9))
    def close(self, pick: int) -> None:
        if self.opened:
            real, memory = self.opened.pop(pick % len(self.opened))
            self.real.close(real)
            self.memory.close(memory)

    @rule(pick=st.integers(0, 9), data=st.binary(max_size=20), position=SIZES)
    def write(self, pick: int, data: bytes, position: int) -> None:
        self.on_one(pick, lambda files, fd: files.write(fd, data, position))

    @rule(pick=st.integers(0, 9), size=st.integers(0, 40), position=SIZES)
    def read(self, pick: int, size: int, position: int) -> None:
        self.on_one(pick, lambda files, fd: files.read(fd, size, position))

    @rule(pick=st.integers(0, 9), size=SIZES)
    def truncate(self, pick: int, size: int) -> None:
        self.on_one(pick, lambda files, fd: files.truncate(fd, size))

    @rule(source=PATHS, to=PATHS)
    def rename(self, source: str, to: str) -> None:
        self.both(lambda files, at: files.rename(at(source), at(to)))

    @rule(path=PATHS)
    def make_directory(self, path: str) -> None:
        self.both(lambda files, at: files.make_directory(at(path)))

    @rule(path=PATHS)
    def unlink(self, path: str) -> None:
        self.both(lambda files, at: files.unlink(at(path)))

    @rule(path=PATHS)
    def remove_directory(self, path: str) -> None:
        self.both(lambda files, at: files.remove_directory(at(path)))

    @rule(path=PATHS)
    def ask(self, path: str) -> None:
        self.both(lambda files, at: sorted(files.list(at(path))))
        self.both(lambda files, at: files.exists(at(path)))
        self.both(lambda files, at: bool(files.free(at(path))))

    @invariant()
    def trees_are_the_same(self) -> None:
        found: dict[str, bytes | None] = {}
        for place, directories, names in os.walk(self.root):
            below = place[len(self.root) :]
            found.update({f"{below}/{name}": None for name in directories})
            found.update({f"{below}/{name}": read_whole(self.real, f"{place}/{name}") for name in names})
        assert self.memory.tree() == dict(sorted(found.items()))

    def teardown(self) -> None:
        for real, memory in self.opened:
            self.real.close(real)
            self.memory.close(memory)
        shutil.rmtree(self.root)
        # every descriptor is closed, so what is used is what can be seen
        assert self.memory.used == sum(len(data or b"") for data in self.memory.tree().values())


SameAsLinux.TestCase.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None, derandomize=True, database=None
)
test_the_same_calls_give_the_same_answers_as_on_a_real_file_system = SameAsLinux.TestCase


@pytest.mark.parametrize(
    ("call", "number"),
    [
        pytest.param(lambda files: files.open(""), errno.ENOENT, id="no name"),
        pytest.param(lambda files: files.open("/" + "x" * 256, create=True), errno.ENAMETOOLONG, id="a long name"),
        pytest.param(lambda files: files.open("/", create=True), errno.EISDIR, id="creating the root"),
        pytest.param(lambda files: files.make_directory("/"), errno.EEXIST, id="making the root"),
        pytest.param(lambda files: files.remove_directory("/"), errno.EBUSY, id="removing the root"),
        pytest.param(lambda files: files.rename("/", "/x"), errno.EBUSY, id="renaming the root"),
        pytest.param(lambda files: files.flush_directory("/none"), errno.ENOENT, id="flushing no directory"),
        pytest.param(lambda files: files.flush(3), errno.EBADF, id="flushing no descriptor"),
        pytest.param(lambda files: files.size(3), errno.EBADF, id="size of no descriptor"),
        pytest.param(lambda files: files.close(3), errno.EBADF, id="closing no descriptor"),
    ],
)
def test_what_linux_refuses_is_refused(call: Callable[[Files], object], number: int) -> None:
    with pytest.raises(OSError, match=os.strerror(number)):
        call(MemoryFiles())


@pytest.mark.parametrize("kind", [MemoryFiles, FailingFiles])
def test_no_call_of_the_seam_goes_past_it_to_the_real_files(kind: type[Files]) -> None:
    seam = {name for name, what in vars(Files).items() if callable(what) and not name.startswith("_")}
    assert seam <= vars(kind).keys()


def test_a_write_stops_exactly_where_the_disk_ends() -> None:
    # given ten bytes of room, of which another file has four
    files = MemoryFiles()
    files.capacity = 10
    fd = files.open("/a", create=True)
    write_whole(files, files.open("/b", create=True), b"bbbb", 0)
    # when eight are written, then one more, then one inside
    done = files.write(fd, b"12345678", 0)
    with pytest.raises(OSError, match="No space left"):
        files.write(fd, b"x", 6)
    inside = files.write(fd, b"XYZ", 5)
    # then six fit, the next does not, and what lies inside the file needs no room
    assert (done, inside, files.free("/")) == (6, 1, 0)
    assert files.tree()["/a"] == b"12345X"


def test_room_comes_back_when_the_last_descriptor_of_a_removed_file_is_closed() -> None:
    # given a full disk whose only file is open and removed
    files = MemoryFiles()
    files.capacity = 4
    fd = files.open("/a", create=True)
    files.write(fd, b"aaaa", 0)
    files.unlink("/a")
    # when it is used, then closed
    held = files.read(fd, 10, 0), files.free("/")
    files.close(fd)
    # then it lived until the close, and took the room until then
    assert held == (b"aaaa", 0)
    assert (files.free("/"), files.opened()) == (4, [])


def test_a_replaced_file_gives_its_room_back() -> None:
    files = MemoryFiles()
    replace(files, "/a", b"first")
    replace(files, "/a", b"2nd")
    assert (files.used, files.tree()) == (3, {"/a": b"2nd"})


def test_a_cold_file_is_not_read_now_and_keeps_being_cold_under_its_new_name() -> None:
    # given a file of which a test says that it is cold
    files = MemoryFiles()
    replace(files, "/a", b"data")
    fd = files.open("/a", read_only=True)
    files.cold.add("/a")
    # then only a waiting read has it, until the test says otherwise
    assert files.read_now(fd, 4, 0) is None
    assert files.read(fd, 4, 0) == b"data"
    files.cold.clear()
    assert files.read_now(fd, 4, 0) == b"data"


def test_a_descriptor_is_never_used_twice_and_is_none_of_the_real_ones() -> None:
    files = MemoryFiles()
    first = files.open("/a", create=True)
    files.close(first)
    second = files.open("/a")
    assert first != second
    with pytest.raises(OSError, match="Bad file descriptor"):
        files.read(first, 1, 0)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(second)


def test_descriptors_run_out_where_the_test_says() -> None:
    # given two descriptors for all, one of them in use
    files = MemoryFiles()
    files.descriptors = 2
    files.open("/a", create=True)
    fd = files.open("/b", create=True)
    # then nothing else can be opened, listed or flushed, and nothing is created
    calls: list[Callable[[], object]] = [
        lambda: files.open("/c", create=True),
        lambda: list(files.list("/")),
        lambda: files.flush_directory("/"),
        lambda: files.lock_directory("/"),
    ]
    for call in calls:
        with pytest.raises(OSError, match="Too many open files"):
            call()
    assert "/c" not in files.tree()
    # until one is closed
    files.close(fd)
    files.open("/c", create=True)


def test_a_copy_shares_nothing_that_either_can_change() -> None:
    # given a file system with a file that is open and a lock
    files = MemoryFiles()
    files.make_directory("/d")
    fd = files.open("/d/a", create=True)
    files.write(fd, b"one", 0)
    files.lock_directory("/d")
    # when both it and its copy are changed
    twin = files.copy()
    files.write(fd, b"two", 0)
    twin.lock_directory("/d")
    twin.unlink("/d/a")
    # then each has its own
    assert files.tree() == {"/d": None, "/d/a": b"two"}
    assert (twin.tree(), twin.used, files.used) == ({"/d": None}, 0, 3)


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("hasty_threads")
def test_threads_may_share_it() -> None:
    # given four threads that write a file each, in small pieces
    files = PowerCuts()

    def write(path: str) -> None:
        fd = files.open(path, create=True)
        for at in range(100):
            files.write(fd, b"x", at)
        files.close(fd)

    threads = [Thread(target=write, args=(f"/{number}",)) for number in range(4)]
    # when they run at once
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # then nothing was missed or miscounted
    assert (files.used, files.step) == (400, 404)
    assert set(files.now.kill().tree().values()) == {b"x" * 100}
