"""The simple sensitive topology of DABS-Storm: the time of the bolt depends on the value.

source → bolt → end
"""

from __future__ import annotations

from penstock.apps.insensitive import POOLS, SERVICE_MS, work
from penstock.apps.options import AppOptions, Tuning
from penstock.apps.waiting import TimeByValue, Waiting, times_of_values
from penstock.topology import Topology


def build(options: AppOptions) -> Topology:
    """The topology, with the caller's options; the seed gives the 64 times to the values."""
    tuning = Tuning("sensitive", options, SERVICE_MS, POOLS)
    topology = Topology("sensitive")
    source = topology.source("source")
    times = TimeByValue("value", times_of_values(options.seed, tuning.service_ms["bolt"]))
    done = topology.operator(
        "bolt", Waiting(work, times), inputs=source, selectivity=1.0, cost_by="value", **tuning.declared("bolt")
    )
    topology.operator("end", tuning.sink("end"), inputs=done, selectivity=0.0, **tuning.declared("end"))
    return topology
