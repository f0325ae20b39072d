"""Stores as keepers leave them, of queries on paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock.attached.keeper import Keeper
from penstock.attached.model.cost import Cost
from penstock.attached.model.demand import Promise
from penstock.attached.model.need import Bounds
from penstock.attached.model.plant import SimulatedExecutors, SimulatedQuery
from penstock.attached.options import KeeperOptions

COST = Cost(by_row_s=0.04, by_batch_s=0.2, fixed_s=0.5)
TD_S = 5.0


def jump(now_s: float) -> int:
    """Rows that have come: 20 a second, and 100 from 100 s on."""
    return int(20 * now_s + 80 * max(0.0, now_s - 100.0))


def kept_store(
    file: Path,
    name: str = "clicks",
    came: Callable[[float], int] = jump,
    *,
    mode: str = "act",
    first: int = 1,
    until_s: float = 300.0,
) -> str:
    """The store of a keeper of a query, every 5 s, on executors of two slots."""
    now = [0.0]
    executors = SimulatedExecutors(first, slots_each=2, join_s=10.0, now=lambda: now[0])
    options = KeeperOptions(bounds=Bounds(1, 8), promise=Promise(10.0), mode=mode, policy="psps", forecaster=None)
    keeper = Keeper(executors, options, file)
    query = SimulatedQuery(name, TD_S, COST, came)
    keeper.add(query)
    keeper._enter()
    while now[0] < until_s:
        now[0] += 0.5
        query.advance(now[0], executors.slots())
        if now[0] % TD_S == 0:
            keeper.step(now[0])
    keeper._close()
    return str(file)
