"""HTTP on an open port: TLS, tokens, limits; of nsqd and of nsqlookupd, as processes."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.daemon import Daemon, Nsqd, Nsqlookupd
from tests.kit.certificates import Authority

PROGRAMS: dict[str, Callable[..., Daemon]] = {
    "nsqd": Nsqd,
    "nsqlookupd": lambda _folder, *flags: Nsqlookupd(*flags),
}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Starts one with these flags, and stops it."""
    started: list[Daemon] = []

    def start(*flags: str) -> Daemon:
        started.append(PROGRAMS[request.param](tmp_path / "data", *flags))
        return started[0]

    (tmp_path / "data").mkdir()
    yield start
    for daemon in started:
        daemon.stop()
        daemon.assert_calm()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


def with_tls(authority: Authority, *more: str) -> list[str]:
    pair = authority.pair("localhost")
    return [f"--tls-cert={pair.cert}", f"--tls-key={pair.key}", *more]


def ask(port: int, context: ssl.SSLContext | None = None, path: str = "/ping", **headers: str) -> tuple[int, bytes]:
    with keeping(port, context) as connection:
        return said(connection, path, **headers)


@contextmanager
def keeping(port: int, context: ssl.SSLContext | None = None) -> Iterator[http.client.HTTPConnection]:
    """One connection."""
    if context is None:
        connection = http.client.HTTPConnection("localhost", port, timeout=10)
    else:
        connection = http.client.HTTPSConnection("localhost", port, timeout=10, context=context)
    try:
        yield connection
    finally:
        connection.close()


def said(connection: http.client.HTTPConnection, path: str = "/ping", **headers: str) -> tuple[int, bytes]:
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_http_over_tls_beside_plain_http(program: Any, authority: Authority) -> None:
    # given a daemon with a certificate
    daemon = program(*with_tls(authority))
    # then it answers on both ports
    assert ask(daemon.https, authority.client()) == (200, b"OK")
    assert ask(daemon.http) == (200, b"OK")


def test_where_tls_is_required_plain_http_is_told_where_to_go(program: Any, authority: Authority) -> None:
    # given a daemon that requires TLS
    daemon = program(*with_tls(authority, "--tls-required"))
    # when it is asked anything without, then it says NSQ's words
    for path in ("/ping", "/stats", "/nowhere"):
        assert ask(daemon.http, path=path) == (403, b'{"message": "TLS_REQUIRED", "https_port": %d}' % daemon.https)
    assert ask(daemon.https, authority.client()) == (200, b"OK")


def test_tcp_https_leaves_plain_http_open(program: Any, authority: Authority) -> None:
    daemon = program(*with_tls(authority, "--tls-required=tcp-https"))
    assert ask(daemon.http) == (200, b"OK")


def test_long_answers_and_bodies_go_through_tls(tmp_path: Path, authority: Authority) -> None:
    # given an nsqd with a certificate
    nsqd = Nsqd(tmp_path, *with_tls(authority))
    try:
        with keeping(nsqd.https, authority.client()) as connection:
            # when a MiB is published, three times on one connection
            for _ in range(3):
                connection.request("POST", "/pub?topic=large", body=bytes(range(256)) * 4096)
                assert connection.getresponse().read() == b"OK"
            # then all of it can be read again
            status, body = said(connection, "/log/read?topic=large&offset=0&max_bytes=9000000")
            assert (status, body.count(bytes(range(256)) * 4096)) == (200, 3)
    finally:
        nsqd.stop()
        nsqd.assert_calm()


@pytest.mark.parametrize(
    ("context", "line"),
    [
        pytest.param(lambda a, _: a.client(), "peer did not return a certificate", id="no-certificate"),
        pytest.param(lambda a, _: a.client(a.pair("c", expired=True)), "certificate has expired", id="expired"),
        pytest.param(lambda a, o: a.client(o.pair("c")), "unable to get local issuer", id="wrong-signer"),
    ],
)
def test_who_shows_no_good_certificate_is_refused_with_a_line(
    program: Any, authority: Authority, tmp_path: Path, context: Any, line: str
) -> None:
    # given a daemon that demands certificates
    flags = ["--tls-client-auth-policy=require-verify", f"--tls-root-ca-file={authority.file}"]
    daemon = program(*with_tls(authority, *flags))
    # when a client has none that is good
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        ask(daemon.https, context(authority, Authority(tmp_path / "others")))
    # then it is refused, and the log says why
    daemon.wait_for_line(line)
    assert any("TLS: client(127.0.0.1:" in each and line in each for each in daemon.log)
    # and one with a good one is served
    assert ask(daemon.https, authority.client(authority.pair("client"))) == (200, b"OK")


def test_a_client_that_does_not_believe_the_server_is_told_of(program: Any, authority: Authority) -> None:
    # given a client that trusts others
    daemon = program(*with_tls(authority))
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(daemon.https, ssl.create_default_context())
    # then the log says what it said
    daemon.wait_for_line("TLS: tlsv1 alert unknown ca")


