"""`penstock log ...`: what a person reads, and the exit code that a script sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.cli.main import main
from penstock.log import entries as e
from penstock.log.data_path import DataPath
from penstock.log.disk import Disk
from penstock.log.files import Files
from penstock.log.journal import Journal
from tests.unit.log.tools.node import SECOND, START, defer, fill, timetable_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Say = Callable[..., tuple[int, list[str]]]

DAY = 86_400 * SECOND


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A data path with ten messages, two deferred ones, and an entry in its journal; nobody runs on it."""
    path = tmp_path / "node"
    path.mkdir()
    data_path = DataPath(str(path), disk=Disk(Files()))
    log = data_path.create("orders")
    fill(log, 10)
    defer(timetable_of(log), [b"in a day", b"\x00\xff"], START + DAY)
    journal = Journal(data_path.disk, f"{path}/journal")
    journal.append([e.TopicCreated(0, "orders", log.birth.incarnation)], START)
    data_path.close()
    return path


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Run `penstock log ...`; the exit code and what was printed, with runs of spaces as one."""

    def say(*arguments: str | Path) -> tuple[int, list[str]]:
        code = main(["log", *map(str, arguments)])
        shown = capsys.readouterr()
        return code, [" ".join(line.split()) for line in (shown.out + shown.err).splitlines()]

    return say


def log_file(node: Path) -> Path:
    (path,) = node.glob("topics/*/*.log")
    return path


def hurt(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def test_verify_has_a_line_for_each_store_and_a_verdict(node: Path, say: Say) -> None:
    code, lines = say("verify", node)
    topic = log_file(node).parent.name
    assert code == 0
    assert [line.partition("202")[0].rstrip() for line in lines] == [
        f"{topic} log 1 file 10 records 780 B 0 to 9",
        f"{topic} timetable 1 file 2 records 110 B 2 waiting",
        "journal 1 file 1 entry 79 B 0 to 0",
        "all is well: 12 records, 969 B",
    ]


def test_verify_names_what_is_damaged_and_ends_with_1(node: Path, say: Say) -> None:
    path = log_file(node)
    hurt(path, 50)
    code, lines = say("verify", node)
    assert code == 1
    assert lines[-2:] == [
        f"damage {path}: bytes 0 to 390 are bad: offsets 0 to 4 are lost",
        "DAMAGED: 7 records, 969 B",
    ]


def test_verify_of_nothing_ends_with_2(tmp_path: Path, say: Say) -> None:
    assert say("verify", tmp_path / "nothing") == (2, [f"penstock: there is no {tmp_path / 'nothing'}"])
    assert say("verify", tmp_path)[0] == 2


def test_verify_tells_a_program_all_of_it(node: Path, say: Say) -> None:
    code, lines = say("verify", node, "--json")
    told = json.loads("".join(lines))
    assert (code, told["clean"]) == (0, True)
    assert [(store["kind"], store["records"]) for store in told["stores"]] == [
        ("log", 10),
        ("timetable", 2),
        ("journal", 1),
    ]


def test_dump_prints_messages_and_those_that_are_deferred_with_their_time(node: Path, say: Say) -> None:
    topic = log_file(node).parent.name
    code, lines = say("dump", node, "--from", "1", "--to", "3")
    assert code == 0
    assert lines[0] == f"# {topic} log"
    assert lines[1] == "offset id published size message"
    assert [line.split()[::4] for line in lines[2:4]] == [["1", "1"], ["2", "2"]]
    assert lines[4:6] == [f"# {topic} timetable", "offset due published size message"]
    assert lines[6] == r"1 2025-11-19T21:06:40.000000Z 2025-11-18T21:06:40.000000Z 2 \x00\xff"


def test_dump_steps_over_damage_and_says_so(node: Path, say: Say) -> None:
    path = log_file(node)
    hurt(path, 50)
    code, lines = say("dump", path)
    assert code == 0
    assert [line.split()[0] for line in lines[2:-1]] == ["5", "6", "7", "8", "9"]
    assert lines[-1] == f"penstock log dump: {path}: bytes 0 to 390 are bad: offsets 0 to 4 are lost"


def test_dump_salvages_what_no_crc_vouches_for(node: Path, say: Say) -> None:
    path = log_file(node)
    hurt(path, 390 + 40 + 30)  # the first letter of offset 5
    code, lines = say("dump", path, "--salvage", "--from", "1")
    doubted = [line for line in lines if line.endswith("(no CRC vouches for it)")]
    assert code == 0
    assert len(lines) == 2 + 9
    assert [line.split()[0] for line in doubted] == ["5", "6", "7", "8", "9"]
    assert say("dump", path, "--salvage", "--since", "2026-01-31")[0] == 2


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        pytest.param("--raw", b"in a day\n\x00\xff\n", id="lines"),
        pytest.param("--framed", b"\0\0\0\x08in a day\0\0\0\x02\x00\xff", id="framed"),
    ],
)
def test_dump_writes_bodies_for_a_program(
    node: Path, capsysbinary: pytest.CaptureFixture[bytes], form: str, expected: bytes
) -> None:
    assert main(["log", "dump", form, str(log_file(node).parent / "timetable")]) == 0
    assert capsysbinary.readouterr() == (expected, b"")


def test_dump_shows_the_journal_where_it_is_asked_for(node: Path, say: Say) -> None:
    code, (title, entry) = say("dump", node / "journal")
    assert (code, title) == (0, "# journal")
    assert entry.startswith("0 2025-11-18T21:06:40.000000Z TopicCreated topic=0 name=orders incarnation=")
    assert say("dump", node / "journal", "--raw") == (2, ["penstock log dump: a journal holds no bodies"])


def test_repair_says_what_it_does_or_would_do(node: Path, say: Say) -> None:
    # given a node that lost two small files
    index = log_file(node).with_suffix(".index")
    index.unlink()
    (node / "node.json").unlink()
    # when it is repaired, dry and then in earnest
    dry = say("repair", node, "--dry-run")
    done = say("repair", node)
    # then both say the same of each, and afterwards there is nothing to do
    lost = "is missing; its identity is lost: it gets a new one"
    assert dry == (0, [f"would repair {node}/node.json: {lost}", f"would repair {index}: was missing"])
    assert done == (0, [f"repaired {node}/node.json: {lost}", f"repaired {index}: was missing"])
    assert say("repair", node) == (0, ["nothing to repair"])
    assert say("verify", node)[0] == 0


def test_backup_says_what_it_copied(node: Path, tmp_path: Path, say: Say) -> None:
    code, lines = say("backup", node, tmp_path / "copy")
    assert (code, lines) == (
        0,
        [
            "1 topic",
            "log: 1 file, 10 records",
            "timetable: 1 file, 2 records",
            "journal: 1 file, 1 entry",
            "969 B copied, checked and flushed",
        ],
    )
    assert say("backup", node, tmp_path / "copy")[0] == 1


def test_backup_of_what_is_damaged_copies_it_and_ends_with_1(node: Path, tmp_path: Path, say: Say) -> None:
    hurt(log_file(node), 50)
    code, lines = say("backup", node, tmp_path / "copy")
    copied = log_file(tmp_path / "copy")
    assert code == 1
    assert f"penstock log backup: {copied}: bad from byte 0 to 390" in lines
    assert copied.read_bytes() == log_file(node).read_bytes()


def test_verify_knows_a_lost_file_by_its_index(node: Path, say: Say) -> None:
    path = log_file(node)
    path.unlink()
    code, lines = say("verify", node)
    assert code == 1
    assert f"damage {path}: the file is missing: offsets 0 to 9 are lost" in lines
