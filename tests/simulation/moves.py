"""The random moves: what clients, administrators, the disk, time and the power do, one thing a step."""

from __future__ import annotations

import errno
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple
from unittest.mock import patch

from penstock.errors import LogError
from penstock.log import birth, data_path
from penstock.log.entries import NODES
from penstock.log.retention import Limits
from penstock.nsqd.options import Options
from penstock.options import Duration
from tests.simulation.clients import Client
from tests.simulation.look import look
from tests.simulation.model import Model, Publish
from tests.simulation.oracle import Oracle
from tests.simulation.peek import compare, peek
from tests.simulation.producers import Producer
from tests.simulation.survival import Bounds, Survival
from tests.simulation.world import MS, Killed, S, World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.broker.channel import Channel as NodeChannel
    from penstock.nsqd.home import Home
    from tests.simulation.model import Channel, Topic

TROUBLES: Final = (
    (("write", "open", "make_directory", "truncate"), (errno.ENOSPC, errno.EDQUOT)),
    (("write",), (errno.ENOSPC, errno.EIO)),
    (("flush", "flush_directory"), (errno.EIO,)),
    (("rename", "unlink"), (errno.EIO,)),
    (("open",), (errno.EMFILE, errno.EIO)),
    (("read", "read_now"), (errno.EIO,)),
)
TURNS: Final = 10_000  # of a drain: more is no progress


class Scene(NamedTuple):
    """What a simulation is about."""

    topics: tuple[str, ...] = ("a",)
    channels: tuple[str, ...] = ("c",)
    clients: int = 3
    sync_every: int = 2500
    weights: Mapping[str, float] = {}


