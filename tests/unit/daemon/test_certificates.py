"""TLS contexts from files: what is demanded, what cannot be used, and files that change."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from penstock.daemon.certificates import Certificates, TlsFiles
from penstock.errors import BadOption
from penstock.stream import Tls
from tests.kit.certificates import Authority
from tests.unit.stream.peers import shake


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def files(authority: Authority) -> TlsFiles:
    return TlsFiles(*authority.pair("localhost"), root_ca=authority.file)


def test_without_a_certificate_there_is_no_server() -> None:
    certificates = Certificates(TlsFiles())
    assert certificates.server is None
    assert certificates.client.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("policy", "mode"),
    [("", ssl.CERT_NONE), ("require", ssl.CERT_REQUIRED), ("require-verify", ssl.CERT_REQUIRED)],
)
def test_a_policy_says_whether_clients_show_a_certificate(files: TlsFiles, policy: str, mode: ssl.VerifyMode) -> None:
    server = Certificates(files._replace(policy=policy)).server
    assert server is not None
    assert server.verify_mode is mode


@pytest.mark.parametrize(
    ("version", "least"),
    [(0x301, ssl.TLSVersion.TLSv1), (0x303, ssl.TLSVersion.TLSv1_2), (0x304, ssl.TLSVersion.TLSv1_3)],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_lowest_version_is_the_one_that_was_asked_for(files: TlsFiles, version: int, least: Any) -> None:
    certificates = Certificates(files._replace(min_version=version))
    assert certificates.server is not None
    assert certificates.server.minimum_version == certificates.client.minimum_version == least


def test_an_old_client_is_served_only_where_that_was_asked_for(authority: Authority, files: TlsFiles) -> None:
    # given a client that knows no more than TLS 1.2
    old = authority.client()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    server = Certificates(files).server
    assert server is not None
    # when it talks to a server with the defaults, then that is what they speak
    one, other = Tls(server, server=True), Tls(old, server=False, name="localhost")
    shake(one, other)
    assert one.version == "TLSv1.2"


NO_PEM = str(Path(__file__))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param({"key": ""}, "--tls-key  cannot be used: No such file", id="no-key"),
        pytest.param({"cert": "/nowhere"}, "--tls-cert /nowhere and .* cannot be used: No such file", id="no-file"),
        pytest.param({"cert": NO_PEM}, "cannot be used: no PEM, or encrypted", id="no-pem"),
        pytest.param({"key": "OTHER"}, "key values mismatch", id="the-key-of-another"),
        pytest.param({"root_ca": "/nowhere"}, "--tls-root-ca-file /nowhere cannot be used: No such file", id="no-ca"),
        pytest.param({"root_ca": NO_PEM}, "no certificate or crl found", id="no-ca-in-it"),
        pytest.param({"root_ca": "", "policy": "require"}, "it needs --tls-root-ca-file", id="nobody-to-believe"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_at_the_start(
    authority: Authority, files: TlsFiles, change: dict[str, Any], why: str
) -> None:
    if change.get("key") == "OTHER":
        change = {"key": authority.pair("example.org").key}
    with pytest.raises(BadOption, match=why):
        Certificates(files._replace(**change))


def test_new_connections_get_the_files_of_the_day(tmp_path: Path) -> None:
    # given a server with a certificate, and a client that talks to it
    authority = Authority(tmp_path)
    files = TlsFiles(*authority.pair("localhost", common_name="first"))
    certificates = Certificates(files)
    before = connect(certificates, authority)
    # when there is another in its place, and the files are read again
    authority.pair("localhost", common_name="second")
    certificates.reload()
    # then new clients see that one, and the one from before talks on
    assert connect(certificates, authority)[1].common_name == "second"
    assert before[1].common_name == "first"
    assert b"".join(map(bytes, before[0].decode(before[1].encode(b"still here")))) == b"still here"


def test_files_that_became_bad_change_nothing(tmp_path: Path) -> None:
    # given a server with a certificate
    authority = Authority(tmp_path)
    files = TlsFiles(*authority.pair("localhost"))
    certificates = Certificates(files)
    # when that is broken, and read again
    Path(files.cert).write_text("nothing")
    with pytest.raises(BadOption):
        certificates.reload()
    # then clients are served as before
    assert connect(certificates, authority)[0].ready


def connect(certificates: Certificates, authority: Authority) -> tuple[Tls, Tls]:
    assert certificates.server is not None
    server = Tls(certificates.server, server=True)
    client = Tls(authority.client(), server=False, name="localhost")
    shake(server, client)
    return server, client
