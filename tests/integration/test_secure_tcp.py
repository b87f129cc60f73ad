"""TLS, snappy, deflate and AUTH on nsqd's TCP port: with other people's clients, and byte by byte."""

from __future__ import annotations

import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import BadStream
from penstock.stream import Tls
from tests.integration import foreign
from tests.integration.auth_server import AuthServer, allowing
from tests.integration.client import Client
from tests.integration.daemon import Nsqd
from tests.integration.secure_client import SecureClient
from tests.kit.certificates import Authority

IDENTIFY = b"  V2IDENTIFY\n"
MODES = ["plain", "tls", "snappy", "deflate", "tls snappy", "tls deflate"]
COUNT = 400


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def nsqd(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Nsqd]:
    """With a certificate."""
    pair = authority.pair("localhost")
    yield from served(Nsqd(tmp_path_factory.mktemp("nsqd"), f"--tls-cert={pair.cert}", f"--tls-key={pair.key}"))


def served(nsqd: Nsqd) -> Iterator[Nsqd]:
    yield nsqd
    assert nsqd.stop() == 0
    nsqd.assert_calm()


def started(what: str, client: str, nsqd: Nsqd, *rest: object, **wishes: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, foreign.__file__, what, client, str(nsqd.tcp), *map(str, rest)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "WISHES": json.dumps(wishes)},
    )


def numbers_of(consumer: subprocess.Popen[str], count: int) -> set[int]:
    """What it says that it finished, until these are so many; then it is ended."""
    seen: set[int] = set()
    assert consumer.stdout is not None
    with consumer.stdout:
        for line in consumer.stdout:
            seen.add(int(line.split()[0]))
            if len(seen) == count:
                break
        consumer.kill()
        consumer.wait(timeout=10)
    return seen


# --- streams


@pytest.mark.parametrize("mode", MODES)
def test_pynsq_publishes_and_consumes_in_each_mode(nsqd: Nsqd, authority: Authority, mode: str) -> None:
    # given pynsq as it is asked for such streams
    wishes: dict[str, Any] = {word: True for word in ("snappy", "deflate") if word in mode}
    if "tls" in mode:
        wishes |= {"tls_v1": True, "tls_options": {"ca_certs": authority.file, "cert_reqs": ssl.CERT_REQUIRED}}
    topic = mode.replace(" ", "-")
    # when it publishes and consumes
    consumer = started("consume", "pynsq", nsqd, topic, "c", **wishes)
    with started("produce", "pynsq", nsqd, topic, 0, COUNT, **wishes) as producer:
        # then all comes through
        assert numbers_of(consumer, COUNT) == set(range(COUNT))
        assert producer.wait(timeout=20) == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_carries_messages_of_every_size(nsqd: Nsqd, authority: Authority, mode: str) -> None:
    # given a client with such a stream
    with SecureClient(nsqd.tcp) as client:
        context = authority.client() if "tls" in mode else None
        agreed = client.secure(context, snappy="snappy" in mode, deflate="deflate" in mode, deflate_level=3)
        assert (agreed["tls_v1"], agreed["snappy"], agreed["deflate"]) == tuple(
            word in mode for word in ("tls", "snappy", "deflate")
        )
        topic = f"sizes-{mode.replace(' ', '-')}"
        client.subscribe(topic, "c", 10)
        # when it publishes small and large, easy and hard to compress
        bodies = [b"a", bytes(1_000_000), os.urandom(1_000_000), b"b" * 65_536, os.urandom(70_000)]
        for body in bodies:
            assert client.publish(topic, body) == b"OK"
        # then each comes as it was
        for body in bodies:
            message = client.message()
            assert message.body == body
            client.finish(message)
        # and `/stats` tells how it is connected
        (row,) = nsqd.channel(topic, "c")["clients"]
        assert (row["tls"], row["snappy"], row["deflate"]) == (agreed["tls_v1"], agreed["snappy"], agreed["deflate"])
        assert row["tls_version"] == ("TLS1.3" if "tls" in mode else "")


