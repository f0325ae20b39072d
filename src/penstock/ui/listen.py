"""Where the dashboard listens, and who may be let in there."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import InputError

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8470
_WAITING = 64  # connections that are not accepted yet


@dataclass(frozen=True, slots=True)
class Listen:
    """A host and a port; 0 takes any that is free.

    Beyond this machine it wants TLS (`cert` and `key`), or to be told that it may do without (`insecure`).
    """

    host: str = LOOPBACK
    port: int = DEFAULT_PORT
    cert: Path | None = None
    key: Path | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise InputError(f"dashboard: port must be from 0 to 65535; got {self.port}")
        if (self.cert is None) != (self.key is None):
            raise InputError("dashboard: TLS needs a certificate and its key, --cert FILE and --key FILE")
        for file in filter(None, (self.cert, self.key)):
            if not file.is_file():
                raise InputError(f"dashboard: no such file as {str(file)!r}")
        if not (self.is_loopback or self.cert or self.insecure):
            raise InputError(
                f"dashboard: on {self.host!r}, beyond this machine, whoever reaches the port reads the runs, and "
                "without TLS so does whoever reads the network, and finds the token there with which a run is steered; "
                "give --cert and --key, or --insecure-listen if that is meant"
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        address = _address(self.host)
        return self.host == "localhost" or (address is not None and address.is_loopback)

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return f"{'https' if self.cert else 'http'}://{_in_url(self.host)}:{self.port}/"

    def bind(self) -> socket.socket:
        """The socket, listening; an InputError where the port is taken or the host is not of this machine."""
        try:
            family, _, _, _, address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0]
            return socket.create_server(address[:2], family=family, backlog=_WAITING)
        except OSError as error:
            place = f"{_in_url(self.host)}:{self.port}"
            raise InputError(f"dashboard: cannot listen on {place}; {error.strerror or error}") from error


def parse_listen(
    text: str, *, cert: Path | None = None, key: Path | None = None, insecure: bool = False, what: str = "--listen"
) -> Listen:
    """`[HOST:]PORT` as a place to listen; HOST is this machine by default.

    >>> parse_listen("8080").url, parse_listen("[::1]:8080").url
    ('http://127.0.0.1:8080/', 'http://[::1]:8080/')
    """
    host, sign, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (port.isascii() and port.isdigit()) or (sign and not host):
        raise InputError(f"{what}: must be [HOST:]PORT; got {text!r}")
    return Listen(host or LOOPBACK, int(port), cert, key, insecure)


def is_known_host(header: str, listen_host: str) -> bool:
    """Whether a request's Host header is one that a browser gets here honestly.

    A page of somebody else that has its own name lead to this machine (DNS rebinding) comes with that name: so a name
    must be `localhost`, or what was given to listen on. An address is none.

    >>> [is_known_host(one, "127.0.0.1") for one in ("localhost:8470", "127.0.0.1", "[::1]:1", "evil.example:8470", "")]
    [True, True, True, False, False]
    """
    host = header.rpartition("]")[0].removeprefix("[") if header.startswith("[") else header.partition(":")[0]
    return host.lower() in ("localhost", listen_host.lower()) or _address(host) is not None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
