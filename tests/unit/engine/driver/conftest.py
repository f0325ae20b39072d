"""Shifts and checkpoints at work, with what is around them played by the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.engine.driver import checkpoints, shifts

from . import checkpoints_plant, shifts_plant


@pytest.fixture
def shifting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[shifts_plant.Plant]:
    """A plant of shifts whose threads look often."""
    monkeypatch.setattr(checkpoints, "LOOK_EVERY_S", 0.002)
    monkeypatch.setattr(shifts, "LOOK_EVERY_S", 0.002)
    plant = shifts_plant.Plant(tmp_path).open()
    yield plant
    plant.shifts.stop()


@pytest.fixture
def idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[checkpoints_plant.Plant]:
    """A plant of checkpoints whose thread sleeps: the test looks."""
    monkeypatch.setattr(checkpoints, "LOOK_EVERY_S", 3600.0)
    plant = checkpoints_plant.Plant(tmp_path)
    yield plant
    plant.checkpoints.stop()


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[checkpoints_plant.Plant]:
    """A plant of checkpoints whose thread looks."""
    monkeypatch.setattr(checkpoints, "LOOK_EVERY_S", 0.002)
    plant = checkpoints_plant.Plant(tmp_path)
    yield plant
    plant.checkpoints.stop()