def test_a_client_need_not_wait_before_it_begins_with_tls(nsqd: Nsqd, authority: Authority) -> None:
    # given a client that sends IDENTIFY and its greeting in one go
    wishes = json.dumps({"feature_negotiation": True, "tls_v1": True}).encode()
    tls = Tls(authority.client(), server=False, name="localhost")
    tls.begin()
    with socket.create_connection(("127.0.0.1", nsqd.tcp), timeout=10) as wire:
        wire.sendall(IDENTIFY + struct.pack(">I", len(wishes)) + wishes + tls.outgoing())
        # when it has heard the answer, which is plain
        file = wire.makefile("rb")
        with file:
            size = struct.unpack(">I", file.read(4))[0]
            assert json.loads(file.read(size)[4:])["tls_v1"] is True
            # then what comes next is the handshake, and behind it an OK
            came = b""
            while not came.endswith(b"OK"):
                data = file.read1(65_536)
                assert data
                came += b"".join(map(bytes, tls.decode(data)))
                wire.sendall(tls.outgoing())


def test_who_compresses_need_not_wait_either(nsqd: Nsqd) -> None:
    # given a client that sends IDENTIFY and, deflated, a publish in one go
    wishes = json.dumps({"feature_negotiation": True, "deflate": True}).encode()
    deflated = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = deflated.compress(b"PUB early\n\0\0\0\5hello") + deflated.flush(zlib.Z_SYNC_FLUSH)
    with socket.create_connection(("127.0.0.1", nsqd.tcp), timeout=10) as wire:
        wire.sendall(IDENTIFY + struct.pack(">I", len(wishes)) + wishes + body)
        # then both are answered, the second deflated, behind an OK
        inflated, came = zlib.decompressobj(-15), b""
        with wire.makefile("rb") as file:
            size = struct.unpack(">I", file.read(4))[0]
            assert json.loads(file.read(size)[4:])["deflate"] is True
            while came.count(b"OK") < 2:
                came += inflated.decompress(file.read1(65_536))
    assert came == b"\0\0\0\6\0\0\0\0OK" * 2


def test_publishes_before_the_upgrade_are_answered_before_it(nsqd: Nsqd, authority: Authority) -> None:
    # given a client that publishes, and at once asks for TLS
    with SecureClient(nsqd.tcp) as client:
        client.send(b"PUB before\n\0\0\0\5hello" * 3)
        assert [client.answer() for _ in range(3)] == [b"OK"] * 3
        client.secure(authority.client())
        assert client.publish("before", b"hello") == b"OK"


def test_a_stream_is_upgraded_once(nsqd: Nsqd, authority: Authority) -> None:
    # given a client with TLS
    with SecureClient(nsqd.tcp) as client:
        client.secure(authority.client(), snappy=True)
        # when it identifies again, and asks for more
        agreed = client.identify(tls_v1=True, deflate=True)
        # then it is told that nothing begins
        assert (agreed["tls_v1"], agreed["deflate"]) == (False, False)
        assert client.publish("again", b"hello") == b"OK"


@pytest.mark.parametrize(
    ("wishes", "garbage", "line"),
    [
        ({"snappy": True}, b"PUB topic\n\0\0\0\1a", "no snappy: a stream begins otherwise"),
        ({"deflate": True}, b"\xff" * 50, "no deflate"),
        ({"tls_v1": True}, b"PUB topic\n\0\0\0\1a", "TLS: "),
    ],
    ids=["snappy", "deflate", "tls"],
)
def test_who_does_not_speak_what_was_agreed_is_dropped_with_a_line(
    nsqd: Nsqd, wishes: dict[str, bool], garbage: bytes, line: str
) -> None:
    # given a client that asks for a stream, and goes on in plain
    with Client(nsqd.tcp) as client:
        client.identify(**wishes)
        before = len(nsqd.log)
        client.send(garbage)
        # then it is dropped, and the log says why
        with pytest.raises((EOFError, ConnectionError)):
            client.until_it_ends()
    nsqd.wait_for_line(line)
    assert any("WARNING" in each and line in each for each in nsqd.log[before:])


