from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.catalogue import EXPERIMENTS, chosen
from experiments.experiment import Claim, Direction, Experiment, base
from experiments.figures import METRICS
from experiments.inputs import INPUTS
from penstock.apps import APPS
from penstock.errors import InputError

LATER = {"e2df", "srea", "spea", "cba", "optimal"}  # policies that experiments may name before they are there


def test_what_the_paper_says_is_relative_to_the_first_case(tiny: Experiment) -> None:
    assert [str(claim) for claim in tiny.implied()] == ["saved: two < one", "latency_ms: two < one"]


def test_figures_that_hardly_differ_say_nothing(tiny: Experiment) -> None:
    first, second, _ = tiny.cases
    near = replace(second, paper={"saved": 0.597, "latency_ms": 100.5})
    assert replace(tiny, cases=(first, near)).implied() == []


def test_labels_are_unique_and_claims_name_them(tiny: Experiment) -> None:
    with pytest.raises(ValueError, match="three"):
        replace(tiny, directions=(Direction("?", (Claim("saved", "one", "three"),)),))
    with pytest.raises(ValueError, match="unique"):
        replace(tiny, cases=(*tiny.cases, tiny.cases[0]))


def test_what_is_missing_is_named(tiny: Experiment) -> None:
    assert [case.missing for case in tiny.cases] == [None, None, "policy 'hope' is not there yet"]
    assert base("dns", "tiny", grouping="least_work").missing is None
    with pytest.raises(InputError, match="grouping: no such name 'magic'"):
        base("dns", "tiny", grouping="magic")


def test_cases_are_equal_where_the_same_is_played() -> None:
    case = base("dns", "tiny")
    assert case.changed(label="again", paper={"saved": 0.5}) == case
    assert len({case, case.changed(label="again"), case.changed(td_s=5.0), case.changed(settle_s=5.0)}) == 3


def test_what_is_set_is_told_in_plain_values() -> None:
    shown = base("dns", "tiny", td_s=1.0, pool=3, levels="both").settings()
    usual = {"arrivals": "poisson", "grouping": "load_balancing", "target_ms": 30_000.0}
    given = {"app": "dns", "input": "tiny", "settle_s": 0.0, "r_over": None, "pool": 3, "levels": "both"}
    assert shown == {**usual, **given}  # an interval of 1 s is the usual one


def test_experiments_by_name() -> None:
    assert chosen(None) == list(EXPERIMENTS.values())
    assert [one.name for one in chosen("figure-12,table-iv")] == ["figure-12", "table-iv"]
    with pytest.raises(InputError, match="table-vii"):
        chosen("table-vi1")


@pytest.mark.parametrize("one", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_every_experiment_is_sound(one: Experiment) -> None:
    assert set(one.metrics) <= set(METRICS)
    assert all(claim.metric in METRICS for direction in one.directions for claim in direction.claims)
    for case in one.cases:
        assert case.scenario.topology in APPS
        assert case.input in INPUTS
        assert set(case.paper) <= set(one.metrics)
        assert case.missing is None or case.policy in LATER


@pytest.mark.parametrize("one", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_reasons_are_for_figures_of_the_table(one: Experiment) -> None:
    labels = [case.label for case in one.cases]
    for key in one.reasons:
        metric, _, label = key.partition(" ")
        assert metric in one.metrics
        assert not label or label in labels
