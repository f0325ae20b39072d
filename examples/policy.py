"""A policy of one's own, in ten lines, at work on a run.

    python examples/policy.py

The load jumps from 20 to 150 events a second and back; an event takes 20 ms. The policy looks every second, and the
program prints what it changed and why, and what became of the events:

    work 1 → 4: 213 events are 4.4 s of work; the pool has 4
    work 4 → 2: 46 events are 1.0 s of work
    work 2 → 1: 20 events are 0.4 s of work
    950 events, 950 processed

The numbers on the way depend on when an interval ends, and so does how many steps there are.
"""

import math
import time

from penstock import Elastic, Plan, Run, Target, Topology, Trace, TraceSource


class Relaxed:
    """As many replicas as keep each of them busy for two thirds of the time."""

    def plan(self, snapshot, forecast=None):
        targets = {}
        for name, load in snapshot.operators.items():
            events = load.received + load.backlog
            work_s = events * (load.execution_time_s or 0.0)
            replicas = max(1, math.ceil(1.5 * work_s / snapshot.td_s))
            targets[name] = Target(replicas, f"{events} events are {work_s:.1f} s of work")
        return Plan(targets)


def work(event):
    time.sleep(0.02)
    return event


if __name__ == "__main__":
    topology = Topology("relaxed", pool=4)
    topology.operator("work", work, inputs=topology.source("numbers"))
    trace = Trace("jump", step_s=1.0, rates=[20] * 4 + [150] * 5 + [20] * 6)
    run = Run(topology, TraceSource(trace, [{"n": 1}]))
    with Elastic(run, policy=Relaxed(), td_s=1.0, warm_up_s=1.0) as live:
        live.wait()
    for decision in live.decisions:
        print(decision)
    summary = live.summary()
    print(f"{summary['events']} events, {summary['processed']} processed")
