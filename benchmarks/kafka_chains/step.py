"""What every operator of every contender does."""

from __future__ import annotations

from typing import Any


def step(event: dict[str, Any]) -> dict[str, Any]:
    event["n"] += 1
    return event
