"""Policies as curves: the same as single simulations, resumed where they stopped, and nobody below the bound."""

from __future__ import annotations

import json
import math

import pytest

from penstock.control import analyze
from penstock.errors import InputError
from penstock.forecast.registry import forecaster_for
from penstock.policy.guards import Headroom
from penstock.policy.psps import Psps
from penstock.simulator import parallel, simulate, sweep
from penstock.simulator.curves import Point, SweepResult, geometric_mean
from penstock.simulator.sweep import Sweep
from penstock.workload import Trace

from .setups import scenario_of

RATES = {"calm": [40.0, 60.0, 80.0, 60.0], "wild": [20.0, 150.0, 30.0, 150.0]}


def scenarios(**values):
    made = [scenario_of(rates, 40.0, 30.0, **values) for rates in RATES.values()]
    return [one.changed(trace=Trace(name, 10.0, rates)) for one, (name, rates) in zip(made, RATES.items(), strict=True)]


@pytest.fixture(scope="module")
def swept():
    return Sweep(scenarios(arrivals="poisson"), "psps,static:6", factors=(1.0, 1.5, 3.0), seeds=2).run()


def test_there_is_a_point_for_each_trace_seed_policy_and_headroom(swept):
    assert len(swept.points) == 2 * 2 * (2 * 3 + 1)
    assert len({(one.trace, one.seed, one.policy, one.factor) for one in swept.points}) == len(swept.points)
    assert [one.trace for one in swept.points] == ["calm"] * 14 + ["wild"] * 14


def test_a_point_is_what_a_simulation_comes_to(swept):
    scenario = scenarios(arrivals="poisson")[1].changed(seed=1)
    result = simulate(scenario, Headroom(Psps(), 1.5))
    points = {(one.trace, one.seed, one.policy, one.factor): one for one in swept.points}
    point = points["wild", 1, "psps", 1.5]
    assert (point.late, point.replica_seconds) == (result.late_ratio, result.replica_seconds)


def test_headroom_costs_and_nobody_who_keeps_the_promise_is_below_the_bound(swept):
    for trace in RATES:
        for policy, curve in swept.curves(trace).items():
            costs = [one.cost for one in curve]
            assert costs == sorted(costs) or policy == "oracle"
            assert all(one.cost >= 1 - 1e-9 for one in curve if one.late <= swept.late)


def test_several_processes_come_to_the_same(swept):
    again = Sweep(scenarios(arrivals="poisson"), "psps,static:6", factors=(1.0, 1.5, 3.0), seeds=2).run(jobs=2)
    assert again == swept


def test_forecasts_of_a_source_are_made_once_for_a_trace_and_a_seed(monkeypatch):
    """They were made again for every policy; and nobody notices: alone a policy comes to the same."""
    made = []

    def counted(spec, **known):
        made.append(known["series"])
        return forecaster_for(spec, **known)

    monkeypatch.setattr(analyze, "forecaster_for", counted)
    found = Sweep(scenarios()[:1], "spea:3,cba:4,psps", factors=(1.0, 1.5)).run()
    assert made.count("in") == 1
    alone = Sweep(scenarios()[:1], "cba:4", factors=(1.0, 1.5)).run()
    together, by_itself = ([one for one in swept.points if one.policy == "cba:4"] for swept in (found, alone))
    assert together == by_itself
    assert made.count("in") == 2


def points_of(*rows):
    """Trace, policy, factor, late, cost."""
    return [Point(trace, 0, policy, factor, late, cost) for trace, policy, factor, late, cost in rows]


def test_the_frontier_has_what_no_other_beats_in_both():
    points = points_of(
        ("t", "a", 1.0, 0.30, 1.0), ("t", "a", 2.0, 0.10, 2.0), ("t", "a", 3.0, 0.10, 3.0),
        ("t", "b", 1.0, 0.20, 2.5), ("t", "b", 2.0, 0.00, 4.0), ("t", "oracle", 1.0, 0.0, 0.5),
    )  # fmt: skip
    result = SweepResult({}, 0.01, {"t": 1.0}, points)
    assert [(one.policy, one.factor) for one in result.frontier()] == [("a", 1.0), ("a", 2.0), ("b", 2.0)]