class Simulation:
    """One world, its model, and what a seed makes of them."""

    def __init__(self, seed: int, scene: Scene) -> None:
        self.rng = Random(seed)
        self.scene = scene
        options = Options(sync_timeout=Duration(2 * S), sync_every=scene.sync_every, max_msg_timeout=Duration(20 * S))
        self.world = World(self.rng, options)
        self.model = Model(self.world.clock)
        self.oracle = Oracle(self.world, self.model)
        self.clients: list[Client] = []
        self.producers = [
            Producer(self.world, self.model, self.rng, f"p-{t}-{n}", t) for t in scene.topics for n in "ab"
        ]
        self.lives = 0
        self._numbers = 0
        self._moves: list[Callable[[], None]] = [getattr(self, name) for name in scene.weights]
        self._weights = list(scene.weights.values())

    def run(self, steps: int) -> None:
        """So many moves, and then everything has to come out."""
        with patch.object(birth, "secrets", _Drawn(self.rng)), patch.object(data_path, "secrets", _Drawn(self.rng)):
            self._start()
            for _ in range(steps):
                self._step(self.rng.choices(self._moves, self._weights)[0])
            self._drain()

    def _step(self, move: Callable[[], None]) -> None:
        self.model.step += 1
        try:
            move()
            self.world.turn()
        except Killed:
            self.world.kill()
            self.oracle.killed()
            self._ended(Bounds(said=self.oracle.said))
        for producer in self.producers:
            producer.hear()
        self.clients = [client for client in self.clients if not client.gone]
        self.model.touching.clear()
        self.oracle.compare()

    # --- clients

    def connect(self) -> None:
        if len(self.clients) >= self.scene.clients:
            return
        client = self._client()
        if self.rng.random() < 0.7:
            client.subscribe(self._topic(), self.rng.choice(self.scene.channels))

    def _client(self) -> Client:
        self._numbers += 1
        client = Client(self.world, self.model, f"client-{self._numbers}")
        client.identify(self.rng.randrange(1000, 9000) * MS)
        self.clients.append(client)
        return client

    def _topic(self) -> str:
        return self.rng.choice(self.scene.topics)

    def publish(self) -> None:
        if self.clients:
            count = self.rng.choice((1, 1, 1, 2, 5, 20))
            topic = self._topic()
            self.rng.choice(self.clients).publish([self._message(topic) for _ in range(count)])

    def defer(self) -> None:
        if self.clients:
            delay = self.rng.choice((1, 10, 500, 3000, 20_000)) * MS
            self.rng.choice(self.clients).publish([self._message(self._topic())], delay)

    def publish_once(self) -> None:
        self.rng.choice(self.producers).move(self._message)

    def _message(self, topic: str) -> Publish:
        self._numbers += 1
        body = b"m%d" % self._numbers + b"." * self.rng.choice((0, 10, 100, 300))
        self.model.published[body] = publish = Publish(topic, body, self.model.step)
        return publish

    def speak(self) -> None:
        """Bytes of a client arrive, cut anywhere."""
        if talkers := [client for client in self.clients if client.unfed]:
            client = self.rng.choice(talkers)
            few = self.rng.random() < 0.3
            client.feed(self.rng.randrange(1, 40) if few else client.unfed)

    def _consumer(self) -> Client | None:
        found = [client for client in self.clients if client.channel is not None]
        return self.rng.choice(found) if found else None

    def ask(self) -> None:
        """RDY."""
        if consumer := self._consumer():
            consumer.get_ready(self.rng.choice((0, 1, 2, 10, 100)))

    def finish(self) -> None:
        if (consumer := self._consumer()) and consumer.hand:
            for body in self._some(consumer):
                consumer.finish(body)

    def requeue(self) -> None:
        if (consumer := self._consumer()) and consumer.hand:
            for body in self._some(consumer)[:3]:
                consumer.requeue(body, self.rng.choice((0, 0, 5, 100, 1500, 10_000)) * MS)

    def touch(self) -> None:
        if (consumer := self._consumer()) and consumer.hand:
            for body in self._some(consumer)[:3]:
                consumer.touch(body)

    def _some(self, consumer: Client) -> list[bytes]:
        return self.rng.sample(list(consumer.hand), self.rng.randrange(1, len(consumer.hand) + 1))

    def end_subscription(self) -> None:
        """CLS."""
        if (consumer := self._consumer()) and not consumer.asked_to_close:
            consumer.close_slowly()

    def leave(self) -> None:
        if self.clients:
            self.rng.choice(self.clients).wire.close(aborted=self.rng.random() < 0.5)

    def stall(self) -> None:
        """A client reads nothing, or goes on."""
        if self.clients:
            wire = self.rng.choice(self.clients).wire
            wire.stalled = not wire.stalled

    def read_some(self) -> None:
        if stalled := [client.wire for client in self.clients if client.wire.stalled]:
            self.rng.choice(stalled).read_some(self.rng.randrange(1, 200))

    # --- administrators

    def _home(self) -> tuple[Home, Topic] | None:
        """A topic of the node and of the model."""
        name = self._topic()
        home = self.world.node.homes.get(name)
        self.model.touching.add(name)
        return (home, self.model.topics[name]) if home is not None else None

    def _where(self) -> tuple[Home, Topic, NodeChannel, Channel] | None:
        """A channel likewise."""
        if (found := self._home()) is None or not found[1].channels:
            return None
        home, topic = found
        name = self.rng.choice(list(topic.channels))
        return home, topic, home.topic.channels[name], topic.channels[name]

    def pause_topic(self) -> None:
        if found := self._home():
            home, topic = found
            self._ask(lambda: self.world.node.pause_topic(home, not topic.paused))
            self.model.pause_topic(topic, home.topic.paused)

    def pause_channel(self) -> None:
        if found := self._where():
            _, topic, node_channel, channel = found
            self._ask(lambda: self.world.node.pause_channel(node_channel, not channel.paused))
            self.model.pause_channel(topic, channel, node_channel.paused)

    def empty_topic(self) -> None:
        if found := self._home():
            home, topic = found
            if self._ask(lambda: self.world.node.empty_topic(home)):
                self.model.empty_topic(topic)

    def empty_channel(self) -> None:
        if found := self._where():
            _, topic, node_channel, channel = found
            if self._ask(lambda: self.world.node.empty_channel(node_channel)):
                self.model.empty_channel(topic, channel)

    def make_channel(self) -> None:
        if found := self._home():
            home, name = found[0], self.rng.choice(self.scene.channels)
            self._ask(lambda: self.world.node.channel(home, name))

    def make_channel_from(self) -> None:
        """At what is retained, at the end, or between."""
        if found := self._home():
            home, topic = found
            name, begin = self.rng.choice(self.scene.channels), self._place(home)
            if name not in home.topic.channels and self._ask(lambda: self.world.node.channel(home, name, begin)):
                self.model.made_channel(topic, name, home.topic.channels[name].since, begin)

    def rewind(self) -> None:
        if found := self._where():
            home, topic, node_channel, channel = found
            cursor = self._place(home)
            if self._ask(lambda: self.world.node.rewind(node_channel, cursor)):
                self.model.rewind(topic, channel, cursor, node_channel.since)

    def _place(self, home: Home) -> int:
        latest = home.topic.latest
        earliest = min(home.log.kept_from, latest)
        return self.rng.choice((earliest, latest, self.rng.randint(earliest, latest)))

    def retain(self) -> None:
        if found := self._home():
            home, topic = found
            wanted = Limits(self.rng.choice((NODES, 0, 0, 5000)), self.rng.choice((NODES, NODES, 0, 3 * S)))
            if not topic.ephemeral and self._ask(lambda: self.world.node.retain(home, wanted)):
                self.model.retain(topic, (wanted.bytes, wanted.time))

    def commit(self) -> None:
        """A query has read as far as there, or less far than it said before."""
        if found := self._home():
            home, topic = found
            name, readers = self.rng.choice(("q", "r")), self.world.node.readers
            kept = home.log.kept_from
            offset = self.rng.randint(kept, max(kept, home.log.committed))
            if self._ask(lambda: readers.commit(home, name, offset)):
                self.model.commit(topic, name, offset)

    def delete_reader(self) -> None:
        if (found := self._home()) and found[1].readers:
            home, topic = found
            reader = home.topic.readers[self.rng.choice(list(topic.readers))]
            if self._ask(lambda: self.world.node.readers.delete(home, reader)):
                self.model.delete_reader(topic, reader.name)

    def peek(self) -> None:
        """Somebody looks, and changes nothing."""
        if (where := self._where()) and where[0].log.committed == where[0].log.end:
            home, topic, _, channel = where
            with self.world.unseen():
                found = peek(self.world, home.topic.name, channel.name)
                compare(found, topic, channel, self.model, 0 if topic.ephemeral else home.log.earliest)

    def delete_channel(self) -> None:
        if found := self._where():
            home, topic, _, channel = found
            if self._ask(lambda: self.world.node.delete_channel(home, channel.name)):
                self.model.delete_channel(topic, channel.name)

    def delete_topic(self) -> None:
        if found := self._home():
            home, topic = found
            if self._ask(lambda: self.world.node.delete_topic(home)):
                self.model.delete_topic(topic.name)

    def _ask(self, what: Callable[[], object]) -> bool:
        """Whether it was done; where a disk that fails is why not, it may stand in the journal all the same."""
        try:
            what()
        except LogError as error:
            self.model.may_fail(str(error).encode())
            self.model.unsure()
            return False
        return True

    # --- time and slow work

    def pass_time(self) -> None:
        self.world.pass_time(self.rng.choice((1, 10, 100, 1000, 5000)) * MS)

    def begin_work(self) -> None:
        if self.world.jobs:
            self.world.do_job(self.rng.randrange(len(self.world.jobs)))

    def end_work(self) -> None:
        if self.world.back:
            self.world.bring_back(self.rng.randrange(len(self.world.back)))

    # --- the disk

    def trouble(self) -> None:
        """Calls of some kind fail from now on, or a few of them."""
        self.model.troubled = True
        on, codes = self.rng.choice(TROUBLES)
        times = self.rng.choice((1, 1, 2, 5, None))
        code, written = self.rng.choice(codes), self.rng.choice((0, 0, 1, 100))
        self.world.files.fail(code, on=on, skip=self.rng.randrange(5), times=times, written=written)

    def heal(self) -> None:
        """The disk is well again; what follows from that needs a while, and nobody's help."""
        if not self.model.troubled:
            return
        self.world.files.heal()
        for _ in range(10):
            self.world.pass_time(1 * S)
            self.world.finish_jobs()
        assert self.world.node.refused is None
        assert self.world.journal.failed is None
        self.model.troubled = False

    def drag(self) -> None:
        """Writes take long from now on, so that threads make them; or no more."""
        self.world.files.slow = not self.world.files.slow

    def chill(self) -> None:
        """What is read now has to come from the device first, or is in memory again."""
        cold = self.world.beneath.cold
        files = [path for path, data in self.world.beneath.tree().items() if data is not None and path.endswith(".log")]
        cold.clear()
        cold.update(self.rng.sample(files, self.rng.randrange(len(files) + 1)))

    # --- lives

    def kill(self) -> None:
        self.world.kill()
        self.oracle.killed()
        self._ended(Bounds(said=self.oracle.said))

    def kill_soon(self) -> None:
        """In the middle of what comes."""
        self.world.calls_left = self.rng.randrange(1, 30)

    def cut(self) -> None:
        oracle = self.oracle
        self.world.cut()
        sure = oracle.sure
        self._ended(Bounds(sure.said, sure.step, oracle.flushed, oracle.put, self.world.jumped, oracle.doubted))
        oracle.all_is_on_the_device()

    def stop(self) -> None:
        errors = self.world.logger.journal_errors
        try:
            self.world.stop()
        except LogError as error:
            self.model.may_fail(str(error).encode())
            self.kill()
        else:  # a journal without room is no reason not to stop
            written = self.world.logger.journal_errors == errors
            self._ended(Bounds() if written else Bounds(said=self.oracle.said))

    def _start(self) -> None:
        """The next life; it may end while it begins."""
        while True:
            self.lives += 1
            try:
                self.world.start()
                self.oracle.begins()
                return
            except Killed:
                self.world.kill()

    def _ended(self, bounds: Bounds) -> None:
        self.clients.clear()
        for producer in self.producers:
            producer.forget()
        if self.rng.random() < 0.1:
            self.world.calls_left = self.rng.randrange(1, 30)
        self._start()
        node = self.world.node
        bounds.brought_back = node.scribe.journal.damaged and not node.data_path.after_power_cut
        with self.world.unseen():
            found = look(node)
        Survival(self.model, bounds).check(found)
        self.model.troubled = False
        for name, home in self.world.node.homes.items():
            self.model.topics[name].end, self.model.topics[name].committed = home.log.end, home.log.committed

    # --- the end

    def _drain(self) -> None:
        """Every message that is there is delivered and finished, on every channel that is due it."""
        self._step(self.heal)
        self._step(self.stop)
        self.world.calls_left = None
        for home in self.world.node.homes.values():
            self.world.node.pause_topic(home, False)
            self.model.pause_topic(self.model.topics[home.topic.name], False)
            for node_channel in home.topic.channels.values():
                self.world.node.pause_channel(node_channel, False)
                self.model.topics[home.topic.name].channels[node_channel.name].paused = False
        for name, topic in self.model.topics.items():
            for channel in list(topic.channels) or ["drain"]:
                client = self._client()
                client.subscribe(name, channel)
                client.feed(client.unfed)
                client.get_ready(50)
                client.feed(client.unfed)
        for _ in range(TURNS):
            self._step(self._drain_some)
            if not self._left():
                return
        raise AssertionError(f"never delivered: {self._left()}")

    def _left(self) -> list[bytes]:
        left: list[bytes] = []
        for topic in self.model.topics.values():
            left += [*topic.deferred, *topic.waiting.values()]
            for channel in topic.channels.values():
                left += channel.pending
        return left

    def _drain_some(self) -> None:
        for client in self.clients:
            if client.channel is not None:
                for body in list(client.hand):
                    client.finish(body)
                client.feed(client.unfed)
        self.world.turn()
        self.world.finish_jobs()
        self.world.pass_time(100 * MS)


class _Drawn:
    """`secrets`, from the seed."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def token_hex(self, size: int) -> str:
        return self._rng.randbytes(size).hex()

    def randbits(self, bits: int) -> int:
        return self._rng.getrandbits(bits)
