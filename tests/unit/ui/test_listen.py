"""Where the dashboard listens: here, unless somebody means otherwise."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import urllib.request
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.metrics.store import Store
from penstock.ui.listen import Listen, is_known_host, parse_listen
from penstock.ui.server import serve, serving
from tests.waiting import LONG_S


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("8080", "127.0.0.1", 8080),
        ("localhost:1", "localhost", 1),
        ("[::1]:80", "::1", 80),
        ("127.0.0.2:0", "127.0.0.2", 0),
    ],
)
def test_a_place_is_read(text: str, host: str, port: int) -> None:
    found = parse_listen(text)
    assert (found.host, found.port, found.is_loopback) == (host, port, True)


@pytest.mark.parametrize("text", ["", "here", ":80", "host:", "1.2.3.4:http", "80:", "-1"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--listen: must be \[HOST:\]PORT; got "):
        parse_listen(text)


def test_a_port_has_bounds() -> None:
    with pytest.raises(InputError, match="port must be from 0 to 65535; got 70000"):
        parse_listen("70000")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "some.host"])
def test_other_machines_are_let_in_with_tls_or_on_purpose(host: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give --cert and --key, or --insecure-listen"):
        Listen(host)
    assert Listen(host, insecure=True).url.startswith("http://")
    file = tmp_path / "pem"
    file.touch()
    assert Listen(host, cert=file, key=file).url.startswith("https://")


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a certificate and its key"):
        Listen(cert=tmp_path)
    with pytest.raises(InputError, match="no such file as"):
        Listen(cert=tmp_path / "a", key=tmp_path / "b")


def test_what_is_no_certificate_is_said(place: str, tmp_path: Path) -> None:
    file = tmp_path / "pem"
    file.touch()
    with pytest.raises(InputError, match="no certificate and key in"):
        serve(place, Listen(port=0, cert=file, key=file), print)


def test_a_port_that_is_taken_is_said(store: Store) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port}; Address already in use"):
            serving(store, Listen(port=port)).__enter__()


def test_what_is_no_store_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        serve(str(tmp_path / "none.db"), Listen(port=0), print)
    other = tmp_path / "other.db"
    other.write_text("not a database, by far")
    with pytest.raises(InputError, match=r"other.db': cannot be opened"):
        serve(str(other), Listen(port=0), print)


def test_names_that_were_given_are_known() -> None:
    assert is_known_host("some.host:8470", "some.host")
    assert is_known_host("192.0.2.1:8470", "0.0.0.0")
    assert not is_known_host("some.host.evil.example", "some.host")
    assert not is_known_host("127.0.0.1.evil.example", "127.0.0.1")


def test_tls_is_spoken_with_a_certificate(store: Store, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["-newkey", "ed25519", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(cert)]
    subprocess.run(["openssl", "req", "-x509", *made, *files], check=True, capture_output=True)
    trusted = ssl.create_default_context(cafile=str(cert))
    with serving(store, Listen("localhost", 0, cert, key)) as url:
        assert url.startswith("https://localhost:")
        asked = urllib.request.Request(f"{url}api/runs", headers={"Origin": url.rstrip("/")})
        with urllib.request.urlopen(asked, timeout=LONG_S, context=trusted) as answer:
            assert answer.status == 200
