"""The papers' evaluation on small inputs: it runs, tells directions, and says what is not there yet."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from experiments.__main__ import main
from experiments.catalogue import EXPERIMENTS
from experiments.experiment import Claim, Direction, Experiment, base
from experiments.figures import Measured
from experiments.runner import Outcome, jobs_of
from experiments.verdict import differences, verdicts


def experiment(**more):
    cases = tuple(
        base("twitter", "twitter", label=label, paper={"latency_ms": value})
        for label, value in (("small", 1.0), ("large", 2.0))
    )
    given = {"name": "t", "title": "T", "paper": "P", "cases": cases, **more}
    return Experiment(**given)


def outcomes(one, **latencies):
    return [Outcome(case, {"latency_ms": Measured(latencies[case.label])}) for case in one.cases]


def test_a_direction_holds_or_not_by_its_claims():
    one = experiment(directions=(Direction("small is fast", (Claim("latency_ms", "small", "large"),), "a reason"),))
    (good,) = verdicts(one, outcomes(one, small=(1.0, 2.0), large=(5.0, 6.0)))
    (bad,) = verdicts(one, outcomes(one, small=(5.0, 6.0), large=(1.0, 2.0)))
    assert (good.holds, bad.holds) == (True, False)
    assert bad.sentence == "a reason"


def test_what_the_papers_figures_imply_is_looked_at_too():
    one = experiment(reasons={"latency_ms": "because"})
    assert differences(one, outcomes(one, small=(1.0,), large=(2.0,))) == []
    (found,) = differences(one, outcomes(one, small=(9.0, 9.1), large=(2.0, 2.1)))
    assert found.sentence == "because"


def test_a_policy_that_is_not_there_is_said_and_not_played():
    one = experiment()
    missing = replace(one, cases=(one.cases[0], replace(one.cases[1], policy="clairvoyance")))
    assert {job.case.policy for job in jobs_of([missing], seeds=1)} == {"psps"}
    case = missing.cases[1]
    assert case.missing == "policy 'clairvoyance' is not there yet"


def test_a_claim_about_a_case_that_is_not_there_is_a_mistake():
    with pytest.raises(ValueError, match="claims name them"):
        experiment(directions=(Direction("?", (Claim("latency_ms", "small", "huge"),)),))


def test_every_experiment_has_a_paper_and_its_cases():
    assert {f"table-{n}" for n in ("iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")} <= EXPERIMENTS.keys()
    for name, one in EXPERIMENTS.items():
        assert one.name == name
        assert one.paper
        assert one.cases


def test_the_command_writes_a_page_and_figures(tmp_path):
    page, figures = tmp_path / "page.html", tmp_path / "figures.json"
    arguments = ["--only", "table-xii", "--seeds", "1", "--made", "--workers", "1"]
    assert main([*arguments, "--html", str(page), "--json", str(figures)]) == 0
    assert page.read_text().startswith("<!doctype html>")
    written = json.loads(figures.read_text())
    assert written["directions"]
    assert main(["--only", "table-xiii"]) == 2
