"""BGElasor, NPC 2019: figures 4 and 5, cost, changes and latency of the elasticity controllers."""

from __future__ import annotations

from typing import Any

from experiments.experiment import Case, Claim, Direction, Experiment, base
from penstock.workload import DAY_S

PAPER = "Mu et al., BGElasor, NPC 2019"
METRICS = ("cost", "changes", "late", "latency_ms", "replicas")
FORECASTER = "auto"  # of every case that has one, but for the network's
PAPERS = "CBA of the paper"  # without a price on lateness
CAREFUL = "CBA, 90 % quantile"
BIGRU = "CBA, driven by a BiGRU"  # as in the paper; of the sources, and beside it `auto` of the same
SOURCES = "CBA, of the sources"
PERIODIC = base("insensitive", "periodic", td_s=5.0, target_ms=2000.0, day_s=DAY_S / 60)  # played 60 times as fast
FLUCTUATING = PERIODIC.changed(input="fluctuating", td_s=10.0)

NEARLY = (
    "SPEA's own timetable is near the cheapest at these prices ([cost: SPEA], that of the paper's CBA "
    "[cost: CBA of the paper], of `optimal` [cost: optimal]), and every interval plans anew, so that what was kept for "
    "later is often let go before it is needed"
)
KEPT = (
    "it keeps replicas that may be needed again, [replicas: CBA] in the mean and SPEA [replicas: SPEA], and is late "
    "with [late: CBA] of the events, SPEA with [late: SPEA]"
)
SPIKES = (
    "its spikes come without a sign, and SREA goes by the last value; with what is foreseen [late: CBA] are late, with "
    "replicas kept for the 90 % quantile [late: CBA, 90 % quantile], under SREA [late: SREA]"
)


def _cases(of: Case) -> tuple[Case, ...]:
    def case(label: str, policy: str, **more: Any) -> Case:
        return of.changed(label=label, policy=policy, **more)

    return (
        case("SPEA", "spea", forecaster=FORECASTER),
        case("SREA", "srea"),
        case("CBA", "cba", forecaster=FORECASTER),
        case(PAPERS, "cba:lateness=0", forecaster=FORECASTER),
        case(CAREFUL, "cba", forecaster=f"{FORECASTER}:level=0.9"),
        case(BIGRU, "cba:predict=sources", trained=True),
        case(SOURCES, "cba:predict=sources", forecaster=FORECASTER),
        case("optimal", "optimal", forecaster=FORECASTER),
        case("psps", "psps"),
        case("psps with a forecast", "psps", forecaster=FORECASTER),
        case("oracle", "oracle"),
        case("static peak", "static:peak"),
    )


def _experiment(name: str, title: str, of: Case) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        paper=PAPER,
        cases=_cases(of),
        note="The cost of a timetable with the paper's prices, all operators added up. CBA lets go of replicas that "
        "run only where the 83 % quantile of the load does without them, as follows from its prices; that of the paper "
        "goes by the mean. An epoch of 5 or 10 minutes is played in 5 or 10 s, and is the interval. The paper prints "
        "no numbers. The BiGRU is small and trained beforehand, on the 20 days before those that are played (where the "
        "load is made, on another of its kind).",
        metrics=METRICS,
        directions=(
            Direction("CBA costs less than SPEA", (Claim("cost", "CBA", "SPEA"),), f"{KEPT}; {NEARLY}"),
            Direction("the paper's CBA costs less than SPEA", (Claim("cost", PAPERS, "SPEA"),), NEARLY),
            Direction("CBA changes replicas less often than SPEA", (Claim("changes", "CBA", "SPEA"),)),
            Direction(
                "CBA is late less often than SREA, which waits for the load", (Claim("late", "CBA", "SREA"),), SPIKES
            ),
            Direction(
                "CBA for the 90 % quantile is late less often than SREA", (Claim("late", CAREFUL, "SREA"),), SPIKES
            ),
            Direction("CBA is faster than SREA", (Claim("latency_ms", "CBA", "SREA"),), SPIKES),
            Direction(
                "knowing the next epoch is faster than going by the last one",
                (Claim("latency_ms", "oracle", "psps"),),
            ),
        ),
    )


EXPERIMENTS = (
    _experiment("figures-4-5-periodic", "Cost, changes and latency on the periodic load", PERIODIC),
    _experiment("figures-4-5-fluctuating", "Cost, changes and latency on the fluctuating load", FLUCTUATING),
)
