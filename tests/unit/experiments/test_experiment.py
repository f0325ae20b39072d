from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.catalogue import EXPERIMENTS, chosen
from experiments.experiment import Case, Claim, Direction, Experiment
from experiments.figures import METRICS
from experiments.inputs import INPUTS
from experiments.scene import Scene
from penstock.apps import APPS
from penstock.errors import InputError
from penstock.metrics.utilisation import MEASURES

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
    scene = Scene(app="dns", input="tiny", grouping="magic")
    assert Case(label="x", policy="psps", scene=scene).missing == "grouping 'magic' is not there yet"
    assert Case(label="x", policy="psps", scene=replace(scene, grouping="least_work")).missing is None


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
        assert case.scene.app in APPS
        assert case.scene.input in INPUTS
        assert case.scene.measure in MEASURES
        assert set(case.paper) <= set(one.metrics)
        assert case.missing is None or case.policy in LATER


@pytest.mark.parametrize("one", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_reasons_are_for_figures_of_the_table(one: Experiment) -> None:
    labels = [case.label for case in one.cases]
    for key in one.reasons:
        metric, _, label = key.partition(" ")
        assert metric in one.metrics
        assert not label or label in labels
