"""PSPS, SBAC-PAD 2022: tables IV to XII."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from experiments import psps_findings as found
from experiments.experiment import Case, Claim, Direction, Experiment, base
from experiments.figures import FOUR

USUAL = (0.5617, 0.1831, 0.9987, 2098.91)  # psps with td 30 s, t_out 30 s, q_size 100000 and load balancing
SHUFFLE = (0.5390, 0.4332, 0.9979, 5271.01)
DABS = (0.3962, 0.2849, 0.8283, 1391.28)

TWITTER = base("twitter", "twitter", t_out_s=30.0, q_size=100_000, pool=16, service_ms=20.0, target_ms=2000.0)
RAW = TWITTER.changed(input="twitter-raw")
COMPLEX = TWITTER.changed(topology="complex", service_ms={}, r_over=40)
DNS = TWITTER.changed(topology="dns", input="dns", pool=6, service_ms=11.5)
KEPT: dict[str, Any] = {"t_out_s": None, "q_size": None}  # nothing is dropped


def case(label: str, paper: tuple[float, ...] = (), *, of: Case = TWITTER, policy: str = "psps", **more: Any) -> Case:
    """A row with the four metrics, in the order of the paper's columns; `more` is what is not as in `of`."""
    known = dict(zip(FOUR, paper, strict=True)) if paper else {}
    return of.changed(label=label, policy=policy, paper=known, **more)


def dabs(label: str, paper: tuple[float, ...] = (), *, weight: float = 0.3, restart_s: float = 30.0) -> Case:
    """DABS-Storm: every change restarts everything, and what was queued is lost."""
    policy = f"dabs:cpu_weight={weight:g},settle=0"
    return case(label, paper, policy=policy, settle_s=60.0, actuation="restart-lossy", restart_s=restart_s)


def lower(metric: str, *labels: str) -> tuple[Claim, ...]:
    """Each of the labels has less than the next."""
    return tuple(Claim(metric, less, more) for less, more in pairwise(labels))


def table(number: str, title: str, note: str, *cases: Case, **more: Any) -> Experiment:
    """A table of the paper."""
    paper = "Wladdimiro et al., PSPS, SBAC-PAD 2022"
    return Experiment(name=f"table-{number}", title=title, paper=paper, note=note, cases=cases, **more)


TABLE_IV = table(
    "iv",
    "Length of the interval td",
    found.NOTE_IV,
    case("td 30 s", USUAL),
    case("td 60 s", (0.5390, 0.4332, 0.9979, 5271.01), td_s=60.0),
    case("td 120 s", (0.5219, 0.9221, 0.9976, 17068.33), td_s=120.0),
    case("td 180 s", (0.5563, 0.8028, 0.9992, 22364.86), td_s=180.0),
    case("td 30 s, nothing dropped", **KEPT),
    case("td 60 s, nothing dropped", td_s=60.0, **KEPT),
    case("td 120 s, nothing dropped", td_s=120.0, **KEPT),
    case("td 180 s, nothing dropped", td_s=180.0, **KEPT),
    directions=(
        Direction("a small td beats a large one on latency", lower("latency_ms", "td 30 s", "td 180 s")),
        Direction(
            "a small td beats a large one on latency, where nothing is dropped",
            lower("latency_ms", *(f"td {td} s, nothing dropped" for td in (30, 60, 120, 180))),
        ),
    ),
    reasons=found.REASONS_IV,
)

TIMEOUTS = ("t_out 1 s", "t_out 5 s", "t_out 10 s", "t_out 30 s")
TABLE_V = table(
    "v",
    "Timeout t_out",
    found.NOTE,
    case("t_out 30 s", USUAL),
    case("t_out 10 s", (0.5633, 0.1056, 0.9529, 1298.45), t_out_s=10.0),
    case("t_out 5 s", (0.5875, 0.1038, 0.9303, 946.69), t_out_s=5.0),
    case("t_out 1 s", (0.6164, 0.1000, 0.9030, 369.35), t_out_s=1.0),
    directions=(
        Direction(
            "a small t_out trades processed events for latency",
            (*lower("latency_ms", *TIMEOUTS), *lower("processed", *TIMEOUTS)),
        ),
    ),
    reasons=found.REASONS_V,
)

SIZES = ("q_size 100", "q_size 1000", "q_size 100000")
TABLE_VI = table(
    "vi",
    "Size of the queue q_size",
    found.NOTE_VI,
    case("q_size 100000", USUAL),
    case("q_size 10000", (0.6602, 0.1687, 0.7249, 1394.56), q_size=10_000),
    case("q_size 1000", (0.6656, 0.1375, 0.6922, 311.93), q_size=1000),
    case("q_size 100", (0.6719, 0.1919, 0.6835, 29.91), q_size=100),
    directions=(
        Direction(
            "a small q_size trades processed events for latency",
            (*lower("latency_ms", *SIZES), *lower("processed", *SIZES)),
        ),
    ),
    reasons=found.REASONS_VI,
)

