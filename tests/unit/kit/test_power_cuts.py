"""The states that a power cut may leave: what each rule of the device allows, and that broken protocols are caught."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.files import Files, replace, write_whole
from tests.kit import MemoryFiles, Moment, PowerCuts

Tree = dict[str, bytes | None]


def trees(moment: Moment, limit: int = 1000) -> list[Tree]:
    """Every state that is possible, once."""
    assert moment.combinations <= limit, "not all of them"
    return [state.tree() for state in moment.every_cut(limit)]


def disk_with(**files: bytes) -> PowerCuts:
    """A recorder whose device holds these files, and nothing on the way."""
    memory = MemoryFiles()
    for name, data in files.items():
        put(memory, f"/{name}", data)
    return PowerCuts(memory, stale=False)


def put(files: Files, path: str, data: bytes, position: int = 0) -> None:
    """Write and do not flush."""
    fd = files.open(path, create=True)
    write_whole(files, fd, data, position)
    files.close(fd)


def flush(files: Files, path: str) -> None:
    fd = files.open(path)
    files.flush(fd)
    files.close(fd)


# What may be lost


def test_a_file_that_nobody_flushed_may_be_whole_empty_hollow_or_not_there() -> None:
    disk = disk_with()
    put(disk, "/a", b"new")
    assert sorted(map(str, trees(disk.now))) == sorted(map(str, [{"/a": b"new"}, {"/a": b""}, {"/a": b"\0\0\0"}, {}]))


def test_flushed_bytes_of_a_file_whose_name_was_not_flushed_may_be_missing() -> None:
    disk = disk_with()
    put(disk, "/a", b"new")
    flush(disk, "/a")
    assert trees(disk.now) == [{"/a": b"new"}, {}]


def test_a_flushed_name_does_not_bring_its_bytes() -> None:
    disk = disk_with()
    put(disk, "/a", b"new")
    disk.flush_directory("/")
    assert trees(disk.now) == [{"/a": b"new"}, {"/a": b""}, {"/a": b"\0\0\0"}]


def test_both_flushes_leave_one_state() -> None:
    disk = disk_with()
    put(disk, "/a", b"new")
    flush(disk, "/a")
    disk.flush_directory("/")
    assert trees(disk.now) == [{"/a": b"new"}]
    assert disk.now.doubtful == []


def test_a_flush_of_everything_leaves_one_state() -> None:
    disk = disk_with(a=b"old")
    disk.make_directory("/d")
    put(disk, "/d/b", b"new")
    disk.rename("/a", "/d/a")
    disk.flush_all("/")
    assert trees(disk.now) == [{"/d": None, "/d/a": b"old", "/d/b": b"new"}]


def test_each_write_is_kept_or_lost_whatever_came_before_it() -> None:
    # given a file of one byte, flushed, and two writes after it
    disk = disk_with(a=b"0")
    put(disk, "/a", b"1", 1)
    put(disk, "/a", b"2", 2)
    # then the second may be there without the first, a hole before it
    assert {tree["/a"] for tree in trees(disk.now)} == {
        b"0", b"01", b"0\0", b"012", b"0\x002", b"01\0", b"0\0\0",
    }  # fmt: skip


def test_a_write_may_be_torn_at_its_sectors() -> None:
    # given a file of 1,024 bytes and a write over the last 4 of the first sector and the first 4 of the second
    disk = disk_with(a=b"a" * 1024)
    put(disk, "/a", b"12345678", 508)
    # then each sector is old or new, whole
    assert {tree["/a"][508:516] for tree in trees(disk.now) if tree["/a"]} == {
        b"12345678", b"1234aaaa", b"aaaa5678", b"aaaaaaaa",
    }  # fmt: skip


def test_a_write_beyond_the_end_may_reach_the_device_from_either_side() -> None:
    # given an empty file and a write of three sectors
    disk = disk_with(a=b"")
    put(disk, "/a", b"x" * 1536)
    # then any of them may be there, with the size as far as the last one, or the whole size
    found = {tree["/a"] for tree in trees(disk.now)}
    x, o = b"x" * 512, bytes(512)
    short = {b"", x, x + x, o + x}
    assert found == short | {a + b + c for a in (x, o) for b in (x, o) for c in (x, o)}


def test_a_truncation_may_be_undone_under_a_later_write() -> None:
    # given a file that was cut and written again, as after a failed append
    disk = disk_with(a=b"old" * 4)
    fd = disk.open("/a")
    disk.truncate(fd, 3)
    disk.write(fd, b"new", 3)
    # then the end of the old bytes may stand behind the new ones
    found = {tree["/a"] for tree in trees(disk.now)}
    assert found == {b"oldnew", b"old", b"old\0\0\0", b"oldnewoldold", b"oldoldoldold"}


def test_bytes_that_never_arrived_may_be_noise_or_those_of_a_removed_file() -> None:
    # given a removed file whose removal is on the device
    disk = PowerCuts()
    put(disk, "/dead", b"d" * 512)
    disk.flush_all("/")
    disk.unlink("/dead")
    put(disk, "/a", b"")
    disk.flush_all("/")
    # when another one grows
    put(disk, "/a", b"new" * 8)
    # then what it grew by may be zeros, noise, or what the dead one held
    found = {tree["/a"] for tree in trees(disk.now)}
    assert {b"", b"new" * 8, bytes(24), b"d" * 24} < found
    assert len(found) == 5


def test_names_are_kept_or_lost_by_themselves_and_in_order_for_each() -> None:
    # given two new files, and one of which the name came, went, and came again
    disk = disk_with()
    put(disk, "/a", b"")
    put(disk, "/b", b"")
    disk.unlink("/a")
    # then any of the pair may be there without the other
    assert sorted(map(sorted, trees(disk.now))) == [[], ["/a"], ["/a", "/b"], ["/b"]]


def test_a_directory_that_was_not_flushed_takes_all_that_is_in_it() -> None:
    # given a new directory with a file that is flushed, as is its name in there
    disk = disk_with()
    disk.make_directory("/d")
    put(disk, "/d/a", b"new")
    flush(disk, "/d/a")
    disk.flush_directory("/d")
    # then it may be missing until the directory above is flushed
    assert trees(disk.now) == [{"/d": None, "/d/a": b"new"}, {}]
    disk.flush_directory("/")
    assert trees(disk.now) == [{"/d": None, "/d/a": b"new"}]


def test_a_rename_that_was_not_flushed_may_be_undone_but_never_shows_both_names_or_none() -> None:
    disk = disk_with(a=b"new", b=b"old")
    disk.rename("/a", "/b")
    assert trees(disk.now) == [{"/b": b"new"}, {"/a": b"new", "/b": b"old"}]


@pytest.mark.parametrize("flushed", ["/d", "/e"])
def test_a_rename_between_directories_is_sure_when_either_is_flushed(flushed: str) -> None:
    disk = PowerCuts()
    disk.make_directory("/d")
    disk.make_directory("/e")
    put(disk, "/d/a", b"x")
    disk.flush_all("/")
    disk.rename("/d/a", "/e/a")
    before = trees(disk.now)
    disk.flush_directory(flushed)
    moved: Tree = {"/d": None, "/e": None, "/e/a": b"x"}
    assert before == [moved, {"/d": None, "/d/a": b"x", "/e": None}]
    assert trees(disk.now) == [moved]


def test_a_flush_makes_sure_all_that_the_names_there_rest_on() -> None:
    # given a file that was renamed from directory to directory
    disk = PowerCuts()
    for name in "defg":
        disk.make_directory(f"/{name}")
    put(disk, "/d/a", b"x")
    disk.flush_all("/")
    for source, target in ("de", "ef", "fg"):
        disk.rename(f"/{source}/a", f"/{target}/a")
    # when only the last of them is flushed
    disk.flush_directory("/g")
    # then it is there, and nowhere else
    assert [[path for path in tree if "a" in path] for tree in trees(disk.now)] == [["/g/a"]]


def test_a_removed_directory_never_takes_a_file_with_it_that_had_left() -> None:
    # given a file that was renamed out of a directory which was then removed
    disk = PowerCuts()
    disk.make_directory("/d")
    put(disk, "/d/a", b"x")
    disk.flush_all("/")
    disk.rename("/d/a", "/a")
    disk.remove_directory("/d")
    # then it is in one place or the other
    assert trees(disk.now) == [{"/a": b"x"}, {"/a": b"x", "/d": None}, {"/d": None, "/d/a": b"x"}]
    # and the flush that makes the removal sure makes the rename sure
    disk.flush_directory("/")
    assert trees(disk.now) == [{"/a": b"x"}]


def test_a_directory_moved_into_one_that_was_inside_it_is_never_lost() -> None:
    # given /d/e turned inside out into /e/d
    disk = PowerCuts()
    disk.make_directory("/d")
    disk.make_directory("/d/e")
    disk.flush_all("/")
    disk.rename("/d/e", "/e")
    disk.rename("/d", "/e/d")
    # then both are there, however far it came
    assert [list(tree) for tree in trees(disk.now)] == [["/e", "/e/d"], ["/d", "/e"], ["/d", "/d/e"]]


# Kills, and what goes on after


def test_a_kill_loses_nothing_and_makes_nothing_sure() -> None:
    # given a file that was never flushed, open when the process is killed
    disk = disk_with()
    fd = disk.open("/a", create=True)
    disk.write(fd, b"new", 0)
    killed = disk.now.kill()
    # then the next process finds it and nothing open, counts on, and a cut may still lose it
    assert (killed.tree(), killed.opened(), killed.step) == ({"/a": b"new"}, [], disk.step)
    assert {} in trees(killed.now)
    # and when it flushes, it is sure
    flush(killed, "/a")
    killed.flush_directory("/")
    assert trees(killed.now) == [{"/a": b"new"}]
    assert disk.tree() == {"/a": b"new"}


def test_what_a_cut_left_can_be_cut_again() -> None:
    # given the empty file that a cut left, and a recovery that writes to it
    disk = disk_with()
    put(disk, "/a", b"new")
    left = next(state for state in disk.now.every_cut() if state.tree() == {"/a": b""})
    again = PowerCuts(left, stale=False)
    put(again, "/a", b"2")
    put(again, "/b", b"")
    # then the first file itself is safe this time, and the first state is as it was
    grown: list[Tree] = [{"/a": b"2"}, {"/a": b""}, {"/a": b"\0"}]
    assert all(tree in trees(again.now) for tree in [*grown, *({**tree, "/b": b""} for tree in grown)])
    assert len(trees(again.now)) == 6
    assert left.tree() == {"/a": b""}


def test_a_removed_file_that_is_still_written_is_nobodys() -> None:
    disk = disk_with(a=b"old")
    fd = disk.open("/a")
    disk.unlink("/a")
    disk.flush_directory("/")
    disk.write(fd, b"new", 0)
    disk.flush(fd)
    assert trees(disk.now) == [{}]


def test_a_state_says_which_cut_it_is() -> None:
    disk = disk_with(b=b"")
    put(disk, "/a", b"x" * 1024)
    disk.rename("/b", "/c")
    told = [str(state) for state in disk.now.every_cut()]
    assert any("write of /a at 0, 1024 bytes: torn, sectors 10 kept" in text for text in told)
    assert any("rename to /c: lost" in text for text in told)


def test_recorded_moments_do_not_change() -> None:
    # given the moment after a write
    disk = disk_with()
    put(disk, "/a", b"new")
    moment = disk.now
    before = trees(moment)
    # when more is done
    disk.flush_all("/")
    disk.unlink("/a")
    # then it is as it was
    assert trees(moment) == before
    assert disk.at(moment.step) is moment
    with pytest.raises(ValueError, match="recorded are 0 to"):
        disk.at(disk.step + 1)


def test_the_disk_of_a_state_is_as_small_as_it_was() -> None:
    disk = PowerCuts()
    disk.capacity = 8
    put(disk, "/a", b"1234")
    assert {state.free("/") for state in disk.now.every_cut()} == {4, 8}


# Protocols


def replace_unflushed(files: Files, path: str, data: bytes) -> None:
    """Broken: the name may come before the bytes."""
    put(files, f"{path}.partial", data)
    files.rename(f"{path}.partial", path)
    files.flush_directory("/")


def replace_in_place(files: Files, path: str, data: bytes) -> None:
    """Broken: neither the old nor the new, halfway."""
    fd = files.open(path, truncate=True)
    write_whole(files, fd, data, 0)
    files.flush(fd)
    files.close(fd)


def replace_undurably(files: Files, path: str, data: bytes) -> None:
    """Broken: whole, but perhaps the old one."""
    put(files, f"{path}.partial", data)
    flush(files, f"{path}.partial")
    files.rename(f"{path}.partial", path)


@pytest.mark.parametrize(
    ("protocol", "atomic", "durable"),
    [
        pytest.param(replace, True, True, id="ours"),
        pytest.param(replace_unflushed, False, False, id="renamed before the flush"),
        pytest.param(replace_in_place, False, True, id="in place"),
        pytest.param(replace_undurably, True, False, id="directory not flushed"),
    ],
)
def test_a_file_is_replaced_in_one_step_by_the_right_protocol_only(
    protocol: Callable[[Files, str, bytes], None], atomic: bool, durable: bool
) -> None:
    # given a file, replaced twice
    disk = disk_with(a=b"old")
    protocol(disk, "/a", b"newer")
    first = disk.step
    protocol(disk, "/a", b"newest")
    # when the power is cut anywhere
    found = [(moment.step, tree["/a"]) for moment in disk.moments() for tree in trees(moment)]
    # then it holds one of the three, and after each return the one that was put there
    assert all(data in (b"old", b"newer", b"newest") for _, data in found) == atomic
    returned = {data for step, data in found if step == first} | {data for step, data in found if step == disk.step}
    assert (returned == {b"newer", b"newest"}) == durable


@pytest.mark.parametrize("flushed", [True, False])
def test_a_log_that_answers_before_its_flush_is_caught(flushed: bool) -> None:
    # given a log of lines that answers each one
    disk = PowerCuts()
    fd = disk.open("/log", create=True)
    disk.flush_directory("/")
    answered = [(disk.step, b"")]
    for line in (b"one\n", b"two\n", b"three\n"):
        disk.write(fd, line, disk.size(fd))
        if flushed:
            disk.flush(fd)
        answered.append((disk.step, answered[-1][1] + line))
    # when the power is cut anywhere
    lost = 0
    for moment in disk.moments():
        promised = [text for step, text in answered if step <= moment.step]
        for state in moment.cuts(random.Random(moment.step), 20):
            lost += bool(promised) and not (state.tree()["/log"] or b"").startswith(promised[-1])
    # then only flushes make a promise
    assert bool(lost) != flushed


# All of it at random

NAMES = st.sampled_from(["/a", "/b", "/d/a", "/d/b", "/e"])
OPERATION = st.one_of(
    st.tuples(st.just("write"), NAMES, st.integers(0, 1500), st.integers(1, 1200)),
    st.tuples(st.just("truncate"), NAMES, st.integers(0, 1500)),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.sampled_from(["unlink", "flush", "make_directory", "remove_directory"]), NAMES),
    st.tuples(st.just("flush_directory"), st.sampled_from(["/", "/d"])),
    st.tuples(st.just("flush_all"), st.just("/")),
)


def run(files: Files, history: list[tuple[object, ...]]) -> None:
    """All operations that are possible."""
    for turn, (name, *arguments) in enumerate(history):
        try:
            if name in ("write", "truncate", "flush"):
                fd = files.open(str(arguments[0]), create=True)
                if name == "write":
                    arguments = [bytes([65 + turn % 26]) * int(str(arguments[2])), arguments[1]]
                else:
                    arguments = arguments[1:]
                getattr(files, str(name))(fd, *arguments)
                files.close(fd)
            else:
                getattr(files, str(name))(*arguments)
        except OSError:
            pass


@given(history=st.lists(OPERATION, max_size=12), rng=st.randoms(use_true_random=False))
def test_any_history_keeps_the_promises_of_flushes(history: list[tuple[object, ...]], rng: random.Random) -> None:
    # given a history that ran with and without the recorder
    disk, memory = PowerCuts(), MemoryFiles()
    for files in (disk, memory):
        files.make_directory("/d")
        run(files, history)
    # then the recorder changed nothing, and a kill leaves all of it
    assert disk.tree() == memory.tree() == disk.now.kill().tree()
    assert disk.now.kill().used == memory.used
    for moment in disk.moments():
        states = list(moment.cuts(rng, 3))
        if moment.combinations <= 200:
            # and what is drawn is among all that is possible, as is what is whole
            possible = [state.tree() for state in moment.every_cut(200)]
            assert all(state.tree() in possible for state in states)
            assert moment.kill().tree() in possible
        # and whatever a cut leaves is a file system in order
        for state in states:
            assert state.used == sum(len(data or b"") for data in state.tree().values())
            assert state.copy().tree() == state.tree()
    # and everything is sure after a flush of all
    disk.flush_all("/")
    assert trees(disk.now) == [memory.tree()]


def test_a_corner_keeps_what_the_one_kept_name_rests_on() -> None:
    # given a file that was renamed twice among others
    disk = PowerCuts()
    put(disk, "/a", b"")
    for number in range(20):
        put(disk, f"/{number:02}", b"")
    disk.rename("/a", "/b")
    put(disk, "/20", b"")
    disk.rename("/b", "/c")
    put(disk, "/21", b"")
    # then one corner is that nothing but its last name is there
    assert {"/c": b""} in [state.tree() for state in disk.now.every_cut(500)]


def test_where_there_are_too_many_cuts_the_corners_come_first() -> None:
    # given twenty new files of two sectors
    disk = PowerCuts()
    for number in range(20):
        put(disk, f"/{number:02}", bytes([number + 1]) * 1024)
    # when some are asked for
    found = [state.tree() for state in disk.now.every_cut(500)]
    # then all kept, none kept, and each one alone lost or hollow are among them
    whole = disk.tree()
    assert len(found) <= 500
    assert found[0] == whole
    assert {} in found
    assert all({name: whole[name] for name in whole if name != lost} in found for lost in whole)
    assert all({**whole, hollow: bytes(1024)} in found for hollow in whole)
    # and they are the same each time
    assert found[:200] == [state.tree() for state in disk.now.every_cut(500)][:200]
    assert 40 < len(list(disk.now.every_cut(50))) <= 50
