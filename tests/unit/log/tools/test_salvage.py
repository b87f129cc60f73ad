"""Salvaging: every record that can be found comes out, and none is vouched for that is not what was written."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import NoLogThere
from penstock.log.tools import salvage as salvaging
from penstock.log.tools.salvage import Salvaged, salvage, salvage_all
from penstock.protocol.batch import encode_records
from tests.kit import MemoryFiles
from tests.unit.log.tools.node import PATH, fill, flush, overwrite, put_file, segment_paths, start

BASE = 0x1234_5678_9ABC
SEED = 99


def body(offset: int) -> bytes:
    return b"message %d " % offset * (1 + offset % 3)


def batches(count: int, at_once: int = 4, seed: int = SEED) -> list[bytearray]:
    return [
        encode_records(first, BASE, [body(first + number) for number in range(at_once)], 1000 + first, seed)
        for first in range(0, count * at_once, at_once)
    ]


def found(data: bytes | bytearray, named: int | None = None) -> list[Salvaged]:
    files = MemoryFiles()
    put_file(files, "/file", bytes(data))
    return list(salvage(files, "/file", named))


def told(salvaged: list[Salvaged]) -> list[tuple[int, bytes, bool]]:
    return [(each.record.offset, each.record.body, each.verified) for each in salvaged]


def expected(offsets: range, *, verified: bool = True) -> list[tuple[int, bytes, bool]]:
    return [(offset, body(offset), verified) for offset in offsets]


def test_whole_batches_come_out_of_any_file_without_a_name() -> None:
    data = b"noise" + b"".join(batches(3)) + b"more noise"
    assert told(found(data)) == expected(range(12))


def test_batches_of_other_logs_in_the_same_file_come_out_as_well() -> None:
    # given what a disk's lost+found may hold: pieces of two logs
    other = [bytes(each) for each in batches(2, seed=5)]
    data = bytes(batches(1)[0]) + other[0] + b"\0" * 100 + other[1] + bytes(batches(2)[1])
    assert told(found(data)) == [*expected(range(4)), *expected(range(8)), *expected(range(4, 8))]


def test_records_of_a_batch_that_was_hurt_come_out_and_nobody_vouches_for_them() -> None:
    # given three batches, the middle one of which has a byte changed in the body of its second record
    parts = batches(3)
    at = parts[1].index(body(5))
    parts[1][at] ^= 0xFF
    # when they are salvaged
    salvaged = told(found(b"".join(parts)))
    # then the records of that one are there, the hurt one as it is now
    hurt = bytes([body(5)[0] ^ 0xFF]) + body(5)[1:]
    doubtful = [(offset, hurt if offset == 5 else body(offset), False) for offset in range(4, 8)]
    assert salvaged == [*expected(range(4)), *doubtful, *expected(range(8, 12))]


@pytest.mark.parametrize(
    ("place", "lost"),
    [
        pytest.param(0, {5}, id="size"),
        pytest.param(6, set(), id="timestamp"),
        pytest.param(14, {5}, id="id"),
    ],
)
def test_a_record_whose_head_was_hurt_takes_no_other_with_it(place: int, lost: set[int]) -> None:
    # given a record whose size, or whose id, is no such thing any more
    parts = batches(3)
    at = parts[1].index(b"%016x" % (BASE + 5)) - 14 + place
    parts[1][at] = 0xFF
    # when its batch is salvaged, then its neighbours are there
    assert [each.record.offset for each in found(b"".join(parts))] == [each for each in range(12) if each not in lost]


def test_a_batch_without_its_header_still_gives_its_records() -> None:
    # given the end of a batch, as damage that begins in the middle of one leaves it
    data = batches(1)[0][60:]
    assert [(each.record.body, each.verified) for each in found(data)] == [(body(n), False) for n in range(1, 4)]


def test_a_batch_alone_is_vouched_for_only_under_a_seed_that_is_known() -> None:
    (alone,) = batches(1)
    assert told(found(alone, SEED)) == expected(range(4))
    assert [(each.record.body, each.verified) for each in found(alone)] == [(body(n), False) for n in range(4)]


def test_a_record_that_is_cut_off_is_not_made_up() -> None:
    data = batches(1)[0][:-3]
    assert [each.record.body for each in found(data)] == [body(0), body(1), body(2)]


def test_ids_in_bodies_are_taken_for_no_records() -> None:
    # given messages that hold ids, hexadecimal text, and whole records
    inner = bytes(batches(1)[0][40:])
    bodies = [b"%016x" % BASE * 9, b"0" * 500, inner]
    parts = [encode_records(3 * n, BASE, bodies, 7, SEED) for n in range(2)]
    parts[0][20] ^= 1  # in the header: the records stand, and no CRC says so
    # when they are salvaged, then each comes out once, whole
    salvaged = found(b"".join(parts), SEED)
    assert [each.record.body for each in salvaged] == bodies * 2
    assert [each.verified for each in salvaged] == [False] * 3 + [True] * 3


@given(
    harm=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=40)), max_size=5),
    cut=st.floats(0, 1),
    noise=st.binary(max_size=50),
)
def test_what_is_vouched_for_is_what_was_written(harm: list[tuple[float, bytes]], cut: float, noise: bytes) -> None:
    # given a file with a seed that is known, harmed anywhere
    data = bytearray(noise + b"".join(batches(6)))
    for place, change in harm:
        at = int(place * len(data))
        data[at : at + len(change)] = change[: len(data) - at]
    data = data[: int(cut * len(data))]
    # when it is salvaged
    salvaged = found(data, SEED)
    # then it is in the order of the file, and whatever is vouched for stands in the log as it was written
    assert [each.position for each in salvaged] == sorted(each.position for each in salvaged)
    for each in salvaged:
        if each.verified:
            assert each.record.body == body(each.record.offset)
            assert int(each.record.id, 16) == BASE + each.record.offset


@given(st.binary(max_size=3000))
def test_noise_gives_nothing_that_is_vouched_for(noise: bytes) -> None:
    assert not any(each.verified for each in found(noise))


def test_a_large_stretch_is_gone_through_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a piece that is smaller than what lies between two good batches
    monkeypatch.setattr(salvaging, "_PIECE", 500)
    monkeypatch.setattr(salvaging, "_OVERLAP", 100)
    parts = batches(40)
    for part in parts[1:-1]:
        part[8] ^= 0xFF
    # when it is salvaged, then every record is there once
    assert [each.record.offset for each in found(b"".join(parts))] == list(range(160))


def test_a_folder_gives_what_all_its_files_hold_also_the_copies_of_damage() -> None:
    # given a topic in which a batch went bad, was met by a reader and set aside, and whose log is then lost
    files = MemoryFiles()
    node = start(files, segment=100_000)
    log = node.create("orders")
    fill(log, 30)
    overwrite(files, segment_paths(log)[0], 390 + 100, b"bad")
    log.relax()
    while log.read(5):
        log.relax()
        break
    flush(log)
    copies = [path for path in files.tree() if path.endswith(".bad")]
    files.unlink(segment_paths(log)[0])
    # when the folder is salvaged
    salvaged = list(salvage_all(files, PATH))
    # then the records of the copy are there
    assert [path for path, _ in salvaged] == copies * len(salvaged)
    assert {each.record.body[:8] for _, each in salvaged} >= {b"7 orders", b"8 orders", b"9 orders"}
    assert not any(each.verified for _, each in salvaged)


def test_a_path_that_is_not_there_is_refused() -> None:
    with pytest.raises(NoLogThere):
        list(salvage_all(MemoryFiles(), "/nowhere"))


def test_every_byte_of_a_file_may_be_hurt_and_all_other_batches_come_out() -> None:
    parts = [bytes(each) for each in batches(3, at_once=2)]
    data = b"".join(parts)
    chance = random.Random(3)
    for at in range(len(data)):
        hurt = bytearray(data)
        hurt[at] ^= 1 << chance.randrange(8)
        good = {each.record.offset for each in found(bytes(hurt)) if each.verified}
        batch = next(number for number in range(3) if at < sum(map(len, parts[: number + 1])))
        assert good == set(range(6)) - {2 * batch, 2 * batch + 1}
