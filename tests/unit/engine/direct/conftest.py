"""Two replicas, and senders that do not wait for long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.engine.direct import sender

from .lines_world import PLAIN, TLS, Tools, World, program


@pytest.fixture(params=[PLAIN, TLS], ids=["plain", "tls"])
def world(tools: Tools, request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(program(tools, request.param))
    yield world
    world.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "LOOK_S", 0.02)
    monkeypatch.setattr(sender, "BROKEN_S", 0.2)
