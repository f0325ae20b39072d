"""A range of ports for all that a run listens on, where a firewall lets only some through."""

from __future__ import annotations

import errno
import random
import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from penstock.errors import EngineError, InputError

T = TypeVar("T")


class Ports(NamedTuple):
    """From the first to the last, both among them."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


def parse_ports(text: str) -> Ports:
    """The range that a user has given.

    >>> parse_ports("40000-40100")
    Ports(first=40000, last=40100)
    >>> parse_ports("40100-40000")
    Traceback (most recent call last):
    penstock.errors.InputError: ports must be two of 1 to 65535, as 40000-40100; got '40100-40000'
    """
    found = re.fullmatch(r"(\d{1,5})-(\d{1,5})", text) if isinstance(text, str) else None
    if found is None or not 1 <= int(found[1]) <= int(found[2]) <= 65_535:
        raise InputError(f"ports must be two of 1 to 65535, as 40000-40100; got {text!r}")
    return Ports(int(found[1]), int(found[2]))


def bound(bind: Callable[[int], T], host: str, ports: Ports | None) -> T:
    """What `bind` makes of a port that is free; of 0, which is any, if there is no range.

    Where to begin is drawn: many processes of a machine look for one at the same time.
    """
    if ports is None:
        return bind(0)
    among = range(ports.first, ports.last + 1)
    start = random.randrange(len(among))
    for port in (*among[start:], *among[:start]):
        try:
            return bind(port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise EngineError(
        f"none of the ports {ports} is free on {host}: each replica there needs one, in two shifts, and the driver"
    )
