"""Who has what, and what those who wait are told: by a clock that a test moves, and against NSQ's maps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.nsqlookupd.registrations import NEVER, Nsqd, Registrations
from penstock.protocol.v1 import Identify

S = 10**9
INACTIVE, TOMBSTONE = 300 * S, 45 * S


class World:
    def __init__(self, *, tombstone: int = TOMBSTONE) -> None:
        self.changed: list[str] = []
        self.registrations = Registrations(INACTIVE, tombstone, self.changed.append)
        self.now = 1_700_000_000 * S

    def nsqd(self, name: str) -> Nsqd:
        nsqd = Nsqd(f"10.0.0.1:{name}", Identify("h", name, 1, 2, "1.3.0", "", ""), self.now)
        self.registrations.join(nsqd)
        return nsqd

    def wait(self, seconds: float) -> None:
        self.now += int(seconds * S)
        self.registrations.advance(self.now)

    def ping(self, nsqd: Nsqd) -> None:
        self.registrations.ping(nsqd, self.now)

    def silence(self, nsqd: Nsqd, *, but: Nsqd) -> None:
        """One of two is not heard for longer than may be."""
        self.wait((nsqd.heard + INACTIVE - self.now) / S)
        self.ping(but)
        self.wait(1)

    def tombstone(self, topic: str, name: str) -> None:
        self.registrations.tombstone(topic, f"{name}:2", self.now)

    def shown(self, topic: str) -> list[str]:
        return [nsqd.said.broadcast_address for nsqd in self.registrations.shown(topic)]

    def changes(self) -> list[str]:
        changes, self.changed[:] = list(self.changed), []
        return changes


def test_an_nsqd_is_shown_from_its_registration_until_it_leaves() -> None:
    world = World()
    a, b = world.nsqd("a"), world.nsqd("b")
    world.registrations.register(a, "t", "c")
    world.registrations.register(b, "t")
    assert world.shown("t") == ["a", "b"]
    world.registrations.leave(a)
    assert world.shown("t") == ["b"]
    # its channel stays known, for the next nsqd
    assert world.registrations.channels("t") == ["c"]


def test_the_revision_is_another_one_when_producers_are() -> None:
    world = World()
    revisions = [world.registrations.revision("t")]
    a, b = world.nsqd("a"), world.nsqd("b")
    for change in (
        lambda: world.registrations.create("t"),
        lambda: world.registrations.register(a, "t"),
        lambda: world.registrations.register(b, "t"),
        lambda: world.tombstone("t", "a"),
        lambda: world.wait(45),  # its tombstone is over
        lambda: world.silence(a, but=b),
        lambda: world.ping(a),  # and heard again
        lambda: world.registrations.unregister(a, "t"),
        lambda: world.registrations.leave(b),
    ):
        world.changes()
        change()
        assert set(world.changes()) == {"t"}
        revisions.append(world.registrations.revision("t"))
    assert len(set(revisions)) == len(revisions)
    # and one that is made again has none of before
    world.registrations.delete_topic("t")
    assert world.changes() == ["t"]
    assert world.registrations.revision("t") == 0
    world.registrations.create("t")
    assert world.registrations.revision("t") not in revisions


def test_what_shows_the_same_producers_wakes_nobody() -> None:
    world = World()
    a = world.nsqd("a")
    world.registrations.register(a, "t", "c")
    world.registrations.register(a, "u")
    revision, _ = world.registrations.revision("t"), world.changes()
    world.registrations.register(a, "t")
    world.registrations.register(a, "t", "d#ephemeral")
    world.registrations.unregister(a, "t", "d#ephemeral")
    world.registrations.create("t", "e")
    world.registrations.delete_channel("t", "e")
    world.wait(100)
    world.ping(a)
    world.tombstone("t", "nobody")
    world.tombstone("unknown", "a")
    world.registrations.delete_topic("unknown")
    assert world.changes() == []
    assert world.registrations.revision("t") == revision


def test_silence_makes_an_nsqd_inactive_and_a_ping_active() -> None:
    world = World()
    a, b = world.nsqd("a"), world.nsqd("b")
    for nsqd in a, b:
        world.registrations.register(nsqd, "t")
    world.wait(200)
    world.ping(a)
    world.wait(100)  # exactly the timeout: not over it
    assert world.shown("t") == ["a", "b"]
    assert world.registrations.next_time == world.now + 1
    world.wait(1)
    assert world.shown("t") == ["a"]
    assert world.registrations.next_time == a.heard + INACTIVE + 1
    world.ping(b)
    assert world.shown("t") == ["a", "b"]


def test_who_registers_while_inactive_is_not_shown() -> None:
    world = World()
    a = world.nsqd("a")
    world.wait(301)
    world.registrations.register(a, "t")
    assert world.shown("t") == []
    world.ping(a)
    assert world.shown("t") == ["a"]


def test_a_tombstone_hides_an_nsqd_for_one_topic_and_a_while() -> None:
    world = World()
    a = world.nsqd("a")
    world.registrations.register(a, "t")
    world.registrations.register(a, "u")
    world.tombstone("t", "a")
    world.registrations.register(a, "t")  # again: nothing changes
    assert (world.shown("t"), world.shown("u")) == ([], ["a"])
    assert world.registrations.next_time == world.now + TOMBSTONE
    world.wait(44.9)
    assert world.shown("t") == []
    world.wait(0.1)
    assert world.shown("t") == ["a"]
    assert a.topics["t"].tombstoned_at is not None


def test_a_second_tombstone_counts_from_itself() -> None:
    world = World()
    a = world.nsqd("a")
    world.registrations.register(a, "t")
    world.tombstone("t", "a")
    world.wait(30)
    world.tombstone("t", "a")
    world.wait(30)
    assert world.shown("t") == []
    world.wait(15)
    assert world.shown("t") == ["a"]
    assert world.registrations.next_time == a.heard + INACTIVE + 1


def test_who_unregisters_and_registers_again_has_no_tombstone() -> None:
    world = World()
    a = world.nsqd("a")
    world.registrations.register(a, "t")
    world.tombstone("t", "a")
    world.registrations.unregister(a, "t")
    world.registrations.register(a, "t")
    assert world.shown("t") == ["a"]
    world.changes()
    world.wait(60)  # nor does the end of the old one change anything
    assert world.changes() == []


def test_with_a_lifetime_of_nothing_a_tombstone_hides_nobody() -> None:
    world = World(tombstone=0)
    a = world.nsqd("a")
    world.registrations.register(a, "t")
    world.tombstone("t", "a")
    assert world.shown("t") == ["a"]
    assert a.topics["t"].tombstoned_at == world.now


def test_what_is_ephemeral_goes_with_its_last_producer() -> None:
    world = World()
    a, b = world.nsqd("a"), world.nsqd("b")
    for nsqd in a, b:
        world.registrations.register(nsqd, "t", "c#ephemeral")
        world.registrations.register(nsqd, "e#ephemeral", "c")
    world.registrations.leave(a)
    assert world.registrations.channels("t") == ["c#ephemeral"]
    assert sorted(world.registrations.topics) == ["e#ephemeral", "t"]
    world.registrations.leave(b)
    assert world.registrations.channels("t") == []
    assert world.registrations.channels("e#ephemeral") == []
    assert list(world.registrations.topics) == ["t"]


def test_a_topic_that_was_deleted_is_known_again_when_it_is_registered() -> None:
    world = World()
    a = world.nsqd("a")
    world.registrations.register(a, "t", "c")
    world.registrations.delete_topic("t")
    assert (list(a.topics), list(a.channels)) == ([], [])
    assert not world.registrations.unregister(a, "t", "c")
    assert not world.registrations.unregister(a, "t")
    assert world.registrations.register(a, "t", "c")
    assert (world.shown("t"), world.registrations.channels("t")) == (["a"], ["c"])


def test_with_nobody_there_nothing_has_a_time() -> None:
    world = World()
    a = world.nsqd("a")
    world.registrations.leave(a)
    assert world.registrations.next_time == NEVER


TOPICS, CHANNELS, WHO = st.sampled_from("tu"), st.sampled_from(["", "c", "d"]), st.sampled_from("ab")
STEPS = st.one_of(
    st.tuples(st.sampled_from(["register", "unregister", "create"]), WHO, TOPICS, CHANNELS),
    st.tuples(st.just("delete"), WHO, TOPICS, CHANNELS),
    st.tuples(st.sampled_from(["tombstone", "leave"]), WHO, TOPICS, st.just("")),
    st.tuples(st.just("wait"), WHO, TOPICS, st.just("")),
)


@given(st.lists(STEPS, max_size=40))
def test_all_that_is_shown_is_as_in_nsq_s_maps(steps: list[tuple[str, str, str, str]]) -> None:
    both = Both()
    before: dict[str, tuple[int, object]] = {}
    for what, *names in steps:
        getattr(both, what)(*names)
        for topic in "tu":
            shown = both.shown(topic)
            # whoever was told another revision was told others, or the same
            revision = both.world.registrations.revision(topic)
            if topic in before and before[topic][0] == revision:
                assert before[topic][1] == shown
            before[topic] = (revision, shown)


class Both:
    """The same done to the registrations and to the model."""

    def __init__(self) -> None:
        self.world, self.model = World(), Model()
        self.here = {name: self.world.nsqd(name) for name in "ab"}

    def register(self, who: str, topic: str, channel: str) -> None:
        self.world.registrations.register(self.here[who], topic, channel)
        self.model.register(who, topic, channel)

    def unregister(self, who: str, topic: str, channel: str) -> None:
        self.world.registrations.unregister(self.here[who], topic, channel)
        self.model.unregister(who, topic, channel)

    def create(self, _who: str, topic: str, channel: str) -> None:
        self.world.registrations.create(topic, channel)
        self.model.create(topic, channel)

    def delete(self, _who: str, topic: str, channel: str) -> None:
        if channel:
            there = self.model.found.pop(("channel", topic, channel), None) is not None
            assert self.world.registrations.delete_channel(topic, channel) == there
        else:
            self.world.registrations.delete_topic(topic)
            self.model.delete(topic)

    def tombstone(self, who: str, topic: str, _channel: str) -> None:
        self.world.tombstone(topic, who)
        producers = self.model.found.get(("topic", topic, ""), {})
        if who in producers:
            producers[who] = self.world.now

    def leave(self, who: str, _topic: str, _channel: str) -> None:
        self.world.registrations.leave(self.here[who])
        self.model.leave(who)
        self.here[who] = self.world.nsqd(who)

    def wait(self, _who: str, _topic: str, _channel: str) -> None:
        self.world.wait(20)
        for nsqd in self.here.values():
            self.world.ping(nsqd)

    def shown(self, topic: str) -> list[str] | None:
        """By both; None of a topic that is not known."""
        shown = self.model.shown(topic, self.world.now)
        known = topic in self.world.registrations.topics
        assert (sorted(self.world.shown(topic)) if known else None) == shown
        assert self.world.registrations.channels(topic) == self.model.channels(topic)
        return shown


class Model:
    """NSQ's: by category, topic and channel, who has it; with the time of a tombstone."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, str], dict[str, int | None]] = {}

    def register(self, who: str, topic: str, channel: str) -> None:
        self.create(topic, channel)
        if channel:
            self.found["channel", topic, channel].setdefault(who, None)
        self.found["topic", topic, ""].setdefault(who, None)

    def unregister(self, who: str, topic: str, channel: str) -> None:
        if channel:
            self.found.get(("channel", topic, channel), {}).pop(who, None)
            return
        for (_, name, _), producers in self.found.items():
            if name == topic:
                producers.pop(who, None)

    def create(self, topic: str, channel: str) -> None:
        if channel:
            self.found.setdefault(("channel", topic, channel), {})
        self.found.setdefault(("topic", topic, ""), {})

    def delete(self, topic: str) -> None:
        self.found = {key: producers for key, producers in self.found.items() if key[1] != topic}

    def leave(self, who: str) -> None:
        for producers in self.found.values():
            producers.pop(who, None)

    def shown(self, topic: str, now: int) -> list[str] | None:
        producers = self.found.get(("topic", topic, ""))
        if producers is None:
            return None
        return sorted(who for who, at in producers.items() if at is None or now - at >= TOMBSTONE)

    def channels(self, topic: str) -> list[str]:
        return sorted(key[2] for key in self.found if key[:2] == ("channel", topic))
