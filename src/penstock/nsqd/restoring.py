"""A node's topics and channels as they were: from the journal, the logs that are there, and a foreign nsqd.dat."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.log import entries as e
from penstock.log.retention import Limits
from penstock.log.state import NodeState
from penstock.nsqd import metadata
from penstock.protocol.names import is_valid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.log.state import TopicState
    from penstock.log.topic_log import TopicLog
    from penstock.nsqd.home import Home
    from penstock.nsqd.node import Node

T = TypeVar("T", e.ReaderMoved, e.ProducerSeen)


def restore(node: Node) -> None:
    """Into a node that has none yet."""
    state, gone = _replay(node)
    readers, producers = _by_topic(state.readers.values()), _by_topic(state.producers.values())
    for mark in sorted(producers.get(e.NODE, ()), key=lambda mark: mark.when):
        node.producers.marks[mark.key] = mark
    logs = {log.birth.incarnation: log for log in node.data_path.logs}
    lost = []
    for number, topic in state.topics.items():
        if (log := logs.pop(topic.incarnation, None)) is not None:
            home = _restore_topic(node, number, topic, log, state, readers.get(number, ()))
            node.producers.restore(home, producers.get(number, ()))
        else:
            lost.append((number, topic))
    damaged = node.scribe.journal.damaged
    for incarnation, log in logs.items():
        damaged |= _settle(node, log, gone.get(incarnation))
    for number, topic in lost:
        _make_again(node, number, topic, state)
    _merge_metadata(node, bring_back=damaged and not node.data_path.after_power_cut)


def _replay(node: Node) -> tuple[NodeState, dict[str, int]]:
    """What the journal says, and the incarnations that it says are gone, with the numbers that they had."""
    state, gone = NodeState(), {}
    for entry in node.scribe.journal.replay():
        if isinstance(entry, e.TopicDeleted) and entry.topic in state.topics:
            gone[state.topics[entry.topic].incarnation] = entry.topic
        state.apply(entry)
    node.scribe.next_topic, node.scribe.next_channel = state.next_topic, state.next_channel
    return state, gone


def _by_topic(entries: Iterable[T]) -> dict[int, list[T]]:
    found: dict[int, list[T]] = {}
    for entry in entries:
        found.setdefault(entry.topic, []).append(entry)
    return found


def _restore_topic(
    node: Node, number: int, state: TopicState, log: TopicLog, all_: NodeState, readers: Sequence[e.ReaderMoved]
) -> Home:
    cursors = [all_.channels[each].cursor for each in state.channels.values()]
    log.go_on_behind(max([state.routed, *cursors, *(reader.offset for reader in readers)]))
    routed = max([state.routed, log.earliest, *cursors])  # a power cut may have taken what said that R moved
    stands = bool(state.channels) and not (state.paused or state.following)  # for no reason that is written down:
    held = stands and bool(node.options.nsqlookupd_tcp_addresses)  # it was being looked up, and that goes on;
    following = state.following or (stands and not held)  # or a power cut took the reason, not what came behind it
    home = node.home(state.name, log, log.end if following else min(routed, log.end))
    home.number = number
    home.stands_since = state.routed_at
    home.retention = Limits(state.retention_bytes, state.retention_time)
    topic = home.topic
    topic.paused = state.paused
    for hole in log.holes(log.earliest, log.end):
        topic.add_hole(hole.first, hole.next)
    for hole in state.holes:
        topic.add_hole(hole.first, hole.next)
        log.add_hole(hole)
    for name, channel_number in state.channels.items():
        channel_state = all_.channels[channel_number]
        channel = topic.add_channel(name, channel_state.since)
        channel.cursor = min(max(channel_state.cursor, log.earliest), log.end)
        if channel.cursor > channel_state.cursor:  # said: else what it does now would seem to follow a lost entry
            node.scribe.tell(e.Page(channel_number, channel_state.cursor, channel.cursor, b""))
        channel.paused = channel_state.paused
        node.home_of[channel] = home
        node.scribe.watch(channel, channel_number).restore(channel_state, partial(_is_there, home, log))
        channel.tick(node.clock.now)
    for reader in readers:
        node.readers.restore(home, reader)
    if held:
        node.hold(home)
    node.homes[state.name] = home
    if topic.follows != state.following:  # so, too, where its channels were ephemeral, and R stands from now on
        node.scribe.tell(e.Routed(number, topic.routed, topic.follows, node.clock.wall))
    topic.route(node.clock.now)
    return home


def _is_there(home: Home, log: TopicLog, offset: int) -> bool:
    """A message that the journal calls unfinished; a power cut may have left that, and nothing else of it."""
    return home.topic.holds(offset) and (offset >= log.earliest or offset in log.held)


def _settle(node: Node, log: TopicLog, number: int | None) -> bool:
    """A log that the journal does not name: left of a deletion, or of a creation that nobody was told of.

    Or what named it is lost: then it is taken up, and that is so. `number` is that of one that was deleted.
    """
    if number is not None or log.birth.name in node.homes or not (log.bytes or log.deferred_count):
        node.remove(log, number)
        return False
    node.logger.warn("TOPIC(%s): found, and not in the journal; taken up without channels", log.birth.name)
    node.homes[log.birth.name] = home = node.register(log, log.earliest)
    node.producers.restore(home, ())
    for hole in log.holes(log.earliest, log.end):
        home.topic.add_hole(hole.first, hole.next)
    return True


def _make_again(node: Node, number: int, state: TopicState, all_: NodeState) -> None:
    """Its log is gone: nothing of it had reached the device, or somebody removed it. Its channels go on."""
    node.logger.error("TOPIC(%s): its log is gone from %s", state.name, node.data_path.path)
    with node.scribe.together():  # a crash in between would leave it without its channels
        node.scribe.order(e.TopicDeleted(number))
        home = node.topic(state.name)
        node.retain(home, Limits(state.retention_bytes, state.retention_time))
        for name, channel in state.channels.items():
            node.pause_channel(node.channel(home, name), all_.channels[channel].paused)
        if state.paused:
            node.pause_topic(home, True)


def _merge_metadata(node: Node, *, bring_back: bool) -> None:
    """Make what a foreign nsqd.dat asks for; with `bring_back`, the channels of our own that are not there."""
    try:
        found, ours = metadata.read(node.data_path.disk.files, node.data_path.path)
        for name, paused, channels in _topics(found):
            if not ours:
                _make(node, node.topic(name), paused, channels)
            elif bring_back and name in node.homes:
                _bring_back(node, node.homes[name], channels)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        node.logger.error("nsqd.dat is passed over, it is damaged: %s", error)


def _make(node: Node, home: Home, paused: bool, channels: Iterable[tuple[str, bool]]) -> None:
    for channel, channel_paused in channels:
        if channel not in home.topic.readers:
            node.pause_channel(node.channel(home, channel), channel_paused)
    if paused:
        node.pause_topic(home, True)


def _bring_back(node: Node, home: Home, channels: Iterable[tuple[str, bool]]) -> None:
    """Nobody knows how far they were: what is retained comes again, and nothing is lost."""
    for channel, paused in channels:
        if channel not in home.topic.channels and channel not in home.topic.readers:
            told = "TOPIC(%s): channel(%s) is lost from the journal: it begins at what is retained"
            node.logger.error(told, home.topic.name, channel)
            node.pause_channel(node.channel(home, channel, home.log.earliest, since=0), paused)


def _topics(found: Iterable[dict[str, Any]]) -> Iterator[metadata.Topic]:
    for topic in found:
        channels = [(channel["name"], bool(channel.get("paused"))) for channel in topic.get("channels") or []]
        if is_valid(topic["name"]):
            yield topic["name"], bool(topic.get("paused")), [each for each in channels if is_valid(each[0])]
