"""Random cases with operators that keep state, for both simulators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from penstock.apps.waiting import Waiting
from penstock.topology import Stream, Topology

from .cases import Case, Gives, Takes, chance, changes, options, poisson
from .reference_state import StatefulReference

KEYS, GROUPS = 40, 16
SIZES = (0.0, 300.0, 40_000.0)  # of a key: at 1 MB/s all of them take up to 1.6 s


@dataclass(frozen=True)
class Keeping(Waiting):
    """A function that keeps state."""

    def process(self, event: Any, state: dict[str, int]) -> Any:
        raise AssertionError("the simulator does not run it")


def word(event: str) -> int:
    return int(KEYS * chance("word", event))


class StatefulCase(Case):
    """A case whose reference knows of state."""

    def reference(self) -> StatefulReference:
        sources = {name: (times.tolist(), self.payloads(name)) for name, times in self.times.items()}
        return self._begun(StatefulReference(self.topology, sources, self.options))


@st.composite
def topologies(draw, *, all_keep: bool) -> Topology:
    """One or two sources, then up to three operators in a row; the last or all of them keep state."""
    topology = Topology("stateful")
    last = [Stream(topology.source(name).name) for name in ("s", "r")[: draw(st.integers(1, 2))]]
    count = draw(st.integers(1, 3))
    for number in range(count):
        name, mean_ms = f"o{number}", draw(st.sampled_from((1.0, 10.0, 30.0)))
        keeps = all_keep or number == count - 1 or draw(st.booleans())
        operator = topology.operator(
            name,
            (Keeping if keeps else Waiting)(Gives(name, {"out": 2}), Takes(name, mean_ms)),
            inputs=last,
            pool=draw(st.integers(1, 4)),
            key=word if keeps else None,
            execution_time_ms=mean_ms,
            **({"key_groups": GROUPS} if keeps else {}),
        )
        last = [operator["out"]]
    return topology


@st.composite
def cases(draw, *, all_keep: bool = False, **fixed: Any) -> StatefulCase:
    topology = draw(topologies(all_keep=all_keep))
    seed, times = draw(st.integers(0, 10**6)), {}
    for place, source in enumerate(topology.sources):
        count, rate = draw(st.integers(2, 200)), draw(st.sampled_from((20.0, 60.0, 200.0)))
        times[source] = poisson(rate, count, seed + place)
    made = [draw(changes(topology)) for _ in range(draw(st.integers(1, 5)))]
    size = draw(st.sampled_from(SIZES))
    chosen = replace(
        draw(options(**fixed)),
        state_bytes={name: size for name, one in topology.operators.items() if one.state is not None},
        move_bandwidth=1e6,
        move_latency_s=draw(st.sampled_from((0.0, 0.0513, 1.2))),
    )
    return StatefulCase(topology, times, chosen, tuple(made))


def whole(event: str) -> list[str]:
    return [event]


@st.composite
def rows(draw, **fixed: Any) -> StatefulCase:
    """An operator that keeps state and gives what it gets, and a sink."""
    topology = Topology("row", pool=4)
    first = topology.operator(
        "first",
        Keeping(whole, Takes("first", 12.0)),
        inputs=topology.source("s"),
        key=word,
        execution_time_ms=12.0,
        key_groups=GROUPS,
    )
    topology.operator("sink", Waiting(whole, 1.0), inputs=first, execution_time_ms=1.0)
    rate, count, seed = draw(st.sampled_from((90.0, 200.0))), draw(st.integers(50, 900)), draw(st.integers(0, 10**6))
    made = [draw(changes(topology)) for _ in range(draw(st.integers(1, 6)))]
    chosen = replace(
        draw(options(**fixed)),
        state_bytes={"first": draw(st.sampled_from(SIZES))},
        move_bandwidth=1e6,
        move_latency_s=draw(st.sampled_from((0.0, 0.3))),
    )
    return StatefulCase(topology, {"s": poisson(rate, count, seed)}, chosen, tuple(made))
