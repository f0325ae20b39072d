"""TLS between the processes of a run: all hold the same certificate and its key, and trust no other."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from socket import create_connection, socket

from penstock.engine.protocol.messages import Address

RECORD_BYTES = 1 << 14  # the most that is encrypted at once: who reads so much leaves nothing in OpenSSL's own buffer
KEPT_CONTEXTS = 4


@dataclass(frozen=True)
class Credential:
    """The certificate of a run, and its key, as PEM."""

    certificate: str
    key: str = field(repr=False)


@lru_cache(KEPT_CONTEXTS)
def server_side(credential: Credential) -> ssl.SSLContext:
    """How whoever is called talks."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, credential)
    context.num_tickets = 0  # nobody resumes: a ticket would only lie unread at who never reads
    return context


@lru_cache(KEPT_CONTEXTS)
def client_side(credential: Credential) -> ssl.SSLContext:
    """How whoever calls talks."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, credential)


def connect(address: Address, timeout_s: float, credential: Credential | None) -> socket:
    """A connection; with a credential an encrypted one, with which hands have yet to be shaken (`do_handshake`)."""
    connection = create_connection(address, timeout=timeout_s)
    if credential is None:
        return connection
    return client_side(credential).wrap_socket(connection, do_handshake_on_connect=False)


def shake_hands(connection: socket) -> None:
    """Begin to encrypt; nothing on a connection that is not to be. May be called again after a TimeoutError."""
    if isinstance(connection, ssl.SSLSocket):
        connection.do_handshake()


def received(connection: socket, most: int) -> bytes | None:
    """What has come on a connection that can be read from; None if that was not yet a whole record of TLS.

    `most` is at least a record, so that nothing stays in OpenSSL's own buffer, where nobody looks for it.
    """
    if not isinstance(connection, ssl.SSLSocket):
        return connection.recv(most)
    timeout_s = connection.gettimeout()
    connection.settimeout(0)
    try:
        return connection.recv(most)
    except ssl.SSLWantReadError:
        return None
    finally:
        connection.settimeout(timeout_s)


def _context(side: int, credential: Credential) -> ssl.SSLContext:
    context = ssl.SSLContext(side)
    context.check_hostname = False  # the certificate is known, whatever the address
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=credential.certificate)
    with _as_file(credential.key + credential.certificate) as path:
        context.load_cert_chain(path)
    return context


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A file for the moment, as OpenSSL reads keys from files only: in memory, or where that cannot be for us alone."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("penstock"), "w") as file:
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile("w") as file:  # 0600
            file.write(text)
            file.flush()
            yield file.name
