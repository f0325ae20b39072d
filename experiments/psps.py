"""PSPS, SBAC-PAD 2022: tables IV to XII."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from experiments.experiment import Case, Claim, Direction, Experiment
from experiments.figures import FOUR
from experiments.scene import Scene

PAPER = "Wladdimiro et al., PSPS, SBAC-PAD 2022"
USUAL = (0.5617, 0.1831, 0.9987, 2098.91)  # psps with td 30 s, t_out 30 s, q_size 100000 and load balancing

# Four operators of 20 ms need 8 replicas each at the peak of 400 events/s: r_over is 32, as in the paper.
TWITTER = Scene(app="twitter", input="twitter", t_out_s=30.0, q_size=100_000, pool=16, service_ms=(20.0,), target_s=2.0)
RAW = replace(TWITTER, input="twitter-raw")
# As in the paper r_over is 5 replicas for each of 8 operators; at 400 events/s the slowest needs 5.
COMPLEX = replace(TWITTER, app="complex", service_ms=(), r_over=40)
# Four operators of 11.5 ms need 3 replicas each at the peak of 260 events/s: r_over is 12.
DNS = replace(TWITTER, app="dns", input="dns", pool=6, service_ms=(11.5,))
STORM: dict[str, Any] = {
    "t_out_s": None,
    "q_size": None,
}  # 197 s of latency with r = 1: the paper's Storm dropped nothing
RESTART: dict[str, Any] = {"actuation": "restart-lossy", "restart_s": 30.0}


def case(
    label: str, paper: tuple[float, ...] = (), *, scene: Scene = TWITTER, policy: str = "psps", **more: Any
) -> Case:
    """A row with the four metrics, in the order of the paper's columns; `more` changes the scene."""
    known = dict(zip(FOUR, paper, strict=True)) if paper else {}
    return Case(label=label, policy=policy, scene=replace(scene, **more), paper=known)


def lower(metric: str, *labels: str) -> tuple[Claim, ...]:
    """Each of the labels has less than the next."""
    return tuple(Claim(metric, less, more) for less, more in pairwise(labels))


TABLE_IV = Experiment(
    name="table-iv",
    title="Length of the interval td",
    paper=PAPER,
    cases=(
        case("td 30 s", USUAL),
        case("td 60 s", (0.5390, 0.4332, 0.9979, 5271.01), td_s=60.0),
        case("td 120 s", (0.5219, 0.9221, 0.9976, 17068.33), td_s=120.0),
        case("td 180 s", (0.5563, 0.8028, 0.9992, 22364.86), td_s=180.0),
        case("td 30 s, nothing dropped", **STORM),
        case("td 60 s, nothing dropped", td_s=60.0, **STORM),
        case("td 120 s, nothing dropped", td_s=120.0, **STORM),
        case("td 180 s, nothing dropped", td_s=180.0, **STORM),
    ),
    directions=(
        Direction("a small td beats a large one on latency", lower("latency_ms", "td 30 s", "td 180 s")),
        Direction(
            "a small td beats a large one on latency, where nothing is dropped",
            lower("latency_ms", *(f"td {td} s, nothing dropped" for td in (30, 60, 120, 180))),
        ),
    ),
)

TABLE_V = Experiment(
    name="table-v",
    title="Timeout t_out",
    paper=PAPER,
    cases=(
        case("t_out 30 s", USUAL),
        case("t_out 10 s", (0.5633, 0.1056, 0.9529, 1298.45), t_out_s=10.0),
        case("t_out 5 s", (0.5875, 0.1038, 0.9303, 946.69), t_out_s=5.0),
        case("t_out 1 s", (0.6164, 0.1000, 0.9030, 369.35), t_out_s=1.0),
    ),
    directions=(
        Direction(
            "a small t_out trades processed events for latency",
            tuple(
                claim
                for metric in ("latency_ms", "processed")
                for claim in lower(metric, "t_out 1 s", "t_out 5 s", "t_out 10 s", "t_out 30 s")
            ),
        ),
    ),
)

TABLE_VI = Experiment(
    name="table-vi",
    title="Size of the queue q_size",
    paper=PAPER,
    cases=(
        case("q_size 100000", USUAL),
        case("q_size 10000", (0.6602, 0.1687, 0.7249, 1394.56), q_size=10_000),
        case("q_size 1000", (0.6656, 0.1375, 0.6922, 311.93), q_size=1000),
        case("q_size 100", (0.6719, 0.1919, 0.6835, 29.91), q_size=100),
    ),
    directions=(
        Direction(
            "a small q_size trades processed events for latency",
            tuple(
                claim
                for metric in ("latency_ms", "processed")
                for claim in lower(metric, "q_size 100", "q_size 1000", "q_size 100000")
            ),
        ),
    ),
)

