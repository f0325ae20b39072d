"""What is said of a load: what is pasted is what was played, and nothing is left out unseen."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.advise import advice as module
from penstock.advise.advice import Advice, advise, as_json, settings, words
from penstock.advise.replay import AS_IT_WAS, Fitted, Load, Outcome, Rules, played_options, replay
from penstock.attached.attach import attach
from penstock.attached.model.cost import Cost
from penstock.attached.model.demand import Promise
from penstock.attached.model.need import Bounds
from penstock.attached.options import DEFAULT_FORECASTER, KeeperOptions
from penstock.errors import InputError

COST = Cost(by_row_s=0.04, by_batch_s=0.2, fixed_s=0.5)
RULES = Rules(promise=Promise(20.0, 0.02), bounds=Bounds(2, 9))
WAS = Outcome(policy=AS_IT_WAS, executor_seconds=1000.0, rows=9000, late=0, p50_ms=1.0, p99_ms=2.0)


def load(*names: str, trigger_s: float = 10.0, was: Outcome = WAS) -> Load:
    queries = [Fitted(name=one, trigger_s=trigger_s, cost=COST, came=lambda s: int(30 * s)) for one in names]
    return Load("app-1", 2, 0.0, 200.0, was, queries=queries)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "policies", lambda: ["psps", "keda"])


def attached(told: str) -> tuple[str, dict[str, Any]]:
    """What the pasted line would give `attach`."""
    given: list[tuple[Any, dict[str, Any]]] = []
    names = {
        "penstock": SimpleNamespace(attach=lambda query, **more: given.append((query, more))),
        "query": "query",
        "spark": SimpleNamespace(streams=SimpleNamespace(active="all queries")),
    }
    exec(told.splitlines()[-1], names)
    return given[0]


@pytest.mark.parametrize(
    "rules", [RULES, replace(RULES, forecaster="drift", td_s=2.5, promise=Promise(12.345, 0.015), cooldown_s=45.0)]
)
def test_what_is_pasted_is_what_was_played(rules: Rules) -> None:
    """Played was without a forecast, every 5 s, on up to all executors; pasted were a forecast and other bounds."""
    found = advise(load("clicks"), rules)
    query, given = attached(settings(found))
    assert query == "query"
    policy, each_s = found.chosen.policy, given.pop("td_s")
    bounds, target_ms, late = Bounds.parse(given.pop("executors")), given.pop("target_ms"), given.pop("late")
    pasted = KeeperOptions(bounds=bounds, promise=Promise(target_ms / 1000, late), td_s=each_s, **given)
    assert pasted == played_options(found.load, policy, rules)
    assert given.keys() <= inspect.signature(attach).parameters.keys()
    assert f"spark.executor.instances {found.chosen.executors[0][1]}\n" in settings(found)


def test_the_interval_that_is_played_is_that_of_attach() -> None:
    assert played_options(load("clicks", trigger_s=10.0), "psps", RULES).td_s == 10.0
    assert played_options(load("clicks", trigger_s=0.0), "psps", RULES).td_s == 5.0
    assert RULES.forecaster is None  # a forecaster takes ten times as long, so it is said
    assert DEFAULT_FORECASTER is not None
    assert "forecaster=None" in settings(advise(load("clicks"), RULES))


def test_several_queries_are_attached_together() -> None:
    assert attached(settings(advise(load("clicks", "counts"), RULES)))[0] == "all queries"


def test_who_could_not_be_played_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """It dropped out of the table, and nobody knew."""

    def refuse(given: Load, policy: str | int, rules: Rules) -> Outcome:
        if policy == "keda":
            raise InputError("policy keda: needs a broker; got none")
        return replay(given, policy, rules)

    monkeypatch.setattr(module, "replay", refuse)
    found = advise(load("clicks"), RULES)
    assert found.left_out == {"keda": "policy keda: needs a broker; got none"}
    assert "Left out is keda: policy keda: needs a broker; got none." in words(found)
    assert as_json(found)["left_out"] == found.left_out
    monkeypatch.setattr(module, "policies", lambda: ["keda"])
    with pytest.raises(InputError, match=r"^advise: no policy could be played; keda: policy keda: needs a broker"):
        advise(load("clicks"), RULES)


def test_executors_that_nobody_counted_are_not_none() -> None:
    was = replace(WAS, executor_seconds=math.nan)
    found = Advice(load=load("clicks", was=was), rules=RULES, outcomes=(replace(WAS, policy="psps"),), constant=None)
    assert "As it was: executors are not known; 0 % of rows took longer than 20 s (p99 2.00 ms)." in words(found)
    assert not any("less" in one or "more" in one for one in words(found))
    assert as_json(found)["as_it_was"]["executor_seconds"] is None
