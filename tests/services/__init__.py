"""Services of the tests' own: on loopback, on free ports, in folders of their own, ended when the tests end.

Each has a file here, a fixture in `tests/conftest.py` and a line in `scripts/services.sh`, which installs it. What is
not installed skips the tests that ask for it, and a line at the end says so.
"""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
