"""Operators that keep state: the fast simulator beside the obvious one, and what holds whatever happens."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.simulator.plant.plant import SimulatedPlant

from .cases import INTERVAL_S
from .reference_state import KeyedOperator
from .stateful_cases import cases, rows, word
from .test_against_reference import drive, settled
from .test_regional import DELAYS, placed

TAIL_S = 60.0


def same_state(case, plant, reference) -> None:
    """In the end: state, groups moved, and how long they waited."""
    counted = plant.counters().operators
    for name, one in reference.operators.items():
        if isinstance(one, KeyedOperator):
            total = counted[name].total
            assert total.state_keys == sum(map(len, one.state.values()))
            assert total.state_bytes == round(total.state_keys * case.options.state_bytes[name])
            assert total.groups_moved == total.moving.count == len(one.waits_s)
            assert total.moving.total_ms == pytest.approx(1000 * sum(one.waits_s), abs=1e-3)


def played(case, *, regions=None) -> None:
    """Both, with the same state in the end."""
    plant, reference = case.plant(regional=regions is not None), case.reference()
    if regions is not None:
        for one in (plant, reference):
            one.place(*regions)
    drive(case, plant, reference, TAIL_S)
    same_state(case, plant, reference)


@given(cases(q_size=None, actuation="pool"))
@settings(settled, max_examples=30)
def test_same_at_the_end_of_every_interval(case):
    played(case)


@given(cases(q_size=None, actuation="pool", all_keep=True), st.sampled_from(DELAYS), st.integers(0, 1000))
@settings(settled, max_examples=30)
def test_same_wherever_replicas_sit(case, delay_s, seed):
    played(case, regions=(placed(case.topology, np.random.default_rng(seed)), delay_s))


def left_in_order(plant: SimulatedPlant) -> list[int]:
    """The source events that leave `first`, from now on."""
    operator, seen = plant.operators["first"], []
    give = operator.give

    def watched(until_s: float) -> None:
        give(until_s)
        seen.extend(operator.output(0).source.tolist())

    operator.give = watched
    return seen


@given(rows(), st.sampled_from(DELAYS), st.integers(0, 1000), st.booleans())
@settings(settled, max_examples=60)
def test_events_of_a_key_stay_in_order_and_none_gets_lost(case, delay_s, seed, regional):
    """Whatever is restarted, dropped or far away; that every plant adds up at any time is in conftest."""
    plant = case.plant(regional=regional)
    if regional:
        plant.place(placed(case.topology, np.random.default_rng(seed)), delay_s)
    seen = left_in_order(plant)
    for number, change in enumerate(case.changes, start=1):
        plant.advance(number * INTERVAL_S)
        change.make(plant)
    plant.advance(case.last_s + TAIL_S)
    by_key = defaultdict(list)
    payloads = case.payloads("s")
    for source in seen:
        by_key[word(payloads[source])].append(source)
    assert all(sources == sorted(sources) for sources in by_key.values())
    assert len(seen) + plant.operators["first"].dropped == len(payloads) == plant.out + plant.failed
    bounds = case.options
    assert plant.failed == 0 or bounds.t_out_s or bounds.q_size or bounds.actuation == "restart-lossy"
