"""Waiting in tests for what other threads do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(true: Callable[[], Any], timeout_s: float = 30.0) -> Any:
    """Wait until it is true and give what it said; fail the test when the time is over."""
    deadline = time.monotonic() + timeout_s
    while not (said := true()):
        assert time.monotonic() < deadline, f"not true within {timeout_s:g} s"
        time.sleep(0.002)
    return said
