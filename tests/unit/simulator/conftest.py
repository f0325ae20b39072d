"""Every plant that a test makes must add up, whenever it has moved or was changed."""

from __future__ import annotations

import math

import pytest

from penstock.simulator.plant.plant import SimulatedPlant
from penstock.topology import Stream


def adds_up(plant: SimulatedPlant) -> None:
    """in = out + dropped + backlog, for every operator, every sender and the source events."""
    counted = plant.counters()
    sent = {
        (source, name): count
        if any(edge.stream == Stream(source) for edge in plant.operators[name].model.inputs)
        else 0
        for source, count in counted.sources.items()
        for name in counted.operators
    }
    for name, one in counted.operators.items():
        total = one.total
        came = sum(total.received.values()) + one.held
        assert came == total.processed + sum(total.dropped.values()) + one.backlog, name
        assert one.backlog == plant.operators[name].backlog >= total.queued + one.held, name
        if plant._plant.actuation == "pool":  # else what a restart puts back is neither booked nor newly held
            assert one.backlog == total.queued + one.held, name
        for sender, count in total.received.items():
            assert count + one.held_by.get(sender, 0) == sent[sender, name], (sender, name)
        sent |= {(name, receiver): count for receiver, count in total.sent.items()}
    flying = {source for one in plant.operators.values() for source in one.sources_born_before(math.inf)}
    assert plant.events == plant.out + plant.failed + len(flying)
    assert plant.latency().count == plant.out
    assert plant.backlog == sum(one.backlog for one in counted.operators.values())


@pytest.fixture(autouse=True)
def every_plant_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("advance", "settle_changes"):
        monkeypatch.setattr(SimulatedPlant, name, _checked(getattr(SimulatedPlant, name)))


def _checked(method):
    def checked(self, *values):
        result = method(self, *values)
        adds_up(self)
        return result

    return checked
