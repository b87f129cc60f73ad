"""Decides from a history alone whether a promise was broken: a rule a function, all in one table. Does nothing else.

    check(history)      every violation; none is what is wanted
    summary(history)    what happened, in numbers

A rule excuses only what the history says was done: a loss by a power cut only where the flags allow it and only so far
back, a loss by damaged files only where the log has a hole for it and the node has said so.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.torture.history import OK, UNKNOWN, Figures, History
from tests.torture.ledger import SLACK, Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.torture.history import Finish, Publish, Receipt, Requeue

EARLY: Final = 0.005  # seconds: a delay is in ms, and clocks are read one behind the other
LATE: Final = 5.0


class Violation(NamedTuple):
    rule: str
    what: str


def nothing_is_lost(ledger: Ledger) -> Iterator[str]:
    """What was answered OK came on each channel."""
    room = sum(hole.next - hole.first for hole in ledger.holes)
    for channel in ledger.channels:
        unplaced = 0
        for number, publish in ledger.answered():
            excused = _cut_off(ledger, publish) or _hit(ledger, number) or _hit_while_deferred(ledger, publish)
            if excused or (channel, number) in ledger.came:
                continue
            unplaced += number not in ledger.offset_of
            if number in ledger.offset_of or not ledger.harms or unplaced > room:
                yield f"{number} was answered OK ({publish.how}) and did not come on {channel}"


def _cut_off(ledger: Ledger, publish: Publish | None) -> bool:
    """Whether the power went so soon behind the answer that the flags allow the loss."""
    if publish is None or ledger.promise.sync_every == 1:
        return False
    cuts = (died for died in ledger.deaths if died.how == "cut")
    return any(ledger.forgets_since(cut) <= publish.answered <= cut.at for cut in cuts)


def _hit(ledger: Ledger, number: int) -> bool:
    """Whether it stood where the log says that it holds nothing, after it was harmed."""
    offset = ledger.offset_of.get(number, -1)
    return bool(ledger.harms) and any(hole.first <= offset < hole.next for hole in ledger.holes)


def _hit_while_deferred(ledger: Ledger, publish: Publish) -> bool:
    """Whether it may have waited in a file of the timetable that was harmed; a log line has to say so."""
    due = publish.sent + publish.delay + SLACK
    return bool(publish.delay) and any(
        harm.kind == "timetable" and publish.sent <= harm.at <= ledger.well_since(due, SLACK) for harm in ledger.harms
    )


def nothing_comes_that_was_not_published(ledger: Ledger) -> Iterator[str]:
    for receipt in ledger.receipts:
        if not ledger.possible(receipt.number):
            yield f"{receipt.number} came on {receipt.channel}, and was not published"


def each_body_is_intact(ledger: Ledger) -> Iterator[str]:
    for receipt in ledger.receipts:
        if not receipt.intact:
            yield f"{receipt.number} came on {receipt.channel} with another body"


def nothing_finished_comes_back(ledger: Ledger) -> Iterator[str]:
    for finish in ledger.finishes:
        if not finish.known:
            continue
        for receipt in ledger.came.get((finish.channel, finish.number), []):
            if _later(ledger, finish, receipt) and not ledger.undone(finish.channel, finish.sent, receipt.at):
                again = receipt.at - finish.known
                yield f"{finish.number} came on {finish.channel} {again:.2f} s after its FIN had been taken"


def _later(ledger: Ledger, done: Finish | Requeue, receipt: Receipt) -> bool:
    """Whether it was sent after that, and not only read late by a client that did not read."""
    if not done.known or receipt.at <= done.known:
        return False
    return receipt.attempts > done.attempts or ledger.connections[receipt.connection].at > done.known


def nothing_is_early(ledger: Ledger) -> Iterator[str]:
    """Neither what was published with a delay nor what was requeued with one."""
    for receipt in ledger.receipts:
        publish = ledger.by_number.get(receipt.number)
        if publish is not None and publish.delay:
            early = publish.sent + publish.delay - receipt.at
            if early > EARLY + ledger.ahead(publish.sent, receipt.at):
                yield f"{receipt.number}, deferred {publish.delay} s, came {early:.3f} s early on {receipt.channel}"
    for requeue in ledger.requeues:
        later = [r for r in ledger.came.get((requeue.channel, requeue.number), []) if _later(ledger, requeue, r)]
        if later and not ledger.undone(requeue.channel, requeue.sent, later[0].at):
            early = requeue.sent + requeue.delay - later[0].at
            if early > EARLY + ledger.ahead(requeue.sent, later[0].at):
                yield f"{requeue.number}, requeued with {requeue.delay} s, came {early:.3f} s early"


def nothing_deferred_is_late(ledger: Ledger) -> Iterator[str]:
    """No later than `LATE` after it was due, or after all was well again."""
    for number, publish in ledger.answered():
        came = [ledger.came[channel, number][0].at for channel in ledger.channels if (channel, number) in ledger.came]
        if not publish.delay or not came or ledger.behind(publish.sent, min(came)):
            continue
        due = ledger.well_since(max(publish.sent + publish.delay, publish.answered), LATE)
        if min(came) > due + LATE:
            yield f"{number}, deferred {publish.delay} s, came {min(came) - due:.1f} s late"


def a_batch_comes_in_order(ledger: Ledger) -> Iterator[str]:
    """Where one consumer with RDY 1 is given what it was never given before."""
    last: dict[tuple[int, int], int] = {}
    seen: set[tuple[str, int]] = set()
    for receipt in ledger.receipts:
        again = (receipt.channel, receipt.number) in seen
        seen.add((receipt.channel, receipt.number))
        publish = ledger.by_number.get(receipt.number)
        if again or receipt.attempts > 1 or publish is None or ledger.connections[receipt.connection].ready != 1:
            continue
        key = (receipt.connection, publish.first)
        if receipt.number < last.get(key, -1):
            yield f"{receipt.number} came on {receipt.channel} behind {last[key]} of the same MPUB"
        last[key] = receipt.number


def the_log_agrees(ledger: Ledger) -> Iterator[str]:
    """Each message stands in it once, at the offset that its id says; nothing else stands in it."""
    if not ledger.bounds:
        return
    ((earliest, end, base),) = ledger.bounds
    times = Counter(kept.number for kept in ledger.kept)
    at = {kept.offset: kept.number for kept in ledger.kept}
    yield from (f"{number} stands in the log {count} times" for number, count in times.items() if count > 1)
    yield from (f"{number} stands in the log, not published" for number in times if not ledger.possible(number))
    for number, publish in ledger.answered():
        excused = ledger.offset_of.get(number, earliest) < earliest or _cut_off(ledger, publish)
        if number not in times and not excused and not ledger.harms:
            yield f"{number} was answered OK and is not in the log"
    for receipt in ledger.receipts:
        if _cut_off(ledger, ledger.by_number.get(receipt.number)):
            continue  # the topic itself may be another one since then
        offset = receipt.id - base
        if at.get(offset, receipt.number) != receipt.number or not 0 <= offset < end:
            yield f"{receipt.number} came with the id of offset {offset}: there stands {at.get(offset)}"


def an_id_names_one_message(ledger: Ledger) -> Iterator[str]:
    names: dict[int, int] = {}
    for receipt in ledger.receipts:
        if names.setdefault(receipt.id, receipt.number) != receipt.number:
            yield f"id {receipt.id:016x} named {names[receipt.id]}, and then {receipt.number}"


def stats_agree(ledger: Ledger) -> Iterator[str]:
    for figures in ledger.figures:
        if figures.final and figures.waiting:
            yield f"{figures.channel or 'the topic'} has {figures.waiting} messages that nobody gets"
        elif figures.channel and not ledger.harms:
            yield from _outstanding(ledger, figures)
        yield from _counters(ledger, figures)


def _outstanding(ledger: Ledger, figures: Figures) -> Iterator[str]:
    """What a channel has: all that was published and not finished, as far as that is known."""
    finishes = [each for each in ledger.finishes if each.channel == figures.channel and each.sent < figures.at]
    sent = {finish.number for finish in finishes}
    gone = {f.number for f in finishes if 0 < f.known <= figures.at and not ledger.forgotten(f.sent, figures.at)}
    before = [(n, p) for n, p in ledger.by_number.items() if p.sent < figures.at]
    certain = {n for n, p in before if p.outcome == OK and not _cut_off(ledger, p)}
    possible = {n for n, p in before if p.outcome in (OK, UNKNOWN)}
    if any(r.channel == figures.channel and r.at < figures.at for r in ledger.rewinds):
        gone = set()
    least, most = len(certain - sent), len(possible - gone)
    if not least <= figures.waiting <= most:
        yield f"/stats: {figures.channel} has {figures.waiting} messages, by the history {least} to {most}"


def _counters(ledger: Ledger, figures: Figures) -> Iterator[str]:
    """Since this life began: messages of the topic, requeues of a channel."""
    began = ledger.life_at(figures.at)
    if not figures.channel:
        mine = [p for p in ledger.publishes if began < p.sent < figures.at]
        least = sum(p.size for p in mine if p.outcome == OK)
        most = least + sum(p.size for p in mine if p.outcome == UNKNOWN)
        what, counted = "messages published", figures.messages
    else:
        asked = [r for r in ledger.requeues if r.channel == figures.channel and began < r.sent < figures.at]
        least, most = sum(r.known > 0 for r in asked), len(asked)
        what, counted = f"requeues on {figures.channel}", figures.requeues
    if not least <= counted <= most:
        yield f"/stats: {counted} {what}, by the history {least} to {most}"


def what_is_lost_is_told(ledger: Ledger) -> Iterator[str]:
    """A hole in the log has a reason, and damage is reported; nothing is reported where nothing was done."""
    if any(hole.why == "damaged" for hole in ledger.holes) and not ledger.reported:
        yield "the log has a damaged range that no log line tells of"
    came = {number for _, number in ledger.came}
    silent = ledger.harms and not ledger.reported
    for number, publish in ledger.answered() if silent else ():
        if number not in came and not _cut_off(ledger, publish):
            yield f"{number} is gone, files were harmed, and no log line tells of it"
    cut = any(died.how == "cut" for died in ledger.deaths)  # it may leave bytes that are none of a batch, too
    if not ledger.harms:
        yield from (f"told of damage that nobody did: {reported.line}" for reported in ledger.reported if not cut)
        yield from (f"a hole that nobody made: {hole}" for hole in ledger.holes if hole.why == "emptied" or not cut)


def nothing_else_went_wrong(ledger: Ledger) -> Iterator[str]:
    yield from (wrong.what for wrong in ledger.wrongs)


RULES: Final[tuple[Callable[[Ledger], Iterator[str]], ...]] = (
    nothing_is_lost,
    nothing_comes_that_was_not_published,
    each_body_is_intact,
    nothing_finished_comes_back,
    nothing_is_early,
    nothing_deferred_is_late,
    a_batch_comes_in_order,
    the_log_agrees,
    an_id_names_one_message,
    stats_agree,
    what_is_lost_is_told,
    nothing_else_went_wrong,
)


def check(history: History) -> list[Violation]:
    """Every violation of every rule."""
    ledger = Ledger(history)
    return [Violation(rule.__name__, what) for rule in RULES for what in rule(ledger)]


class Summary(NamedTuple):
    """What happened, in numbers."""

    published: int  # answered OK
    unknown: int
    received: int
    again: int  # receipts of what had come on the channel before
    finished: int  # known
    deferred: int
    excused: int  # answered OK, lost, and allowed to be

    def __add__(self, other: tuple[object, ...]) -> Summary:
        return Summary(*(a + b for a, b in zip(self, other, strict=True)))  # type: ignore[operator]


def summary(history: History) -> Summary:
    ledger = Ledger(history)
    answered = dict(ledger.answered())
    return Summary(
        published=len(answered),
        unknown=sum(publish.outcome == UNKNOWN for publish in ledger.by_number.values()),
        received=len(ledger.receipts),
        again=len(ledger.receipts) - sum(map(bool, ledger.came.values())),
        finished=sum(finish.known > 0 for finish in ledger.finishes),
        deferred=sum(publish.delay > 0 for publish in answered.values()),
        excused=sum(any((channel, n) not in ledger.came for channel in ledger.channels) for n in answered),
    )
