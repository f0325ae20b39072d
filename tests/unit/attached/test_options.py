"""What a keeper is told is looked at before it begins."""

from __future__ import annotations

import pytest

from penstock.attached.model.demand import Promise
from penstock.attached.model.need import Bounds
from penstock.attached.options import KeeperOptions, check_calendar
from penstock.errors import InputError
from penstock.policy.psps import Psps
from penstock.policy.registry import POLICIES


def test_a_calendar_is_looked_at_before_it_is_needed() -> None:
    bounds, promise = Bounds(1, 2), Promise(10.0)
    with pytest.raises(InputError, match="event 'freeze sometimes': must be "):
        KeeperOptions(bounds=bounds, promise=promise, calendar="freeze sometimes")
    many = KeeperOptions(bounds=bounds, promise=promise, calendar="least clicks=9 daily 08:00-10:00")
    check_calendar(many, slots_each=5)
    with pytest.raises(
        InputError,
        match=r"^event 'least clicks=9 daily 08:00-10:00', query 'clicks': 2 executors have 8 slots; got 9$",
    ):
        check_calendar(many, slots_each=4)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mode": "watch"}, "attach: mode must be one of act, advise; got 'watch'"),
        ({"policy": "hope"}, "policy: no such name 'hope'"),
        ({"policy": "static:4"}, "attach: policy must be one that follows the load; got 'static:4'"),
        ({"forecaster": "hope"}, "forecaster: no such name 'hope'"),
        ({"td_s": 0.0}, "interval: td must be at least"),
        ({"cooldown_s": -1.0}, "attach: cooldown_s must be a number of at least 0; got -1"),
    ],
)
def test_wrong_options_are_said_at_once(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        KeeperOptions(bounds=Bounds(1, 2), promise=Promise(10.0), **wrong)  # type: ignore[arg-type]


def test_a_policy_that_keeps_a_promise_is_told_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, object] = {}

    def make(late: float = 0.5, target_ms: float = 1.0) -> Psps:
        told.update(late=late, target_ms=target_ms)
        return Psps()

    monkeypatch.setitem(POLICIES._makers, "promising", (make, None))
    KeeperOptions(bounds=Bounds(1, 2), promise=Promise(10.0, 0.02), policy="promising")
    assert told == {"late": 0.02, "target_ms": 2000.0}  # most of the target goes by in batches
    KeeperOptions(bounds=Bounds(1, 2), promise=Promise(10.0, 0.02), policy="promising:target_ms=500")
    assert told == {"late": 0.02, "target_ms": 500}