TABLE_VII = table(
    "vii",
    "Grouping",
    found.NOTE_VII,
    case("shuffle", SHUFFLE, grouping="shuffle"),
    case("load balancing, the paper's U", USUAL, balance_by="used"),
    case("load balancing, our U", USUAL),
    case("least work", grouping="least_work"),
    case("shuffle, nothing dropped", grouping="shuffle", **KEPT),
    case("load balancing, the paper's U, nothing dropped", balance_by="used", **KEPT),
    case("load balancing, our U, nothing dropped", **KEPT),
    case("least work, nothing dropped", grouping="least_work", **KEPT),
    directions=(
        Direction(
            "load balancing by the paper's U beats shuffle on latency",
            (
                *lower("latency_ms", "load balancing, the paper's U", "shuffle"),
                *lower("latency_ms", "load balancing, the paper's U, nothing dropped", "shuffle, nothing dropped"),
            ),
            found.HERDS,
        ),
        Direction(
            "load balancing by our U beats shuffle on latency",
            lower("latency_ms", "load balancing, our U", "shuffle"),
            found.SURVIVORS,
        ),
        Direction(
            "load balancing by our U beats shuffle on latency, where nothing is dropped",
            lower("latency_ms", "load balancing, our U, nothing dropped", "shuffle, nothing dropped"),
        ),
    ),
    reasons=found.REASONS_VII,
)

TABLE_VIII = table(
    "viii",
    "Against static replicas",
    found.NOTE_VIII,
    case("psps", USUAL),
    case("r = 1", (0.8750, 0.5153, 0.3319, 196962.95), policy="static:1", **KEPT),
    case("r = 4", (0.5, 0.8559, 0.9874, 269.75), policy="static:4", **KEPT),
    case("r = 8", (0.0, 0.0, 1.0, 153.51), policy="static:8", **KEPT),
    directions=(
        Direction("psps saves more than the static peak", lower("saved", "r = 8", "psps")),
        Direction("psps processes more than r = 1", lower("processed", "r = 1", "psps")),
    ),
    reasons=found.REASONS_VIII,
)

TABLE_IX = table(
    "ix",
    "The raw stream",
    found.NOTE_IX,
    case("psps", (0.745, 0.4, 0.9791, 2501.46), of=RAW),
    case("r = 1", (0.875, 0.6706, 0.2822, 48379.95), of=RAW, policy="static:1", **KEPT),
    case("psps, smoothed stream", USUAL),
    directions=(
        Direction("psps processes more than r = 1", lower("processed", "r = 1", "psps")),
        Direction("the raw stream saves more than the smoothed one", lower("saved", "psps, smoothed stream", "psps")),
    ),
    reasons=found.REASONS_IX,
)

TABLE_X = table(
    "x",
    "Against DABS-Storm, which restarts at every change",
    found.NOTE_X,
    case("psps", USUAL),
    dabs("dabs", DABS),
    dabs("dabs, λ = 1", DABS, weight=1.0),
    dabs("dabs, restart of 10 s", restart_s=10.0),
    dabs("dabs, λ = 1, restart of 10 s", weight=1.0, restart_s=10.0),
    case("dabs from a pool", policy="dabs"),
    directions=(
        Direction(
            "psps saves more than dabs with restarts, and loses less",
            (*lower("saved", "dabs", "psps"), *lower("processed", "dabs", "psps")),
        ),
        Direction(
            "psps saves more than dabs with λ = 1 and restarts, and loses less",
            (*lower("saved", "dabs, λ = 1", "psps"), *lower("processed", "dabs, λ = 1", "psps")),
        ),
    ),
    reasons=found.REASONS_X,
)

TABLE_XI = table(
    "xi",
    "The complex application",
    found.NOTE_XI,
    case("psps", (0.745, 0.0911, 0.9970, 219.13), of=COMPLEX),
    case("r = 5", (0.0, 0.0, 1.0, 31.99), of=COMPLEX, policy="static:5", **KEPT),
    directions=(Direction("psps saves more than r = 5", lower("saved", "r = 5", "psps")),),
)

TABLE_XII = table(
    "xii",
    "The DNS application",
    found.NOTE_XII,
    case("psps", (0.6062, 0.3734, 0.9884, 335.95), of=DNS),
    case("r = 1", (0.6666, 0.4521, 0.9759, 476.12), of=DNS, policy="static:1", **KEPT),
    directions=(Direction("psps beats r = 1 on latency", lower("latency_ms", "psps", "r = 1")),),
)

EXPERIMENTS = (TABLE_IV, TABLE_V, TABLE_VI, TABLE_VII, TABLE_VIII, TABLE_IX, TABLE_X, TABLE_XI, TABLE_XII)
