"""The simple insensitive topology of DABS-Storm: the bolt takes the same time for every value.

source → bolt → end
"""

from __future__ import annotations

import zlib
from typing import Any

from penstock.apps.options import AppOptions, Tuning
from penstock.apps.waiting import MEAN_TIME_MS
from penstock.topology import Topology

SERVICE_MS = {"bolt": MEAN_TIME_MS, "end": 1.0}
POOLS = {"bolt": 16, "end": 4}


def build(options: AppOptions) -> Topology:
    """The topology, with the caller's options."""
    tuning = Tuning("insensitive", options, SERVICE_MS, POOLS)
    topology = Topology("insensitive")
    source = topology.source("source")
    done = topology.operator(
        "bolt", tuning.run("bolt", work), inputs=source, selectivity=1.0, **tuning.declared("bolt")
    )
    topology.operator("end", tuning.sink("end"), inputs=done, selectivity=0.0, **tuning.declared("end"))
    return topology


def work(event: dict[str, Any]) -> dict[str, Any]:
    """The event with a checksum over its number and value."""
    return {**event, "checksum": zlib.crc32(f"{event['number']}:{event['value']}".encode())}
