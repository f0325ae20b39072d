"""Policies tried out without Spark: every event of a trace through a topology, under the same control loop."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from penstock.simulator.scenario import Cluster, Contest, Plant, Scenario

if TYPE_CHECKING:
    from penstock.simulator.arena import compare, ranked
    from penstock.simulator.result import SimulationResult
    from penstock.simulator.run import simulate
    from penstock.simulator.sweep import Sweep

__all__ = ["Cluster", "Contest", "Plant", "Scenario", "SimulationResult", "Sweep", "compare", "ranked", "simulate"]

_LATER = {  # these load numba
    "SimulationResult": "result",
    "Sweep": "sweep",
    "compare": "arena",
    "ranked": "arena",
    "simulate": "run",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
