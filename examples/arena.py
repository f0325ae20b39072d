"""The arena on a trace of one's own: which policy would have been on time, and at what price? Without Spark.

    python examples/arena.py [RATES.csv]

RATES.csv has the header `time_s,rate`. Without it the queries to a name server are played, 21 minutes of a real network
whose busiest second has six times as many queries as the mean. It prints the policies, the cheapest that is on
time first:

    psps         on time         5,427 replica-seconds
    static:peak  on time        17,794 replica-seconds
    ds2          2.2% late       4,993 replica-seconds
    static:mean  4.7% late       5,084 replica-seconds
    keda         5.5% late       5,016 replica-seconds

Interval (1 s) and target (2 s) were chosen to tell the policies apart, so this is no ranking of them: with an interval
of 5 s and a target of 1 s only `static:peak` is on time, and `psps` is later than `keda`. Set them to what you need.
"""

import sys
from pathlib import Path

from penstock import Scenario, Topology, compare, load_trace

SHIPPED = Path(__file__).parents[1] / "data" / "traces" / "dns_wrccdc_2018_1s.csv.gz"


def answer(query):
    return {"name": query["name"], "address": "192.0.2.1"}


def resolver():
    """The simulator runs none of its functions: it has to know how long an event takes, and how many come of it."""
    topology = Topology("resolver", pool=12)
    parsed = topology.operator("parse", dict.copy, inputs=topology.source("queries"), execution_time_ms=12)
    missed = topology.operator("cache", dict.copy, inputs=parsed, execution_time_ms=6, selectivity=0.4)
    topology.operator("resolve", answer, inputs=missed, execution_time_ms=75)
    return topology


if __name__ == "__main__":
    trace = load_trace(sys.argv[1] if len(sys.argv) > 1 else SHIPPED)
    scenario = Scenario(resolver(), trace).changed(td_s=1, target_ms=2000)
    for result in compare(scenario, "psps,ds2,keda,static:mean,static:peak"):
        on_time = "on time" if result.meets_target else f"{result.late_ratio:.1%} late"
        print(f"{result.policy:12} {on_time:12} {result.replica_seconds:8,.0f} replica-seconds")