SHUFFLE = (0.5390, 0.4332, 0.9979, 5271.01)
TABLE_VII = Experiment(
    name="table-vii",
    title="Grouping",
    paper=PAPER,
    cases=(
        case("shuffle", SHUFFLE, grouping="shuffle"),
        case("load balancing, the paper's U", USUAL, measure="used"),
        case("load balancing, our U", USUAL),
        case("least work", grouping="least_work"),
        case("shuffle, nothing dropped", grouping="shuffle", **STORM),
        case("load balancing, the paper's U, nothing dropped", measure="used", **STORM),
        case("load balancing, our U, nothing dropped", **STORM),
        case("least work, nothing dropped", grouping="least_work", **STORM),
    ),
    directions=(
        Direction(
            "load balancing by the paper's U beats shuffle on latency",
            lower("latency_ms", "load balancing, the paper's U, nothing dropped", "shuffle, nothing dropped"),
        ),
        Direction(
            "load balancing by our U beats shuffle on latency",
            lower("latency_ms", "load balancing, our U", "shuffle"),
        ),
        Direction(
            "load balancing by our U beats shuffle on latency, where nothing is dropped",
            lower("latency_ms", "load balancing, our U, nothing dropped", "shuffle, nothing dropped"),
        ),
    ),
)

TABLE_VIII = Experiment(
    name="table-viii",
    title="Against static replicas",
    paper=PAPER,
    cases=(
        case("psps", USUAL),
        case("r = 1", (0.8750, 0.5153, 0.3319, 196962.95), policy="static:1", **STORM),
        case("r = 4", (0.5, 0.8559, 0.9874, 269.75), policy="static:4", **STORM),
        case("r = 8", (0.0, 0.0, 1.0, 153.51), policy="static:8", **STORM),
    ),
    directions=(
        Direction("psps saves more than the static peak", lower("replicas", "psps", "r = 8")),
        Direction("psps processes more than r = 1", lower("processed", "r = 1", "psps")),
    ),
)

TABLE_IX = Experiment(
    name="table-ix",
    title="The raw stream",
    paper=PAPER,
    cases=(
        case("psps", (0.745, 0.4, 0.9791, 2501.46), scene=RAW),
        case("r = 1", (0.875, 0.6706, 0.2822, 48379.95), scene=RAW, policy="static:1", **STORM),
        case("psps, smoothed stream", USUAL),
    ),
    directions=(Direction("psps processes more than r = 1", lower("processed", "r = 1", "psps")),),
)

DABS = (0.3962, 0.2849, 0.8283, 1391.28)
TABLE_X = Experiment(
    name="table-x",
    title="Against DABS-Storm, which restarts at every change",
    paper=PAPER,
    cases=(
        case("psps", USUAL),
        case("dabs", DABS, policy="dabs:settle=0", settle_s=60.0, **RESTART),
        case("dabs, λ = 1", DABS, policy="dabs:cpu_weight=1,settle=0", settle_s=60.0, **RESTART),
        case("dabs, restart of 10 s", policy="dabs:settle=0", settle_s=60.0, actuation="restart-lossy", restart_s=10.0),
        case(
            "dabs, λ = 1, restart of 10 s",
            policy="dabs:cpu_weight=1,settle=0",
            settle_s=60.0,
            actuation="restart-lossy",
            restart_s=10.0,
        ),
        case("dabs from a pool", policy="dabs"),
    ),
    directions=(
        Direction(
            "psps saves more than dabs with restarts, and loses less",
            (Claim("replicas", "psps", "dabs"), Claim("processed", "dabs", "psps")),
        ),
        Direction(
            "psps saves more than dabs with λ = 1 and restarts, and loses less",
            (Claim("replicas", "psps", "dabs, λ = 1"), Claim("processed", "dabs, λ = 1", "psps")),
        ),
    ),
)

TABLE_XI = Experiment(
    name="table-xi",
    title="The complex application",
    paper=PAPER,
    cases=(
        case("psps", (0.745, 0.0911, 0.9970, 219.13), scene=COMPLEX),
        case("r = 5", (0.0, 0.0, 1.0, 31.99), scene=COMPLEX, policy="static:5", **STORM),
    ),
    directions=(Direction("psps saves more than r = 5", lower("replicas", "psps", "r = 5")),),
)

TABLE_XII = Experiment(
    name="table-xii",
    title="The DNS application",
    paper=PAPER,
    cases=(
        case("psps", (0.6062, 0.3734, 0.9884, 335.95), scene=DNS),
        case("r = 1", (0.6666, 0.4521, 0.9759, 476.12), scene=DNS, policy="static:1", **STORM),
    ),
    directions=(Direction("psps beats r = 1 on latency", lower("latency_ms", "psps", "r = 1")),),
)

EXPERIMENTS = (TABLE_IV, TABLE_V, TABLE_VI, TABLE_VII, TABLE_VIII, TABLE_IX, TABLE_X, TABLE_XI, TABLE_XII)
