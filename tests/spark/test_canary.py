"""A canary on Spark: it takes over while one replica is enough, and is taken back by itself when it is not."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import penstock
from penstock.metrics.rows import DeciderRow
from penstock.metrics.store import Store
from tests.waiting import until

RATE = 40.0
QUICK_S, SLOW_S = 0.002, 0.05


class Slows:
    """Takes longer as soon as a file is there: then one replica does half of what comes."""

    def __init__(self, sign: Path) -> None:
        self._sign = sign

    def process(self, event: dict[str, int]) -> dict[str, int]:
        time.sleep(SLOW_S if self._sign.exists() else QUICK_S)
        return event


def test_a_canary_that_gets_worse_is_taken_back_with_the_reason(tmp_path: Path) -> None:
    topology = penstock.Topology("one", pool=4)
    topology.operator("work", Slows(tmp_path / "slow"), inputs=topology.source("numbers"))
    run = penstock.Run(topology, penstock.TraceSource(penstock.constant(RATE, 3600), [{"n": 1}]))
    place = tmp_path / "metrics.db"

    def deciders() -> list[DeciderRow]:
        with closing(Store(str(place))) as store:
            return store.deciders(live.name)

    canary = {"policy": "static:4", "canary": "static:1,minutes=0.1"}
    with penstock.Elastic(run, td_s=0.5, late=0.01, target_ms=1000, store=place, **canary) as live:  # type: ignore[arg-type]
        until(lambda: [row.policy for row in deciders()] == ["static:4", "static:1"])
        until(lambda: len(live.run.active["work"]) == 1)
        (tmp_path / "slow").touch()
        until(lambda: [row.policy for row in deciders()] == ["static:4", "static:1", "static:4"])
        until(lambda: len(live.run.active["work"]) == 4)
        (tmp_path / "slow").unlink()
        live.run.stop_sources()
        live.stop(timeout_s=0.0)
    _, over, back = deciders()
    assert "static:1" in over.reason
    assert "late" in back.reason, back.reason
    assert back.before == "static:1"