def test_files_that_cannot_be_used_are_told_of_at_the_start(program: Any, tmp_path: Path) -> None:
    with pytest.raises(
        AssertionError, match=r"FATAL: --tls-cert /nowhere and --tls-key .* cannot be used: No such file"
    ):
        program("--tls-cert=/nowhere", f"--tls-key={tmp_path}")


def test_a_new_certificate_is_shown_from_the_next_connection_on(program: Any, tmp_path: Path) -> None:
    # given a daemon with a client whose connection is kept
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    pair = old.pair("localhost")
    daemon = program(f"--tls-cert={pair.cert}", f"--tls-key={pair.key}")
    with keeping(daemon.https, old.client()) as kept:
        assert said(kept) == (200, b"OK")
        # when the certificate is replaced by another authority's, and the daemon told so
        replaced = new.pair("localhost")
        Path(pair.cert).write_bytes(Path(replaced.cert).read_bytes())
        Path(pair.key).write_bytes(Path(replaced.key).read_bytes())
        daemon.reload()
        # then who is there talks on, and new ones see the new one
        assert said(kept) == (200, b"OK")
    assert ask(daemon.https, new.client()) == (200, b"OK")
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(daemon.https, old.client())
    # when it is broken, then nothing changes but the log
    Path(pair.cert).write_text("")
    daemon.reload()
    assert any("RELOAD: --tls-cert" in line for line in daemon.log)
    assert ask(daemon.https, new.client()) == (200, b"OK")


def test_tokens_are_asked_for_and_read_again(program: Any, tmp_path: Path) -> None:
    # given a daemon with a token
    file = tmp_path / "tokens"
    file.write_text("ops token-of-the-operators *:*\n")
    file.chmod(0o600)
    daemon = program(f"--http-token-file={file}")
    with keeping(daemon.http) as kept:
        # when it is asked without one, with another and with that one, then only that one helps
        assert ask(daemon.http) == (401, b'{"message":"UNAUTHORIZED"}')
        assert said(kept, Authorization="Bearer token")[0] == 401
        assert said(kept, Authorization="Bearer token-of-the-operators") == (200, b"OK")
        # when it is taken away, then it does not, on the same connection
        file.write_text("ops another-token-of-the-operators *:*\n")
        daemon.reload()
        assert said(kept, Authorization="Bearer token-of-the-operators")[0] == 401
        assert said(kept, Authorization="Bearer another-token-of-the-operators") == (200, b"OK")
    # and no token stands in the log
    assert not [line for line in daemon.log if "of-the-operators" in line]


def test_tokens_may_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch, program: Any) -> None:
    monkeypatch.setenv("PENSTOCK_HTTP_TOKENS", "ops token-of-the-operators read:*; pub token-of-a-publisher publish:a")
    daemon = program()
    assert ask(daemon.http)[0] == 401
    path = "/stats" if daemon.module.startswith("penstock.nsqd") else "/topics"
    assert ask(daemon.http, None, path, Authorization="Bearer token-of-the-operators")[0] == 200
    assert ask(daemon.http, None, path, Authorization="Bearer token-of-a-publisher")[0] == 403


# --- nsqd and nsqlookupd