@pytest.mark.parametrize("mode", ["snappy", "deflate", "tls deflate"])
def test_what_blows_up_is_refused_with_bounded_memory(nsqd: Nsqd, authority: Authority, mode: str) -> None:
    # given clients that send a few hundred kB which are hundreds of MB: a line without an end, and too large a message
    before = nsqd.resident()
    for begin in (b"", b"PUB bomb\n\x7f\xff\xff\xff", b"MPUB bomb\n\x00\x4f\xff\xff\x00\x00\x00\x01\x00\x0f\xff\xff"):
        with SecureClient(nsqd.tcp) as client:
            client.secure(
                authority.client() if "tls" in mode else None, snappy="snappy" in mode, deflate="deflate" in mode
            )
            # when they do
            with suppress(EOFError, ConnectionError, BadStream):
                client.send(begin + bytes(100_000_000))
                client.until_it_ends()
    # then they are dropped, and nothing of it is kept
    assert nsqd.resident() - before < 40 << 20
    # and others are served
    with Client(nsqd.tcp) as other:
        assert other.publish("bomb", b"hello") == b"OK"


# --- TLS that is demanded


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Nsqd]:
    """Wants to see certificates."""
    pair = authority.pair("localhost")
    flags = (
        f"--tls-cert={pair.cert}",
        f"--tls-key={pair.key}",
        "--tls-client-auth-policy=require-verify",
        f"--tls-root-ca-file={authority.file}",
    )
    yield from served(Nsqd(tmp_path_factory.mktemp("strict"), *flags))


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (b"PUB topic\n\0\0\0\1a", "PUB"),
        (b"MPUB topic\n\0\0\0\x0d\0\0\0\1\0\0\0\1a", "MPUB"),
        (b"DPUB topic 100\n\0\0\0\1a", "DPUB"),
        (b"SUB topic channel\n", "SUB"),
        (b"AUTH\n\0\0\0\1a", "AUTH"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_where_tls_is_required_nothing_is_done_without(strict: Nsqd, command: bytes, name: str) -> None:
    for before in ({}, {"tls_v1": False}):
        with Client(strict.tcp) as client:
            if before:
                client.identify(**before)
            client.send(command)
            assert client.answer() == f"E_INVALID cannot {name} in current state (TLS required)".encode()
            with pytest.raises(EOFError):
                client.until_it_ends()


@pytest.mark.parametrize(
    ("context", "line"),
    [
        pytest.param(lambda a, _: a.client(), "peer did not return a certificate", id="no-certificate"),
        pytest.param(lambda a, _: a.client(a.pair("c", expired=True)), "certificate has expired", id="expired"),
        pytest.param(lambda a, o: a.client(o.pair("c")), "unable to get local issuer", id="wrong-signer"),
    ],
)
def test_who_shows_no_good_certificate_is_refused_with_a_line(
    strict: Nsqd, authority: Authority, tmp_path: Path, context: Any, line: str
) -> None:
    # given a client whose certificate is not good
    before = len(strict.log)
    wrong = (BadStream, EOFError, AssertionError, ConnectionError)
    with SecureClient(strict.tcp) as client, pytest.raises(wrong):
        # when it shakes hands
        client.secure(context(authority, Authority(tmp_path / "others")))
    # then it is refused, and the log says why
    strict.wait_for_line(line)
    assert any("TLS: client(127.0.0.1:" in each and line in each for each in strict.log[before:])


def test_who_shows_a_good_certificate_is_served(strict: Nsqd, authority: Authority) -> None:
    with SecureClient(strict.tcp) as client:
        client.secure(authority.client(authority.pair("client")))
        assert client.publish("topic", b"hello") == b"OK"


def test_a_client_that_wants_another_server_leaves(nsqd: Nsqd, authority: Authority) -> None:
    # given a client that looks for another host
    with SecureClient(nsqd.tcp) as client, pytest.raises(BadStream, match=r"not valid for 'example\.org'"):
        client.secure(authority.client(), name="example.org")


def test_a_new_certificate_drops_no_client(tmp_path: Path) -> None:
    # given a client over TLS
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    pair = old.pair("localhost")
    nsqd = Nsqd(tmp_path, f"--tls-cert={pair.cert}", f"--tls-key={pair.key}")
    with SecureClient(nsqd.tcp) as client, SecureClient(nsqd.tcp) as later:
        client.secure(old.client())
        # when there is another certificate
        replaced = new.pair("localhost")
        Path(pair.cert).write_bytes(Path(replaced.cert).read_bytes())
        Path(pair.key).write_bytes(Path(replaced.key).read_bytes())
        nsqd.reload()
        # then it talks on, and the next one sees the new one
        assert client.publish("topic", b"hello") == b"OK"
        later.secure(new.client())
        assert later.publish("topic", b"hello") == b"OK"
    nsqd.stop()
    nsqd.assert_calm()


# --- AUTH


@pytest.fixture(scope="module")
def auth() -> Iterator[AuthServer]:
    server = AuthServer()
    server.answers = {
        "all": allowing(".*", "publish", "subscribe", identity="everybody", identity_url="http://everybody"),
        "publish": allowing("^orders$", "publish"),
        "subscribe": allowing("^orders$", "subscribe"),
        "nothing": {"ttl": 60, "authorizations": []},
        "no-ttl": allowing(".*", "publish", ttl=0),
        "admin": allowing(".*", "admin"),
        "bad-pattern": allowing("(", "publish"),
        "no-json": b"<html>",
    }
    yield server
    server.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, auth: AuthServer, authority: Authority) -> Iterator[Nsqd]:
    """Asks the auth server; the first of its two never answers."""
    pair = authority.pair("localhost")
    flags = (
        f"--tls-cert={pair.cert}",
        f"--tls-key={pair.key}",
        "--auth-http-address=127.0.0.1:1",
        f"--auth-http-address=127.0.0.1:{auth.port}",
    )
    yield from served(Nsqd(tmp_path_factory.mktemp("guarded"), *flags))


