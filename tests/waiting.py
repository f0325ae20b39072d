"""Waiting in tests for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

LONG_S = 300.0  # of a machine that is busy with other work; nobody waits for it where all is well
LOOK_EVERY_S = 0.02


def until(
    true: Callable[[], Any],
    told: Callable[[], Any] = str,
    within_s: float = LONG_S,
    *,
    look_every_s: float = LOOK_EVERY_S,
) -> Any:
    """Wait until it is true and give what it said; a test that waits in vain fails with what is `told` then."""
    deadline = time.monotonic() + within_s
    while not (said := true()):
        assert time.monotonic() < deadline, f"not true within {within_s:g} s {told()}".rstrip()
        time.sleep(look_every_s)
    return said