def test_nsqd_registers_over_tls_where_both_show_a_certificate(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given an nsqlookupd that demands certificates and tokens, and knows of a channel
    monkeypatch.setenv("PENSTOCK_HTTP_TOKENS", "nsqd token-of-an-nsqd read:*; ops token-of-the-operators *:*")
    trust = f"--tls-root-ca-file={authority.file}"
    policy = "--tls-client-auth-policy=require-verify"
    lookupd = Nsqlookupd(*with_tls(authority, trust, policy, "--broadcast-address=localhost"))
    operator = authority.client(authority.pair("operator"))
    for path in ("/topic/create?topic=orders", "/channel/create?topic=orders&channel=shop"):
        with keeping(lookupd.https, operator) as connection:
            connection.request("POST", path, headers={"Authorization": "Bearer token-of-the-operators"})
            assert connection.getresponse().status == 200
    monkeypatch.delenv("PENSTOCK_HTTP_TOKENS")
    # when an nsqd with a certificate and a token is told of it, and a topic is made
    monkeypatch.setenv("PENSTOCK_LOOKUPD_TOKEN", "token-of-an-nsqd")
    address = f"--lookupd-tcp-address=localhost:{lookupd.tcp}"
    nsqd = Nsqd(tmp_path, *with_tls(authority, trust, address, "--lookupd-tls"))
    nsqd.wait_for_line("peer info")
    with nsqd.client() as client:
        assert client.publish("orders", b"hello") == b"OK"
    # then it has the channel that nsqlookupd knew of
    nsqd.wait_for_line("TOPIC(orders): new channel(shop)")
    # and nsqlookupd knows of it
    path = "/lookup?topic=orders"
    while True:
        status, body = ask(lookupd.https, operator, path, Authorization="Bearer token-of-an-nsqd")
        if status == 200 and b'"tcp_port":%d' % nsqd.tcp in body:
            break
    # and no token is in a log
    assert not [line for line in nsqd.log + lookupd.log if "token-of" in line]
    for daemon in (nsqd, lookupd):
        daemon.stop()
        daemon.assert_calm()


@pytest.mark.parametrize(
    ("flags", "theirs", "ours"),
    [
        pytest.param([], "it does not speak TLS, which is required", "the connection ended", id="plain"),
        pytest.param(["--lookupd-tls", "CA"], "peer did not return a certificate", "", id="no-certificate"),
        pytest.param(
            ["--lookupd-tls"], "it left in the handshake", "the certificate is refused", id="nobody-trusts-it"
        ),
        pytest.param(["--lookupd-tls", "CA", "127.0.0.1"], "", "not valid for '127.0.0.1'", id="another-name"),
    ],
)
def test_who_does_not_trust_the_other_does_not_talk_to_it(
    tmp_path: Path, authority: Authority, flags: list[str], theirs: str, ours: str
) -> None:
    # given an nsqlookupd that demands certificates
    trust = f"--tls-root-ca-file={authority.file}"
    lookupd = Nsqlookupd(*with_tls(authority, trust, "--tls-client-auth-policy=require-verify"))
    # when an nsqd talks to it in another way
    host = "127.0.0.1" if "127.0.0.1" in flags else "localhost"
    more = [flag.replace("CA", trust) for flag in flags if flag != "127.0.0.1"]
    nsqd = Nsqd(tmp_path, f"--lookupd-tcp-address={host}:{lookupd.tcp}", *more)
    # then both say why that does not work
    lookupd.wait_for_line(theirs)
    nsqd.wait_for_line("ERROR: LOOKUPD(")
    nsqd.wait_for_line(ours)
    assert any("LOOKUPD(" in line and "ERROR" in line and ours in line for line in nsqd.log)
    for daemon in (nsqd, lookupd):
        daemon.stop()
        daemon.assert_calm()


def test_one_port_takes_both_where_tls_is_not_required(tmp_path: Path, authority: Authority) -> None:
    # given an nsqlookupd with a certificate
    lookupd = Nsqlookupd(*with_tls(authority, "--broadcast-address=localhost"))
    # when one nsqd speaks TLS to it, and another does not
    address, folders = f"--lookupd-tcp-address=localhost:{lookupd.tcp}", (tmp_path / "a", tmp_path / "b")
    for folder in folders:
        folder.mkdir()
    secure = Nsqd(folders[0], address, "--lookupd-tls", f"--tls-root-ca-file={authority.file}")
    plain = Nsqd(folders[1], address)
    # then both are known
    for nsqd in (secure, plain):
        nsqd.wait_for_line("peer info")
        nsqd.stop()
        nsqd.assert_calm()
    lookupd.stop()
    lookupd.assert_calm()


# --- limits


def test_who_comes_when_all_places_are_taken_is_refused(program: Any, authority: Authority) -> None:
    # given a daemon with places for two, over all ports
    daemon = program(*with_tls(authority, "--max-connections=2"))
    with keeping(daemon.http) as first, keeping(daemon.https, authority.client()) as second:
        assert said(first) == said(second) == (200, b"OK")
        # when a third comes, to either port, then it is refused, and the log says so
        for port in (daemon.http, daemon.https):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as third:
                assert gone(third)
        daemon.wait_for_line("LIMITS: refused 1 connections: 2 are connected")
        # and when one leaves, there is place
        first.close()
        while True:
            with socket.create_connection(("127.0.0.1", daemon.http), timeout=10) as third:
                third.sendall(b"GET /ping HTTP/1.1\r\nHost: a\r\n\r\n")
                if not gone(third):
                    break


def gone(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_what_is_held_for_clients_has_an_end(tmp_path: Path) -> None:
    # given an nsqd that may hold 8 MiB for its clients
    nsqd = Nsqd(tmp_path, "--max-client-memory=8388608")
    clients = []
    try:
        # when ten announce bodies of 4 MiB, and send all but the last byte
        for _ in range(10):
            client = socket.create_connection(("127.0.0.1", nsqd.http), timeout=10)
            client.sendall(b"POST /mpub?topic=a HTTP/1.1\r\nHost: a\r\nContent-Length: 4194304\r\n\r\n")
            client.sendall(bytes((4 << 20) - 1))
            clients.append(client)
        # then some are cut off, with a line, and others are served
        nsqd.wait_for_line("all together hold more than 8388608")
        assert ask(nsqd.http) == (200, b"OK")
    finally:
        for client in clients:
            client.close()
        nsqd.stop()
