"""What holds for every grouping: only active replicas, bundles make no difference, same input same output."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.grouping import GROUPINGS, LATE, Grouping, Receivers, Sender, make_grouping

every_grouping = pytest.mark.parametrize("name", [name for name in GROUPINGS if name not in LATE])


@dataclass
class Step:
    """A publication, and the bundles sent until the next one."""

    receivers: Receivers
    bundles: list[list[dict[str, int]]] = field(default_factory=list)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    active = tuple(sorted(draw(st.sets(st.integers(0, 12), min_size=1, max_size=6))))
    used = draw(st.dictionaries(st.integers(0, 12), st.floats(0.0, 1.5), max_size=8))
    bundles = draw(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=5))
    return Step(
        Receivers(active, used, draw(st.floats(0.0, 0.5))), [[{"word": word} for word in bundle] for bundle in bundles]
    )


senders = st.integers(1, 5).flatmap(lambda of: st.builds(Sender, st.integers(0, of - 1), st.just(of)))


def made(name: str, sender: Sender) -> Grouping:
    return make_grouping(name, sender, key="word" if name == "fields" else None)


def played(grouping: Grouping, play: list[Step]) -> list[int]:
    chosen: list[int] = []
    for step in play:
        grouping.update(step.receivers)
        for bundle in step.bundles:
            chosen += grouping.assign(bundle)
    return chosen


@every_grouping
@given(sender=senders, play=st.lists(steps(), min_size=1, max_size=4))
def test_every_event_goes_to_one_active_replica(name: str, sender: Sender, play: list[Step]) -> None:
    grouping = made(name, sender)
    for step in play:
        grouping.update(step.receivers)
        for bundle in step.bundles:
            chosen = grouping.assign(bundle)
            assert len(chosen) == len(bundle)
            assert set(chosen) <= set(step.receivers.active)


@every_grouping
@given(sender=senders, play=st.lists(steps(), min_size=1, max_size=4))
def test_bundles_make_no_difference(name: str, sender: Sender, play: list[Step]) -> None:
    single = [Step(step.receivers, [[event] for bundle in step.bundles for event in bundle]) for step in play]
    whole = [Step(step.receivers, [[event for bundle in step.bundles for event in bundle]]) for step in play]
    chosen = played(made(name, sender), play)
    assert chosen == played(made(name, sender), single) == played(made(name, sender), whole)


@every_grouping
@given(sender=senders, play=st.lists(steps(), min_size=1, max_size=4))
def test_the_same_input_gives_the_same_output(name: str, sender: Sender, play: list[Step]) -> None:
    assert played(made(name, sender), play) == played(made(name, sender), play)


@every_grouping
@pytest.mark.parametrize("shipped", [pickle, cloudpickle], ids=["pickle", "cloudpickle"])
@given(sender=senders, before=steps(), after=steps())
def test_a_copy_goes_on_where_the_original_was(
    name: str, shipped: object, sender: Sender, before: Step, after: Step
) -> None:
    grouping = made(name, sender)
    played(grouping, [before])
    copy = pickle.loads(shipped.dumps(grouping))  # type: ignore[attr-defined]
    rest = [event for bundle in after.bundles for event in bundle]
    assert copy.assign(rest) == grouping.assign(rest)
    assert played(copy, [after]) == played(grouping, [after])


@pytest.mark.parametrize("name", ["random", "", "fields"])
def test_an_unknown_grouping_or_fields_without_a_key(name: str) -> None:
    with pytest.raises(InputError) as caught:
        make_grouping(name, Sender())
    rule = "grouping must be one of shuffle, fields, load_balancing, online_shuffle, pull ('fields' with a key)"
    assert str(caught.value) == f"{rule}; got {name!r}"


@pytest.mark.parametrize("name", LATE)
def test_those_that_bind_late_are_made_elsewhere(name: str) -> None:
    with pytest.raises(InputError, match=f"grouping '{name}': its events are bound late, by `penstock.grouping.Pull`"):
        make_grouping(name, Sender())
