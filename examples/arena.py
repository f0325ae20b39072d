"""The arena on a trace of one's own: which policy would have been on time, and at what price? Without Spark.

    python examples/arena.py [RATES.csv]

RATES.csv has the header `time_s,rate`. Without it the queries to a name server are played, 21 minutes of a real network
in which the busiest second has 14 times as many queries as the mean. It prints the policies, the cheapest that is on
time first:
"""

import sys
from pathlib import Path

from penstock import Scenario, Topology, compare, load_trace

SHIPPED = Path(__file__).parents[1] / "data" / "traces" / "dns_wrccdc_2018_1s.csv.gz"


def resolver():
    """Only what the simulator has to know: how long an event takes, and how many come of it."""
    topology = Topology("resolver", pool=12)
    parsed = topology.operator("parse", dict, inputs=topology.source("queries"), execution_time_ms=4)
    missed = topology.operator("cache", dict, inputs=parsed, execution_time_ms=2, selectivity=0.4)
    topology.operator("resolve", dict, inputs=missed, execution_time_ms=25)
    return topology


if __name__ == "__main__":
    trace = load_trace(sys.argv[1] if len(sys.argv) > 1 else SHIPPED)
    scenario = Scenario(resolver(), trace).changed(td_s=5, target_s=1.0)
    for result in compare(scenario, "psps,ds2,keda,static:mean,static:peak"):
        on_time = "on time" if result.meets_target else f"{result.late_ratio:.1%} late"
        print(f"{result.policy:12} {on_time:12} {result.replica_seconds:8,.0f} replica-seconds")
