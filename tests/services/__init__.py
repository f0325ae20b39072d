"""Services of the tests' own: on loopback, on free ports, in folders of their own, ended when the tests end.

Each has a file here, a fixture in `tests/conftest.py` and a line in `scripts/services.sh`, which installs it. What is
not installed skips the tests that ask for it, and a line at the end says so.
"""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path

GIVEN_AWAY = Path("/proc/sys/net/ipv4/ip_local_port_range")  # the ports that the system gives to whoever names none
LOWEST = 12_000


def free_port() -> int:
    """A port of loopback that nobody listens on, and that the system gives to nobody else before it is used.

    Of those that it does give away, a client that tries to reach a server which is away may have got just that one,
    and reach itself; the server cannot come back then.
    """
    first = _first_given_away()
    draw = random.SystemRandom()  # processes that run tests side by side draw each its own
    for _ in range(100):
        port = draw.randrange(LOWEST, first) if first > LOWEST else 0
        with suppress(OSError), socket.socket() as one:
            one.bind(("127.0.0.1", port))
            return int(one.getsockname()[1])
    raise RuntimeError(f"no free port from {LOWEST} to {first}")


def _first_given_away() -> int:
    try:
        return int(GIVEN_AWAY.read_text().split()[0])
    except (OSError, ValueError):
        return 0  # not Linux