def authed(nsqd: Nsqd, secret: str) -> Client:
    client = Client(nsqd.tcp)
    answer = client.ask("AUTH", secret.encode())
    assert answer.startswith(b"{"), answer
    return client


def test_who_shows_a_secret_is_told_who_it_is(guarded: Nsqd, auth: AuthServer) -> None:
    # given a node where clients have to be known
    with Client(guarded.tcp) as client:
        assert client.identify()["auth_required"] is True
        # when one shows its secret
        answer = json.loads(client.ask("AUTH", b"all"))
        # then it is told, as the auth server was asked
        assert answer == {"identity": "everybody", "identity_url": "http://everybody", "permission_count": 1}
        expected = {"secret": "all", "remote_ip": "127.0.0.1", "tls": "false", "common_name": ""}
        assert auth.asked[-1] == ("GET /auth", expected)
        # and `/stats` says so
        client.subscribe("orders", "c", 1)
        (row,) = guarded.channel("orders", "c")["clients"]
        assert (row["authed"], row["auth_identity"], row["auth_identity_url"]) == (
            True,
            "everybody",
            "http://everybody",
        )


def test_the_auth_server_is_told_of_tls_and_of_the_name_in_a_certificate(
    tmp_path: Path, auth: AuthServer, authority: Authority
) -> None:
    # given a node that wants certificates, and asks by POST
    pair = authority.pair("localhost")
    nsqd = Nsqd(
        tmp_path,
        f"--tls-cert={pair.cert}",
        f"--tls-key={pair.key}",
        "--tls-client-auth-policy=require-verify",
        f"--tls-root-ca-file={authority.file}",
        f"--auth-http-address=http://localhost:{auth.port}/who",
        "--auth-http-request-method=post",
    )
    with SecureClient(nsqd.tcp) as client:
        client.secure(authority.client(authority.pair("client", common_name="shop")))
        assert client.ask("AUTH", b"all").startswith(b"{")
    expected = {"secret": "all", "remote_ip": "127.0.0.1", "tls": "true", "common_name": "shop"}
    assert auth.asked[-1] == ("POST /who", expected)
    nsqd.stop()
    nsqd.assert_calm()


