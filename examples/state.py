"""State by key: the lowest and highest temperature of every station, exact while replicas come and go.

    python examples/state.py

It sends 900 readings in three seconds, changes the replicas twice meanwhile, and prints

    harbour: 300 readings, -2 to 9 degrees
    hill: 300 readings, -7 to 4 degrees
    town: 300 readings, 1 to 12 degrees
"""

import tempfile
import time

from penstock import CollectSink, Run, Topology, TraceSource, collected, constant

STATIONS = {"harbour": -2, "hill": -7, "town": 1}


def extremes(reading, state):
    degrees = reading["degrees"]
    state["count"] = state.get("count", 0) + 1
    state["low"] = min(degrees, state.get("low", degrees))
    state["high"] = max(degrees, state.get("high", degrees))
    return {"station": reading["station"], **state}


def weather(folder):
    topology = Topology("weather", pool=3)
    read = topology.operator("extremes", extremes, inputs=topology.source("readings"), key="station")
    topology.operator("collect", CollectSink(folder), inputs=read, pool=1)
    return topology


if __name__ == "__main__":
    folder = tempfile.mkdtemp()
    readings = [{"station": name, "degrees": low + n} for n in range(12) for name, low in STATIONS.items()]
    with Run(weather(folder), TraceSource(constant(300, duration_s=3), readings)) as run:
        for replicas in (3, 2):
            time.sleep(1)
            run.set_replicas("extremes", replicas)  # the state of some stations moves, their events wait for it
        run.wait()
    last = {event["station"]: event for _, event in sorted(collected(folder), key=lambda row: row[1]["count"])}
    for name, found in sorted(last.items()):
        print(f"{name}: {found['count']} readings, {found['low']} to {found['high']} degrees")
