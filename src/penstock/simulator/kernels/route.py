"""Who gets an event, settled when it is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.grouping.kernels import all_full, go_round, in_turn, least_used
from penstock.simulator.arrays import LOAD_BALANCING, SHUFFLE


@njit(cache=True)
def route(events: Any, work: Any, senders: Any, routes: Any, kind: int) -> Any:
    """The replica for each event, as `take` would choose it."""
    turn, used, last, step, order, first = senders
    active, count, key = routes.active, routes.length[0], work.key
    row, value, keyed = events.row, events.value, len(work.key) > 1
    chosen = np.empty(len(row), np.int64)
    for place in range(len(row)):
        if kind == SHUFFLE:
            chosen[place] = in_turn(turn, row[place], active, count)
        elif kind == LOAD_BALANCING:
            if all_full(used, order, first, row[place]):
                go_round(used, last, order, first, row[place], count)
            chosen[place] = least_used(turn, used, last, step, order, first, row[place], count)
        else:
            chosen[place] = active[key[value[place] if keyed else 0] % count]
    return chosen