def test_the_promise_costs_the_cheapest_headroom_of_each_trace():
    points = points_of(
        ("s", "a", 1.0, 0.005, 2.0), ("s", "a", 2.0, 0.0, 4.0), ("t", "a", 1.0, 0.02, 3.0), ("t", "a", 2.0, 0.01, 16.0),
        ("s", "b", 1.0, 0.0, 1.0), ("s", "b", 2.0, 0.0, 2.0), ("t", "b", 1.0, 0.5, 1.0), ("t", "b", 2.0, 0.02, 2.0),
    )  # fmt: skip
    first, second = SweepResult({}, 0.01, {"s": 1.0, "t": 2.0}, points).at_late()
    assert (first.policy, first.kept) == ("a", 2)
    assert first.traces == pytest.approx({"s": 2.0, "t": 8.0})
    assert first.cost == pytest.approx(4.0)
    assert (second.policy, second.kept, second.cost, second.traces) == ("b", 1, 1.0, {"s": 1.0, "t": None})


def test_a_cost_is_over_the_bound_of_its_own_seed():
    """Each was divided by the mean of all seeds' bounds: a run at its bound seemed to be below it."""
    points = [Point("t", seed, "a", 1.0, 0.0, cost) for seed, cost in ((0, 10.0), (1, 90.0))]
    result = SweepResult({}, 0.01, {"t": 50.0}, points, {("t", 0): 10.0, ("t", 1): 90.0})
    assert result.curves()["a"][0].cost == pytest.approx(1.0)


def test_each_seed_has_a_bound_of_its_own(swept):
    own = [swept.bounds["wild", seed] for seed in (0, 1)]
    assert own[0] != own[1]
    assert swept.bound["wild"] == pytest.approx(sum(own) / 2)


def test_means_of_nothing_and_of_what_is_no_ratio_are_not_known():
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert all(math.isnan(geometric_mean(some)) for some in ([], [1.0, math.nan], [1.0, 0.0], [math.inf]))


def test_a_sweep_that_was_stopped_goes_on(tmp_path, monkeypatch):
    """The last line of one that was killed may be cut off: its task is done again, all others are not."""
    file, asked = tmp_path / "kept" / "sweep.jsonl", Sweep(scenarios(), "psps", factors=(1.0, 2.0))
    whole = asked.run(keep=file)
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:20])
    played, seen, play = [], [], sweep._played
    monkeypatch.setattr(sweep, "_played", lambda task: played.append(task.policy) or play(task))
    assert asked.run(keep=file, progress=lambda there, total: seen.append((there, total))) == whole
    assert len(played) == 1
    assert (seen[-1], seen[0][0] < 6) == ((6, 6), True)
    assert asked.run(keep=file) == whole
    assert len(played) == 1


def test_a_file_of_another_sweep_is_refused(tmp_path):
    file = tmp_path / "sweep.jsonl"
    Sweep(scenarios(), "static:2", factors=(1.0,)).run(keep=file)
    with pytest.raises(InputError, match=r"sweep.jsonl': is not of this sweep"):
        Sweep(scenarios(), "static:3", factors=(1.0,)).run(keep=file)
    file.write_text("no such thing\n")
    with pytest.raises(InputError, match=r"sweep.jsonl': is not of this sweep"):
        Sweep(scenarios(), "static:3", factors=(1.0,)).run(keep=file)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"factors": ()}, "factors must be at least one"),
        ({"factors": (1.0, 0.0)}, "factors must be a number above 0"),
        ({"seeds": 0}, "seeds must be whole and at least 1; got 0"),
        ({"policies": "hope"}, "no such name 'hope'"),
    ],
)
def test_what_cannot_be_swept_is_said_before_anything_runs(values, said):
    with pytest.raises(InputError, match=said):
        Sweep(scenarios(), **{"policies": "psps", **values})


def test_traces_are_known_by_their_names():
    with pytest.raises(InputError, match=r"each once; got \['calm', 'calm'\]"):
        Sweep([scenarios()[0]] * 2, "psps")


def test_json_has_all_of_it(swept):
    found = json.loads(json.dumps(swept.as_json()))
    assert set(found) == {"settings", "bound", "points", "frontier", "cost_at_late"}
    assert (set(found["bound"]), len(found["points"])) == ({"calm", "wild"}, 28)
    assert [one["policy"] for one in found["cost_at_late"]] == [one.policy for one in swept.at_late()]


def test_jobs_are_at_least_one():
    with pytest.raises(InputError, match="jobs must be whole and at least 1; got 0"):
        list(parallel.done(abs, [1], jobs=0))


def test_what_a_process_made_is_kept_until_something_else_is_wanted():
    made = []
    for key in ("a", "a", "b", "a"):
        parallel.made_once(("test", key), lambda key=key: made.append(key))
    assert made == ["a", "b", "a"]
