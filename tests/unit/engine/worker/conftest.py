"""Replicas with state, at work over a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.engine.worker import keyed_replica

from .keyed_world import Driver, Tools, World


@pytest.fixture
def world(driver: Driver, tools: Tools, tmp_path: Path) -> Iterator[World]:
    yield World(driver, tools, tmp_path)
    keyed_replica.forget_all()
