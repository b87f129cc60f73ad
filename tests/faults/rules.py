"""What every recovery has to show, measured by what was known: after a kill all of it, after a cut what was flushed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from penstock.log.entries import ReaderMoved
from penstock.log.journal import Journal
from penstock.log.topic_log import TopicLog
from penstock.protocol.batch import records

from .known import Book, Known, Message, There

NEW = "new"  # stands for the folder of any topic whose making began
JOURNAL = "journal"  # stands for the journal, whose entries are numbers that ascend
DEFERRED = b"deferred "  # how the bodies of deferred messages begin


def check_topics(logs: Iterable[TopicLog], known: dict[str, Known], book: Book, *, cut: bool) -> None:
    """No message is there that nobody wrote, none lacks that was promised, and the holes say what does."""
    found = {log.birth.folder: log for log in logs}
    for folder in found.keys() - known.keys():
        assert NEW in known, f"nobody made {folder}"
        assert not messages(found[folder]), f"{folder} is new and holds messages"
    for folder in known.keys() - {NEW, JOURNAL}:
        log, topic = found.get(folder), known[folder]
        if log is None:
            check_gone(topic, cut=cut)
        else:
            check_topic(log, topic, book.messages.get(folder, {}), cut=cut)


def check_gone(topic: Known, *, cut: bool) -> None:
    promised = topic.there is There.SURE or any(topic.told <= offset < topic.flushed for offset in topic.alive)
    may_be = topic.there in (There.GOING, There.GONE, There.ERASED) or (cut and not promised)
    assert may_be, f"a topic lacks that {topic.there.value}"


def check_topic(log: TopicLog, topic: Known, written: dict[int, list[Message]], *, cut: bool) -> None:
    assert topic.there is not There.ERASED
    assert cut or topic.there is not There.GONE, "a deleted topic is there"
    assert log.end >= topic.end, f"{log.end} was given out before, up to {topic.end}"
    assert topic.told <= log.earliest, f"{log.earliest} is kept, below {topic.told} all was said to be gone"
    assert log.earliest <= topic.wished, f"below {log.earliest} nothing is kept, asked for was {topic.wished}"
    found = messages(log)
    for offset, message in found.items():
        tried = written.get(offset, [])
        if offset in topic.alive:
            tried = tried[-1:]
        assert message in tried, f"{message} at {offset}, where {tried} was written"
    kept = max(log.earliest, min(topic.wished, log.chain.first(0)))  # on a full disk files go before topic.json says so
    lacking = {offset for offset in topic.alive - found.keys() if offset >= kept or offset in topic.held}
    if cut:
        lacking = {offset for offset in lacking if offset < max(topic.flushed, topic.told)}
    assert not {offset for offset in lacking if offset < log.committed}, f"{sorted(lacking)} lack"
    check_holes(log, [offset for offset in found if offset >= log.earliest])


def check_deferred(log: TopicLog, topic: Known, book: Book, *, cut: bool) -> None:
    """What was deferred waits, or stands in the log, or was deleted there: never twice, never nowhere."""
    found = Counter(entry.body for entry in log.timetable.entries(1 << 30))
    found.update(message.body for message in messages(log).values() if message.body.startswith(DEFERRED))
    assert not (twice := [body for body, times in found.items() if times > 1]), f"{twice} are there twice"
    moved = book.moved.get(log.birth.folder, {})
    deleted = {body for body, offset in moved.items() if offset < log.earliest}
    lacking = (topic.safe if cut else topic.deferred) - found.keys() - deleted
    assert not lacking, f"{sorted(lacking)} were deferred and lack"


def check_journal(journal: Journal, known: Known, *, cut: bool) -> int:
    """The last number in it: all that was answered is there, after a cut all that was flushed."""
    numbers = [entry.offset for entry in journal.replay() if isinstance(entry, ReaderMoved)]
    last = max(numbers, default=0)
    assert numbers == sorted(numbers), f"{numbers} are out of order"
    assert last >= (known.flushed if cut else known.end), f"{last} is the last, promised was {known}"
    return last


def check_holes(log: TopicLog, found: Iterable[int]) -> None:
    """The holes are what lacks between earliest and the committed end, no more and no less."""
    expected = list(gaps(found, log.earliest, log.committed))
    holes: list[tuple[int, int]] = []
    for hole in log.holes(0, log.committed):
        if holes and holes[-1][1] >= hole.first:
            holes[-1] = (holes[-1][0], max(holes[-1][1], hole.next))
        else:
            holes.append((hole.first, hole.next))
    assert holes == expected, f"holes {holes}, lacking {expected}"


def messages(log: TopicLog) -> dict[int, Message]:
    """All that the log gives, read block by block: held of deleted segments, and from its earliest to its end."""
    found: dict[int, Message] = {}
    offset = 0
    while (block := log.read(offset, 200)) is not None:
        assert block.next > offset, "a read that does not go on"
        for record in records(block.data):
            if record.offset >= offset:
                found[record.offset] = Message(record.body, record.timestamp, record.id)
        offset = block.next
    return found


def gaps(offsets: Iterable[int], first: int, end: int) -> Iterator[tuple[int, int]]:
    """The ranges of `[first, end)` without any of the offsets."""
    for offset in sorted(offsets):
        if offset > first:
            yield first, offset
        first = offset + 1
    if first < end:
        yield first, end
