"""Replicas with state, at work over a folder; slots of a source, at work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.worker import keyed_replica
from penstock.engine.worker.source_slot import SourceSlot
from tests.waiting import LONG_S

from ..made import progress
from .keyed_world import Driver, Tools, World
from .source_world import AtWork, Numbers, app


@pytest.fixture
def world(driver: Driver, tools: Tools, tmp_path: Path) -> Iterator[World]:
    yield World(driver, tools, tmp_path)
    keyed_replica.forget_all()


@pytest.fixture
def numbers() -> Iterator[type[Numbers]]:
    Numbers.opened.clear()
    Numbers.there, Numbers.knows, Numbers.holds = 0, False, 0
    Numbers.gate.set()
    yield Numbers
    Numbers.opened.clear()


@pytest.fixture
def start(driver: Driver, tools: Tools, numbers: type[Numbers]) -> Iterator[Any]:
    """`start(total, phase=…, there=…)`: a slot at work, ended after the test."""
    working: list[AtWork] = []

    def started(
        total: int | None = None,
        *,
        there: int = 0,
        slot: int = 0,
        slots: int = 1,
        shift: int = 0,
        checkpoint: int = 1,
        **now: Any,
    ) -> AtWork:
        numbers.there = there
        sources = {"events": Numbers(total)}
        program = driver.program(app(), sources=sources, slots=slots, progress=progress(1, **now))
        one = SourceSlot(replace(program, shift=shift, checkpoint=checkpoint), "events", slot, 0)
        tools.until(lambda: one._agent.progress.version == 1)
        working.append(AtWork(tools, driver, one))
        return working[-1]

    yield started
    for one in working:
        one.batch.end()
        one.thread.join(LONG_S)
        assert not one.thread.is_alive()
