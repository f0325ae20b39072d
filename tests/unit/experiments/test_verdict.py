from __future__ import annotations

from collections.abc import Callable

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.e2df import PRINTED
from experiments.experiment import FIGURE, Claim, Direction, Experiment
from experiments.figures import METRICS
from experiments.runner import Outcome
from experiments.verdict import BARELY, NOT_LOOKED_INTO, Verdict, differences, verdicts

Make = Callable[..., Outcome]


def judged(outcomes: list[Outcome], why: str = "", **more: object) -> tuple[Verdict, list[Verdict]]:
    direction = Direction("a is faster", (Claim("latency_ms", "a", "b"),), why)
    cases = tuple(one.case for one in outcomes)
    experiment = Experiment(name="t", title="", paper="", cases=cases, directions=(direction,), **more)  # type: ignore[arg-type]
    return verdicts(experiment, outcomes)[0], differences(experiment, outcomes)


def test_holds(outcome: Make) -> None:
    verdict, differs = judged([outcome("a", 10, 12, paper=1), outcome("b", 20, 22, paper=2)])
    assert (verdict.holds, verdict.sentence) == (True, "as in the paper")
    assert verdict.figures == ("latency, ms: a 11; b 21",)
    assert differs == []


def test_seeds_are_compared_one_by_one(outcome: Make) -> None:
    """Seeds that differ a lot from each other may still agree: the same seed has the same input."""
    verdict, _ = judged([outcome("a", 10, 1000), outcome("b", 11, 1001.5)])
    assert (verdict.holds, verdict.sentence) == (True, "as in the paper")


def test_holds_by_less_than_the_seeds_differ(outcome: Make) -> None:
    outcomes = [outcome("a", 10, 20), outcome("b", 30, 1)]
    assert judged(outcomes)[0].sentence == BARELY
    assert judged(outcomes, why="by chance")[0].sentence == f"{BARELY}: by chance"


def test_does_not_hold(outcome: Make) -> None:
    outcomes = [outcome("a", 20, 20, paper=1), outcome("b", 10, 10, paper=2)]
    verdict, differs = judged(outcomes, why="it rained")
    assert (verdict.holds, verdict.sentence) == (False, "it rained")
    assert [(one.name, one.sentence) for one in differs] == [("latency_ms: a < b", NOT_LOOKED_INTO)]
    assert judged(outcomes)[0].sentence == NOT_LOOKED_INTO


@pytest.mark.parametrize("key", ["latency_ms b", "latency_ms"])
def test_differences_have_their_reasons(outcome: Make, key: str) -> None:
    outcomes = [outcome("a", 20, 20, paper=1), outcome("b", 10, 10, paper=2)]
    _, differs = judged(outcomes, reasons={key: "it rained"})
    assert [one.sentence for one in differs] == ["it rained"]


def test_a_difference_within_the_seeds_is_none(outcome: Make) -> None:
    _, differs = judged([outcome("a", 20, 10, paper=1), outcome("b", 10, 19, paper=2)])
    assert differs == []


def test_next_to_nothing_is_no_difference(outcome: Make) -> None:
    verdict, differs = judged([outcome("a", 1000, 1000, paper=1), outcome("b", 999, 999, paper=2)])
    assert verdict.holds is False
    assert differs == []


def test_equal_figures_do_not_hold_and_do_not_differ(outcome: Make) -> None:
    verdict, differs = judged([outcome("a", 5, 5, paper=1), outcome("b", 5, 5, paper=2)])
    assert verdict.holds is False
    assert differs == []


def test_what_is_missing_leaves_it_open(outcome: Make) -> None:
    verdict, differs = judged([outcome("a", 5, paper=1), outcome("b", missing="policy 'b' is not there yet", paper=2)])
    assert (verdict.holds, verdict.sentence) == (None, "policy 'b' is not there yet")
    assert verdict.figures == ("latency, ms: a 5; b –",)
    assert differs == []


def test_findings_have_the_figures_of_the_run(outcome: Make) -> None:
    """They were prose with the figures of an earlier run, which stayed when others came out."""
    outcomes = [outcome("a", 20, 20, paper=1), outcome("b", 10, 12, paper=2)]
    verdict, (differs,) = judged(
        outcomes, why="b takes [latency_ms: b] ms", reasons={"latency_ms": "a takes [latency_ms: a] ms, [late: b] late"}
    )
    assert verdict.sentence == "b takes 11 ms"
    assert differs.sentence == "a takes 20 ms, – late"


def test_a_finding_names_cases_that_there_are(outcome: Make) -> None:
    with pytest.raises(ValueError, match="claims name them"):
        judged([outcome("a", 20), outcome("b", 10)], why="[latency_ms: c]")


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_findings_name_metrics_that_there_are(experiment: Experiment) -> None:
    texts = [*experiment.reasons.values(), *(one.why for one in experiment.directions)]
    assert {metric for text in texts for metric, _ in FIGURE.findall(text)} <= METRICS.keys()


def test_the_application_manager_as_printed_is_a_case_of_its_own() -> None:
    cases = EXPERIMENTS["figure-2"].cases
    rules = {one.label: one.scenario.cluster.application for one in cases if one.policy == "e2df"}
    assert len(rules) == 3
    assert [label for label, rule in rules.items() if rule and not rule.second_choice] == [PRINTED]