PUB, MPUB = b"PUB orders\n\0\0\0\1a", b"MPUB orders\n\0\0\0\x0d\0\0\0\1\0\0\0\1a"
DPUB, SUB = b"DPUB orders 100\n\0\0\0\1a", b"SUB orders shop\n"
COMMANDS = {"PUB": PUB, "MPUB": MPUB, "DPUB": DPUB, "SUB": SUB}


@pytest.mark.parametrize("topic", ["orders", "bills"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("secret", ["", "all", "publish", "subscribe"])
def test_each_command_takes_its_permission(guarded: Nsqd, secret: str, command: str, topic: str) -> None:
    # given a client that has shown this secret, or none
    with authed(guarded, secret) if secret else Client(guarded.tcp) as client:
        # when it sends a command
        client.send(COMMANDS[command].replace(b"orders", topic.encode()))
        answer = client.answer()
        # then it is carried out where that is allowed
        right = "subscribe" if command == "SUB" else "publish"
        if secret == "all" or (secret == right and topic == "orders"):
            assert answer == b"OK"
            return
        channel = "shop" if command == "SUB" else ""
        assert answer.decode() == (
            f'E_UNAUTHORIZED AUTH failed for {command} on "{topic}" "{channel}"'
            if secret
            else f"E_AUTH_FIRST AUTH required before {command}"
        )
        # and else the connection is closed
        with pytest.raises(EOFError):
            client.until_it_ends()


@pytest.mark.parametrize(
    ("secret", "answer", "line"),
    [
        ("nothing", b"E_UNAUTHORIZED AUTH no authorizations found", ""),
        ("unknown", b"E_AUTH_FAILED AUTH failed", "it answers 403"),
        ("no-ttl", b"E_AUTH_FAILED AUTH failed", "invalid TTL 0"),
        ("admin", b"E_AUTH_FAILED AUTH failed", "unknown permission admin"),
        ("bad-pattern", b"E_AUTH_FAILED AUTH failed", "unable to compile topic"),
        ("no-json", b"E_AUTH_FAILED AUTH failed", "no JSON"),
    ],
)
def test_who_cannot_be_known_is_told_no_more(guarded: Nsqd, secret: str, answer: bytes, line: str) -> None:
    with Client(guarded.tcp) as client:
        assert client.ask("AUTH", secret.encode()) == answer
    if line:
        guarded.wait_for_line(line)
    # and a secret stands nowhere in the log
    assert not any(f"secret={secret}" in each for each in guarded.log)


def test_a_secret_is_shown_once(guarded: Nsqd) -> None:
    with authed(guarded, "all") as client:
        assert client.ask("AUTH", b"all") == b"E_INVALID AUTH already set"


def test_commands_behind_auth_wait_for_it(guarded: Nsqd) -> None:
    # given a client that does not wait for an answer
    with Client(guarded.tcp) as client:
        client.send(b"AUTH\n\0\0\0\3all" + PUB * 3 + MPUB + SUB)
        # then all is answered in its order
        assert client.answer().startswith(b'{"identity":"everybody"')
        assert [client.answer() for _ in range(5)] == [b"OK"] * 5


def test_where_time_is_over_the_server_is_asked_again(guarded: Nsqd, auth: AuthServer) -> None:
    # given a client whose permissions last a second
    auth.answers["short"] = allowing("^orders$", "publish", ttl=1)
    with authed(guarded, "short") as client:
        asked = len(auth.asked)
        # when it publishes until that is over
        while len(auth.asked) == asked:
            client.send(PUB + MPUB + DPUB)
            assert [client.answer() for _ in range(3)] == [b"OK"] * 3
        # then it was asked again, and what was published meanwhile was kept; and when that is over, and it says no
        auth.answers["short"] = allowing("^bills$", "publish")
        while (answer := client.ask("PUB orders", b"a")) == b"OK":
            pass
        # then it may not any more
        assert answer == b'E_UNAUTHORIZED AUTH failed for PUB on "orders" ""'


def test_an_auth_server_over_tls_has_to_be_who_it_says(tmp_path: Path, authority: Authority) -> None:
    # given an auth server with a certificate for another host, and one with its own
    answers = {}
    for name in ("example.org", "localhost"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.pair(name))
        answers[name] = AuthServer(context)
        answers[name].answers = {"all": allowing(".*", "publish")}
    for name, server in answers.items():
        # when a node asks it
        address = f"https://localhost:{server.port}/auth"
        flags = (f"--auth-http-address={address}", f"--tls-root-ca-file={authority.file}")
        (tmp_path / name).mkdir()
        nsqd = Nsqd(tmp_path / name, *flags)
        with Client(nsqd.tcp) as client:
            answer = client.ask("AUTH", b"all")
        # then only the latter is believed, and the log says why the other is not
        if name == "localhost":
            assert answer.startswith(b"{")
        else:
            assert answer == b"E_AUTH_FAILED AUTH failed"
            nsqd.wait_for_line("certificate is not valid for 'localhost'")
        nsqd.stop()
        nsqd.assert_calm()
        server.close()


def test_without_an_authority_there_is_no_auth(nsqd: Nsqd) -> None:
    with Client(nsqd.tcp) as client:
        assert client.ask("AUTH", b"all") == b"E_AUTH_DISABLED AUTH disabled"


@pytest.mark.parametrize("client", ["pynsq", "ansq"])
def test_other_clients_are_known_by_a_file(tmp_path: Path, client: str) -> None:
    # given a node with a file of tokens
    file = tmp_path / "tokens"
    file.write_text("shop token-of-the-shop publish:numbers subscribe:numbers/ch\n")
    nsqd = Nsqd(tmp_path, f"--auth-file={file}")
    # when a client publishes and consumes with its token
    consumer = started("consume", client, nsqd, "numbers", "ch", auth_secret="token-of-the-shop")
    with started("produce", client, nsqd, "numbers", 0, COUNT, auth_secret="token-of-the-shop") as producer:
        # then all comes through
        assert numbers_of(consumer, COUNT) == set(range(COUNT))
        assert producer.wait(timeout=20) == 0
    # and when the token is taken away, then that is so for who is connected too
    with authed(nsqd, "token-of-the-shop") as known:
        assert known.publish("numbers", b"1") == b"OK"
        file.write_text("")
        nsqd.reload()
        assert known.publish("numbers", b"1") == b"E_AUTH_FAILED AUTH failed"
    nsqd.stop()
    nsqd.assert_calm()


# --- limits


def test_tcp_and_http_share_their_places(tmp_path: Path) -> None:
    # given a node with one place for each address
    nsqd = Nsqd(tmp_path, "--max-connections-per-address=1")
    with Client(nsqd.tcp) as client:
        assert client.publish("topic", b"hello") == b"OK"
        # when another client comes from there, then it is refused
        with Client(nsqd.tcp) as second, pytest.raises((EOFError, ConnectionError)):
            second.until_it_ends()
        nsqd.wait_for_line("1 are connected from 127.0.0.1")
    nsqd.stop()


def test_who_makes_the_node_hold_most_is_dropped(tmp_path: Path) -> None:
    # given a node that may hold 4 MiB for its clients
    nsqd = Nsqd(tmp_path, "--max-client-memory=4194304")
    clients = [Client(nsqd.tcp) for _ in range(10)]
    # when ten announce a MiB each, and send all of it but the end
    for client in clients:
        with suppress(OSError):
            client.send(b"PUB topic\n\0\x10\0\0" + bytes((1 << 20) - 1))
    # then some are dropped, with a line, and others are served
    nsqd.wait_for_line("all together hold more than 4194304")
    with Client(nsqd.tcp) as other:
        assert other.publish("topic", b"hello") == b"OK"
    for client in clients:
        client.close()
    nsqd.stop()
