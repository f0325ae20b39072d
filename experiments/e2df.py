"""E2DF, 2019: figure 2, the word count under a ramp."""

from __future__ import annotations

from experiments.experiment import Claim, Direction, Experiment, base
from penstock.apps.wordcount import DEPLOYED
from penstock.control.managers.application_manager import ApplicationRules

PRINTED = "both levels, manager as printed"  # which refuses a replica whose worker was just taken
RAMP = base("wordcount", "ramp", target_ms=2000.0, r_over=sum(DEPLOYED.values()))
BOTH = RAMP.changed(levels="both", workers=16)
ON_WORKERS = BOTH.changed(levels="application")
STATIC = BOTH.changed(levels="static", deployed=DEPLOYED)
EXPERIMENTS = (
    Experiment(
        name="figure-2",
        title="Word count under a ramp: static, application elasticity, and both levels",
        paper="Nardelli et al., E2DF, 2019",
        cases=(
            STATIC.changed(label="static 2/6/6", policy="static", paper={"saved": 0.0, "settled_ms": 11.4}),
            ON_WORKERS.changed(
                label="application elasticity",
                policy="e2df",
                paper={"saved": 0.55, "settled_ms": 19.3, "workers_saved": 0.0},
            ),
            BOTH.changed(
                label="both levels",
                policy="e2df",
                paper={"saved": 0.55, "settled_ms": 19.3, "workers_saved": 0.24},
            ),
            BOTH.changed(label=PRINTED, policy="e2df", application=ApplicationRules(second_choice=False)),
            BOTH.changed(label="both levels, psps"),
            RAMP.changed(label="incremental, 0.7 and 0.35", policy="incremental:high=0.7,low=0.35"),
        ),
        note="Sentences of 5 words by Zipf's law; 1.5 ms to split one, 0.5 ms to count a word and 0.8 ms to pass it "
        "on: the paper does not say how long these take, and with these times the static deployment has about its "
        "latency. (With 3, 2 and 2 ms, for which 2/6/6 is what the peak just needs, 6.4 of 14 replicas would be busy "
        "on average: no policy could save 55 %.) 16 workers of one slot, the source takes one. psps sizes an operator "
        "as if its replicas shared evenly; with keys they do not. The Application Manager as printed refuses a replica "
        "whose best worker another operator was just given; ours takes the next best.",
        metrics=("saved", "workers_saved", "settled_ms", "latency_ms", "processed", "changes"),
        directions=(
            Direction(
                "application elasticity saves replicas and costs some latency",
                (
                    Claim("saved", "static 2/6/6", "application elasticity"),
                    Claim("settled_ms", "static 2/6/6", "application elasticity"),
                ),
            ),
            Direction(
                "both levels also save workers", (Claim("workers_saved", "application elasticity", "both levels"),)
            ),
            Direction(
                "one replica at a time, by thresholds, saves replicas and costs some latency",
                (
                    Claim("saved", "static 2/6/6", "incremental, 0.7 and 0.35"),
                    Claim("settled_ms", "static 2/6/6", "incremental, 0.7 and 0.35"),
                ),
            ),
        ),
    ),
)
